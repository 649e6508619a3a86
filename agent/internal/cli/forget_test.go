package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/control"
)

func TestTheStatusAndTheDoctorSayWhichClusterHoldsFramesBackAndHowToForgetIt(t *testing.T) {
	now := time.Now()
	s := control.Status{Buffer: control.Buffer{First: 1, Last: 90, Clusters: []control.Cluster{
		{ID: "alive", Behind: 3, At: now.Add(-time.Minute)},
		{ID: "idle", At: now.Add(-100 * time.Hour)},
		{ID: "wiped", Behind: 80, At: now.Add(-100 * time.Hour)},
		{ID: "elsewhere", Behind: 90, Away: true, At: now.Add(-50 * time.Hour)},
	}}}
	var out strings.Builder
	if err := printStatus(&out, s, now); err != nil {
		t.Fatal(err)
	}
	var f findings
	f.checkAgent(s, nil)
	if f[0].Verdict != good || len(f) != 3 {
		t.Errorf("findings %+v", f)
	}
	for _, x := range f[1:] {
		if x.Verdict != doubtful {
			t.Errorf("%+v", x)
		}
		out.WriteString(x.Detail)
	}
	for id, want := range map[string]int{"alive": 0, "idle": 0, "wiped": 2, "elsewhere": 2} {
		if n := strings.Count(out.String(), "bursar-agent forget -cluster "+id); n != want {
			t.Errorf("told %d times to forget %s, want %d:\n%s", n, id, want, out.String())
		}
	}
	if !strings.Contains(out.String(), "wiped, 80 frames behind, last contact 100h0m0s ago") {
		t.Error(out.String())
	}
}

func TestForgetWantsAClusterAndAnAgent(t *testing.T) {
	dir := folder(t, sound)
	if code, text := bursar(t, dir, "forget", "-config", dir+"/agent.hcl"); code != 1 || !strings.Contains(text, "say which -cluster") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if code, text := bursar(t, dir, "forget", "-cluster", "x", "-config", dir+"/agent.hcl"); code != 1 || !strings.Contains(text, "agent is not running") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

func TestTheStatusAndTheDoctorSayHowToMendADamagedBuffer(t *testing.T) {
	s := control.Status{Buffer: control.Buffer{First: 1, Last: 90, Damage: "the frames behind 4 cannot be read", Remedy: "mv b b.damaged"}}
	var out strings.Builder
	if err := printStatus(&out, s, time.Now()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "the frames behind 4 cannot be read") || !strings.Contains(out.String(), "Do first: mv b b.damaged\n") {
		t.Error(out.String())
	}
	var f findings
	f.checkAgent(s, nil)
	if f[1].Verdict != bad || !strings.Contains(f[1].Detail, "do first: mv b b.damaged") {
		t.Errorf("%+v", f)
	}
}
