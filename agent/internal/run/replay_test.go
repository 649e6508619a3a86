package run_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/run"
)

func TestARealSourceIsCollectedServedAndStartedAgainWhenItIsKilled(t *testing.T) {
	s := newSite(t)
	s.install("replay")
	tls, keys := s.tls()
	s.write("jobs", `{"id":"1","start":1767225600,"stop":1767229200,"user":"alice","cores":4}
{"id":"2","start":1767225600,"user":"bob"}
no json
`)
	s.configure(tls, "source \"replay\" \"lab\" {\n interval = \"100ms\"\n config { path = \""+s.path("jobs")+"\" }\n}\n")
	s.start()
	x := s.until("replay/lab", func(x control.Source) bool {
		return x.Counts.Records == 2 && x.Counts.Refused == 1 && x.State == "waiting"
	})
	if x.Plugin == "" || x.LastSuccess == nil {
		t.Errorf("%+v", x)
	}
	s.append("jobs", `{"id":"2","start":1767225600,"stop":1767229200,"user":"bob"}`+"\n")
	s.until("replay/lab", sent(3))
	kill(t, s.path("plugins/bursar-source-replay"))
	s.append("jobs", `{"id":"3","start":1767225600,"stop":1767229200,"user":"carl"}`+"\n")
	s.until("replay/lab", sent(4))
	got := pull(t, s.dial(keys))
	if want := []string{"lab-1", "lab-2", "lab-2", "lab-3"}; !slices.Equal(got, want) {
		t.Errorf("pulled %q, want %q", got, want)
	}
}

func (s *site) append(name, text string) {
	s.t.Helper()
	f, err := os.OpenFile(s.path(name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends the process whose first argument is the plugin's path.
func kill(t *testing.T, path string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.HasPrefix(string(text), path+"\x00") {
			continue
		}
		if err := exec.Command("kill", "-9", filepath.Base(filepath.Dir(f))).Run(); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no process of %s", path)
}

func TestAPreviewOfTheRecordedClusterShowsRecords(t *testing.T) {
	s := newSite(t)
	s.install("replay")
	s.configure("", "source \"replay\" \"lab\" {\n config {\n recorded = true\n jobs = 500\n }\n}\n")
	cfg := s.load()
	previewed, err := run.Preview(t.Context(), cfg, cfg.Running()[0], s.plugins(), collect.Window{From: time.Now().Add(-28 * 24 * time.Hour), To: time.Now()}, 5)
	if err != nil || len(previewed.Samples) != 5 {
		t.Fatalf("%d samples, %v", len(previewed.Samples), err)
	}
	for _, x := range previewed.Samples {
		if x.Outcome == run.Kept && (x.Record == nil || len(x.Attributes) == 0) {
			t.Errorf("%+v", x)
		}
	}
}

// TestAPreviewNamesWhatIsOdd has a run of each kind that was silent.
func TestAPreviewNamesWhatIsOdd(t *testing.T) {
	s := newSite(t)
	s.install("replay")
	s.write("jobs", `{"id":"1","start":1767225600,"stop":1767229200,"cpus":4}
{"id":"2","start":1767225600,"stop":1767229200,"cpus":4}
{"id":"3","start":1767225600,"stop":1767229200,"cores":4}
{"id":"4","start":1767229200,"stop":1767225600,"cpus":4}
no json
`)
	s.configure("", "source \"replay\" \"lab\" {\n config { path = \""+s.path("jobs")+"\" }\n}\n")
	cfg := s.load()
	w := collect.Window{From: time.Unix(1767200000, 0), To: time.Unix(1767300000, 0)}
	got, err := run.Preview(t.Context(), cfg, cfg.Running()[0], s.plugins(), w, 1)
	if err != nil || len(got.Samples) != 1 || got.Samples[0].Outcome != run.Failed || len(got.Refused) != 1 || len(got.Findings) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, about := range []string{"column-unread cores", "component-missing Cores"} {
		if f := got.Findings[i]; f.Kind+" "+f.About != about || f.Count != 1 || f.Example != "lab-3" {
			t.Errorf("%+v", f)
		}
	}
}
