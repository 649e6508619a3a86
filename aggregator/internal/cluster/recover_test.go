package cluster

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOneSurvivorOfThreeRecoversAndTheOthersJoinAnew(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 10)
	f.agree(numbered(0, 10), f.ships...)
	survivor, other := f.followers()[0], f.followers()[1]
	for _, s := range f.ships {
		s.kill()
	}
	before, err := Inspect(survivor.conf.DataDir)
	if err != nil || before.ID != survivor.ID() || len(before.Members) != 3 || before.Last < 10 {
		t.Fatal(before, err)
	}
	if err := Recover(survivor.conf, []Server{survivor.server()}); err != nil {
		t.Fatal(err)
	}
	after, err := Inspect(survivor.conf.DataDir)
	if err != nil || after.ID == before.ID || len(after.Members) != 1 || after.Members[0].ID != after.ID || !after.Further(before) {
		t.Fatal(after, err)
	}
	survivor.restart()
	f.say(10, 13)
	f.agree(numbered(0, 13), survivor)

	other.restart() // with its old data: two of the old three would be a quorum
	f.say(13, 15)
	if got := other.state.commands(); len(got) > 10 {
		t.Fatalf("a member of the old cluster was written to: %v", got)
	}
	other.kill()
	other.wipe()
	other.restart()
	if err := f.leader().Add(t.Context(), other.server()); err != nil {
		t.Fatal(err)
	}
	f.voters(2)
	f.agree(numbered(0, 15), survivor, other)
}

func TestARecoveryThatWasCutShortIsCarriedOnWith(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	propose(t, n.Node, "c0")
	old := n.ID()
	n.stop(t)
	conf := Config{DataDir: dir}
	self := Server{ID: old, Addr: "127.0.0.1:1"}
	p, err := newPlan(conf, self)
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if _, err := Open(Config{DataDir: dir, State: state.afterCrash()}); !errors.Is(err, ErrRecovery) {
			t.Fatal(err)
		}
	}
	check()
	offline, _, err := openOffline(conf, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.writeConfiguration(offline), offline.bolt.Close()); err != nil {
		t.Fatal(err)
	}
	check()
	if err := writeSealed(filepath.Join(dir, markerFile), marker{Node: p.To, Generation: 2}); err != nil {
		t.Fatal(err)
	}
	check()
	if i, err := Inspect(dir); err != nil || !i.Recovering {
		t.Fatal(i, err)
	}
	if err := Recover(conf, []Server{self}); err != nil {
		t.Fatal(err)
	}
	var m marker
	if err := readSealed(filepath.Join(dir, markerFile), &m); err != nil || m != (marker{p.To, 2}) {
		t.Fatal(m, err)
	}
	next := state.afterCrash()
	again := lead(t, Config{DataDir: dir, State: next, Images: next})
	propose(t, again.Node, "c1")
	if got := next.commands(); len(got) != 2 || again.ID() != p.To {
		t.Fatal(got, again.ID())
	}
}

func TestARecoveryNeedsTheRightNodeAndNobodyElse(t *testing.T) {
	dir := t.TempDir()
	n := lead(t, lone(t, dir, &memory{}))
	conf := Config{DataDir: dir, lockWait: time.Millisecond}
	self := Server{ID: n.ID(), Addr: "127.0.0.1:1"}
	if err := Recover(conf, []Server{self}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Fatal(err)
	}
	n.stop(t)
	for what, servers := range map[string][]Server{
		"nobody": nil, "two": {self, {ID: "b", Addr: "c:1"}}, "no address": {{ID: n.ID()}}, "another": {{ID: "b", Addr: "c:1"}},
	} {
		if err := Recover(conf, servers); err == nil {
			t.Error(what)
		}
	}
	if err := Recover(Config{DataDir: t.TempDir()}, []Server{self}); err == nil {
		t.Error("an empty directory was recovered")
	}
	propose(t, lead(t, lone(t, dir, &memory{})).Node, "a") // nothing has changed
}

func TestTheFurthestNodeHasTheNewestTermAndThenTheMostEntries(t *testing.T) {
	a, b, c := Inspection{LastTerm: 3, Last: 10}, Inspection{LastTerm: 2, Last: 99}, Inspection{LastTerm: 3, Last: 11}
	if !a.Further(b) || b.Further(a) || !c.Further(a) || a.Further(a) {
		t.Fatal("the order is wrong")
	}
}
