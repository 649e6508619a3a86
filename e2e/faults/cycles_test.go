//go:build e2e

package faults_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/e2e/faults"
)

func TestNoFaultLosesOrDoublesARecord(t *testing.T) {
	s := faults.NewSite(t, faults.Plan{Nodes: *nodes, Agents: 3, Seed: *seed})
	c := faults.NewCampaign(t, s, *seed)
	c.Begin()
	c.Run(faults.Schedule(*seed, *cycles, *nodes, 3, faults.Kind(*only)))
}

func TestADamagedFileIsRefusedOrHealedAndNeverBelieved(t *testing.T) {
	s := faults.NewSite(t, faults.Plan{Nodes: *nodes, Agents: 2, Seed: *seed})
	c := faults.NewCampaign(t, s, *seed)
	c.Begin()
	c.Run(faults.Schedule(*seed, *flips, *nodes, 2, faults.Flip))
}
