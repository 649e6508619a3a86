//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

func TestThirdParty_SourceAddedByReload_Collects(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	jobs := s.Jobs()
	jobs.Write(2000)
	plugins := filepath.Join(s.Dir, "plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: jobs.Source(), Plugins: []string{plugins}})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	jobs.Arrive(agg)
	pid := agent.PID()

	build := exec.Command("go", "build", "-o", filepath.Join(plugins, "bursar-source-example"), "github.com/bursar-accounting/bursar/plugins/source/example")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := s.Write("third.txt", "1 alice 1760000000 1760000060\n2 bob 1760000000 1760000120\n")
	agent.Reload(jobs.Source() + fmt.Sprintf("\nsource \"example\" \"third\" {\n  interval = \"1s\"\n  config { path = %q }\n}\n", lines))
	jobs.Write(1000)
	agg.AwaitRecords(int64(jobs.Count) + 2)
	if _, ok := agg.ByID()["third-2"]; !ok {
		t.Error("the plugin's records are not there")
	}
	if agent.Ended() || agent.PID() != pid {
		t.Error("the agent was restarted")
	}
}
