//go:build e2e

package faults_test

import (
	"fmt"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/faults"
)

// onOneSite is how many cycles a site goes through; then there is a new one with
// the next seed, since a site that has seen more takes longer to compare.
const onOneSite = 100

// dropping has what nothing shows any more leave the database and the raft log all the time, so
// that faults come in the midst of it, and who was away needs an image.
const dropping = `compaction {
  every = "1s"
  keep  = "1s"
  whole = "1s"
  files = "2s"
}`

func TestSite_Faults_CountEachRecordOnce(t *testing.T) {
	t.Parallel()
	for seed, left := *seed, *cycles; left > 0 && !t.Failed(); seed, left = seed+1, left-onOneSite {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := faults.NewSite(t, faults.Plan{Nodes: *nodes, Agents: 3, Seed: seed, Settings: dropping})
			c := faults.NewCampaign(t, s, seed)
			c.Begin()
			c.Run(faults.Schedule(seed, min(left, onOneSite), *nodes, 3, faults.Kind(*only)))
		})
	}
}

func TestSite_DamagedFiles_AreRefusedOrHealed(t *testing.T) {
	t.Parallel()
	s := faults.NewSite(t, faults.Plan{Nodes: *nodes, Agents: 2, Seed: *seed})
	c := faults.NewCampaign(t, s, *seed)
	c.Begin()
	c.Run(faults.Schedule(*seed, *flips, *nodes, 2, faults.Flip))
}
