//go:build e2e

package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/faults"
)

// A machine that lies about syncs is the mutation that the harness has to find:
// the same programs and the same power cuts, and only fsync is off.

func TestHarness_AggregatorsDoNotSync_SeesLoss(t *testing.T) {
	t.Parallel()
	for _, liar := range []bool{false, true} {
		t.Run(fmt.Sprintf("liar=%t", liar), func(t *testing.T) {
			s := faults.NewSite(t, faults.Plan{Nodes: *nodes, Agents: 1, Seed: *seed, Liar: liar})
			c := faults.NewCampaign(t, s, *seed)
			c.Begin()
			plan := []faults.Cycle{{Jobs: 100}, {Jobs: 100, Faults: []faults.Fault{{Kind: faults.CutAll, Whom: faults.Leader, After: time.Second}}}, {Jobs: 100}}
			expect(t, c.Try(plan), liar)
		})
	}
}

// expect checks that the harness found something when and only when it had to.
func expect(t *testing.T, err error, found bool) {
	t.Helper()
	switch {
	case found && err == nil:
		t.Error("nothing was found with fsync off")
	case found:
		t.Log("found, as it has to be:", err)
	case err != nil:
		t.Error(err)
	}
}

func TestHarness_AgentDoesNotSync_SeesLoss(t *testing.T) {
	t.Parallel()
	for _, liar := range []bool{false, true} {
		t.Run(fmt.Sprintf("liar=%t", liar), func(t *testing.T) {
			s := faults.NewSite(t, faults.Plan{Nodes: 1, Agents: 1, Seed: *seed, Liar: liar})
			c := faults.NewCampaign(t, s, *seed)
			agent := s.Agents[0]
			if err := agent.Jobs.Write(500); err != nil {
				t.Fatal(err)
			}
			agent.Start()
			s.Eventually("the agent has collected all", func() (bool, string) {
				out, err := s.Run("bursar-agent", "status", "-config", filepath.Join(s.Dir, agent.Name+".hcl"), "-format", "json")
				return strings.Contains(out, `"records":500`) || strings.Contains(out, `"records": 500`), fmt.Sprint(out, err)
			})
			// The scheduler forgets; from now on only the agent knows.
			if err := os.Remove(filepath.Join(s.Dir, agent.Name+".ndjson")); err != nil {
				t.Fatal(err)
			}
			if err := agent.Cut(); err != nil {
				t.Fatal(err)
			}
			agent.Start()
			s.Nodes[0].Start()
			within := faults.Recovery
			if liar {
				within = 5 * time.Second // what is lost does not come
			}
			expect(t, c.Settle(within), liar)
		})
	}
}
