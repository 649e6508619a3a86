//go:build e2e

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func TestTheDefaultMappingSaysTheTimeLimitOfRunningJobsOnly(t *testing.T) {
	c := rig.Slurm(t, rig.Host)
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: fmt.Sprintf("source \"slurm\" \"rig\" {\n  config {\n    sacct = %q\n    lag   = \"0s\"\n  }\n}\n", c.SacctPath())})
	limited := c.Submit(rig.Alice, "-t", "10", "--wrap", "sleep 600")
	c.WaitState(limited, "RUNNING")
	said := func() (limits []string) {
		agent.CollectOnce()
		for _, f := range agent.Frames() {
			if f.Kind == wire.KindRecord && f.Record.ID == "rig-"+limited {
				limits = append(limits, fmt.Sprint(f.Record.Open(), f.Record.Meta.Get("time_limit")))
			}
		}
		return limits
	}
	if got := said(); len(got) != 1 || got[0] != "true [600]" {
		t.Errorf("while it runs: %v", got)
	}
	c.Scancel(rig.Alice, limited)
	c.WaitState(limited, "CANCELLED")
	if got := said(); len(got) != 2 || got[1] != "false []" {
		t.Errorf("when it has ended: %v", got)
	}
}
