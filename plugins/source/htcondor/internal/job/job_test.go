package job

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
)

// entries are those of a file of testdata.
func entries(t testing.TB, name string) (out []string) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	entry := ""
	for line := range strings.Lines(string(text)) {
		entry += line
		if strings.HasPrefix(line, classad.Banner) {
			out, entry = append(out, entry), ""
		}
	}
	return out
}

// told is what the ads of a file tell of their runs.
func told(t *testing.T, name string) (out []string) {
	t.Helper()
	j, ad, plan := New(), new(classad.Ad), NewPlan(func(string) bool { return true })
	for _, text := range entries(t, name) {
		e := classad.ReadEntry(text)
		if err := ad.Read(e.Text); err != nil {
			t.Fatal(err)
		}
		err := j.Load(ad, e.Kind != "")
		if errors.Is(err, ErrNeverRan) {
			out = append(out, j.GlobalID+" never ran")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		values, unread := plan.Values(j)
		if len(unread) > 0 {
			t.Fatal(unread)
		}
		line := fmt.Sprintf("%s %d+%d", j.ID(), j.Start.Unix(), int(j.End.Sub(j.Start).Seconds()))
		for i, a := range Attributes() {
			switch a.Name {
			case "state", "universe", "gpu_device", "host":
				line += " " + values[i].Str()
			case "cores", "memory_mb", "gpus", "exit_code", "exit_signal", "cpu_seconds":
				if values[i].IsNull() {
					line += " -"
				} else {
					line += fmt.Sprint(" ", values[i].Int())
				}
			}
		}
		out = append(out, line)
	}
	return out
}

func TestRuns_OfRealHistories_AreAsTheyWere(t *testing.T) {
	for _, name := range []string{"history-23.9.6", "epochs-23.9.6", "kinds-history-23.9.6", "kinds-epochs-23.9.6"} {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile("testdata/" + name + ".runs")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"), told(t, name)); d != "" {
				t.Error(d)
			}
		})
	}
}
