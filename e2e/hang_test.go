//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// hangers puts the plugin that hangs under several names into a folder.
func hangers(t *testing.T, dir, kind string, types []string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "hanger")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/hanger").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range types {
		if err := programtest.WriteProgram(filepath.Join(dir, "bursar-"+kind+"-"+typ), text); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAgent_PluginHangsInAnyCall_IsKilledShownAndRestarted(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	inCollect := []string{"hang-collect", "hang-collect-pushed", "hang-stopped", "hang-empty", "hang-talks", "hang-count"}
	all := append([]string{"hang-describe", "hang-configure", "hang-ends"}, inCollect...)
	plugins := filepath.Join(s.Dir, "plugins")
	hangers(t, plugins, "source", all)
	jobs := s.Jobs()
	jobs.Write(500)
	sources := jobs.Source()
	for _, typ := range all {
		interval := "1s"
		if typ == "hang-count" {
			interval = "1h" // past days are counted in the pause
		}
		sources += fmt.Sprintf("source %q %q {\n  interval = %q\n  stall_timeout = \"2s\"\n  record {\n    id = job.id\n    start = \"2026-01-01T00:00:00Z\"\n  }\n}\n", typ, typ, interval)
	}
	agent := s.Agent(site.AgentSpec{Name: "head1", Plugins: []string{plugins}, Sources: sources})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	jobs.Arrive(agg) // the others keep nothing from being counted
	s.Eventually("every source that hangs is shown", func() (bool, string) {
		status, err := agent.Status()
		if err != nil {
			return false, err.Error()
		}
		for _, typ := range inCollect {
			if x := status.Source(typ); x.Hangs < 1 || typ != "hang-count" && (x.Hangs < 2 || x.State != "failed" || !strings.Contains(x.Error, "hangs")) {
				return false, fmt.Sprintf("%s: %+v", typ, x)
			}
		}
		for _, typ := range []string{"hang-describe", "hang-configure"} {
			if x := status.Source(typ); x.State != "failed" || !strings.Contains(x.Error, "DeadlineExceeded") && !strings.Contains(x.Error, "hangs") {
				return false, fmt.Sprintf("%s: %+v", typ, x)
			}
		}
		x := status.Source("hang-ends")
		return x.State == "failed" && strings.Contains(x.Error, "ended its stream"), fmt.Sprintf("%+v", x)
	})
	text := agent.Log(1e6)
	for _, typ := range []string{"hang-describe", "hang-configure", "hang-collect", "hang-count", "hang-talks"} {
		if !regexp.MustCompile(`level=WARN .*main\.hanger\.in.*source=`+typ+`/`).MatchString(text) && !regexp.MustCompile(`level=WARN.*main\.`+`.*source=`+typ+`/`).MatchString(text) {
			t.Errorf("the log lacks the goroutines of %s", typ)
		}
	}
	s.Eventually("the cluster shows them", func() (bool, string) {
		var list struct {
			Agents []struct {
				Sources []struct{ Type, Error string }
			}
		}
		if err := agg.Get("/v1/agents", &list); err != nil || len(list.Agents) != 1 {
			return false, fmt.Sprint(list, err)
		}
		shown := map[string]bool{}
		for _, x := range list.Agents[0].Sources {
			shown[x.Type] = strings.Contains(x.Error, "hangs")
		}
		for _, typ := range []string{"hang-collect", "hang-collect-pushed", "hang-stopped", "hang-empty", "hang-talks"} {
			if !shown[typ] {
				return false, fmt.Sprint(typ, list)
			}
		}
		return true, ""
	})
	agent.Stop()
}

func TestAggregator_ActionHangsInAnyCall_IsKilledAndShown(t *testing.T) {
	t.Parallel()
	x := newThirdSite(t)
	types := []string{"hang-describe", "hang-configure", "hang-plan", "hang-execute", "hang-probe"}
	hangers(t, x.plugins, "action", types)
	for _, g := range x.cluster.Nodes {
		for _, typ := range types {
			g.Add(fmt.Sprintf("\naction %q \"x\" { schedule = \"5s\" }\n", typ))
		}
	}
	for _, g := range x.cluster.Nodes {
		if err := g.Terminate(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	x.cluster.Start()
	x.post(x.cluster.Nodes[0], 3)
	shown := map[string]bool{} // each once: a new leader tries them again
	x.listed(x.cluster.Nodes[1], "the actions are disabled or fail", func(all map[string]listedAction) bool {
		for _, typ := range types {
			if s := all[typ].State; s == "disabled" || s == "failing" {
				shown[typ] = true
			}
		}
		return len(shown) == len(types)
	})
	text := ""
	for _, g := range x.cluster.Nodes {
		text += g.Log(1e6)
	}
	for _, typ := range types {
		if !regexp.MustCompile(`level=WARN.*main\.(hanger|\(\*action\)).*action=` + typ + `/x`).MatchString(text) {
			t.Errorf("the log lacks the goroutines of %s", typ)
		}
	}
	x.post(x.cluster.Nodes[2], 3)
}
