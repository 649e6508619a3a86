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
	e.comesIn(e.thief("honest", "srv/bursar-ca"), true)
	l := e.load()
	l.more(20)
	renewal := blocks(t, "Certificates are renewed")
	before := e.admin(renewal[1])
	e.admin(renewal[0])
	e.changed(before)
	l.renewed()

	mallory := e.thief("mallory", "srv/bursar-ca")
	raft, agent := e.dwell(mallory)
	steps := blocks(t, "The authority is replaced")
	e.admin(steps[0])
	e.show("by bursar 1", "trusts bursar 1, bursar 2")
	l.renewed()
	e.jobs.Write(20)
	e.admin(steps[1])
	e.show("by bursar 2", "trusts bursar 1, bursar 2")
	l.renewed()
	e.jobs.Write(20)
	e.comesIn(mallory, true)
	e.admin(steps[2])
	e.site.Eventually("each daemon trusts the new authority alone", func() (bool, string) {
		out, err := e.try(renewal[1])
		return err == nil && strings.Count(out, "trusts bursar 2\n") == 7, out
	})
	l.more(20)
	e.jobs.Write(20)

	e.comesIn(mallory, false)
	e.comesIn(e.thief("now", "srv/bursar-ca-2"), true)
	e.ends(raft)
	e.ends(agent)
	e.onlyEnded("aggregator/mallory")
	l.more(20)
	e.jobs.Count += l.end()
	e.whole(e.nodes...)
	if now := e.running(); !slices.Equal(now, e.pids) {
		t.Errorf("the processes were %v and are %v", e.pids, now)
	}
}

func TestRunbook_AuthorityKeyStolen_Holds(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	mallory := e.thief("mallory", "srv/bursar-ca")
	raft, agent := e.dwell(mallory)
	e.admin(blocks(t, "The authority's key was stolen")[0])
	e.show("by bursar 2", "trusts bursar 2")
	e.comesIn(mallory, false)
	e.comesIn(e.thief("now", "srv/bursar-ca-2"), true)
	e.ends(raft)
	e.ends(agent)
	e.jobs.Write(100)
	e.whole(e.nodes...)
	if now := e.running(); !slices.Equal(now, e.pids) {
		t.Errorf("the processes were %v and are %v", e.pids, now)
	}
}
