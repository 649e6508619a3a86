//go:build e2e

package runbooks

import (
	"slices"
	"strings"
	"testing"
)

func TestRunbook_AuthorityReplaced_FailsNoRequest(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.comesIn(e.makeThief("honest", "srv/bursar-ca"), true)
	l := e.startLoad()
	l.awaitMore(20)
	renewal := commandBlocks(t, "Certificates are renewed")
	before := e.runAsAdmin(renewal[1])
	e.runAsAdmin(renewal[0])
	e.awaitChanged(before)
	l.awaitRenewed()

	mallory := e.makeThief("mallory", "srv/bursar-ca")
	raft, agent := e.holdConnections(mallory)
	steps := commandBlocks(t, "The authority is replaced")
	e.runAsAdmin(steps[0])
	e.awaitShown("by bursar 1", "trusts bursar 1, bursar 2")
	l.awaitRenewed()
	e.jobs.Write(20)
	e.runAsAdmin(steps[1])
	e.awaitShown("by bursar 2", "trusts bursar 1, bursar 2")
	l.awaitRenewed()
	e.jobs.Write(20)
	e.comesIn(mallory, true)
	e.runAsAdmin(steps[2])
	e.site.Eventually("each daemon trusts the new authority alone", func() (bool, string) {
		out, err := e.tryAsAdmin(renewal[1])
		return err == nil && strings.Count(out, "trusts bursar 2\n") == 7, out
	})
	l.awaitMore(20)
	e.jobs.Write(20)

	e.comesIn(mallory, false)
	e.comesIn(e.makeThief("now", "srv/bursar-ca-2"), true)
	e.awaitEnd(raft)
	e.awaitEnd(agent)
	e.onlyEnded("aggregator/mallory")
	l.awaitMore(20)
	e.jobs.Count += l.endLoad()
	e.awaitWhole(e.nodes...)
	if now := e.runningPIDs(); !slices.Equal(now, e.pids) {
		t.Errorf("the processes were %v and are %v", e.pids, now)
	}
}

func TestRunbook_AuthorityKeyStolen_Holds(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	mallory := e.makeThief("mallory", "srv/bursar-ca")
	raft, agent := e.holdConnections(mallory)
	e.runAsAdmin(commandBlocks(t, "The authority's key was stolen")[0])
	e.awaitShown("by bursar 2", "trusts bursar 2")
	e.comesIn(mallory, false)
	e.comesIn(e.makeThief("now", "srv/bursar-ca-2"), true)
	e.awaitEnd(raft)
	e.awaitEnd(agent)
	e.jobs.Write(100)
	e.awaitWhole(e.nodes...)
	if now := e.runningPIDs(); !slices.Equal(now, e.pids) {
		t.Errorf("the processes were %v and are %v", e.pids, now)
	}
}
