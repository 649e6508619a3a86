package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

func TestThreeNodesApplyTheSameCommandsInTheSameOrder(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	leader := c.leader(t)
	var last Result
	for _, cmd := range numbered(0, 50) {
		last = propose(t, leader.Node, cmd)
	}
	for _, n := range c.nodes {
		if err := n.WaitApplied(t.Context(), last.Index); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(numbered(0, 50), n.state.commands()); diff != "" {
			t.Fatal(diff)
		}
	}
	if got := len(leader.Stats().Servers); got != 3 {
		t.Fatalf("%d servers", got)
	}
}

func TestAFollowerProposesNothingAndNamesTheLeader(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	f := c.follower(t)
	if _, err := f.Propose(t.Context(), []byte("a")); !errors.Is(err, ErrNotLeader) {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"Barrier": f.Barrier(t.Context()), "Linearizable": f.Linearizable(t.Context()),
		"TransferLeadership": f.TransferLeadership(t.Context()),
	} {
		if !errors.Is(err, ErrNotLeader) {
			t.Errorf("%s: %v", what, err)
		}
	}
	leader := c.leader(t)
	eventually(t, "the follower names the leader", func() bool { return f.Leader().ID == leader.ID() })
}

func TestAFollowerReadsWhatTheLeaderHasConfirmed(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	leader, f := c.leader(t), c.follower(t)
	for _, cmd := range numbered(0, 20) {
		propose(t, leader.Node, cmd)
		index, err := leader.ReadIndex(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := f.WaitApplied(t.Context(), index); err != nil {
			t.Fatal(err)
		}
		if got := f.state.commands(); got[len(got)-1] != cmd {
			t.Fatalf("%s is not there: %v", cmd, got)
		}
	}
}

func TestATransferMovesTheLeadershipAndIsTold(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	old := c.leader(t)
	changes := c.follower(t).LeaderChanges()
	if err := old.TransferLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := c.leader(t)
	if now == old {
		t.Fatal("the same node leads")
	}
	for l := range changes {
		if l.ID == now.ID() {
			break
		}
	}
	propose(t, now.Node, "after")
}

func TestEachLeaderTermsAndEveryTermEnds(t *testing.T) {
	t.Parallel()
	var reigning, terms atomic.Int32
	c := newTrio(t, func(ctx context.Context) error {
		reigning.Add(1)
		terms.Add(1)
		<-ctx.Done()
		reigning.Add(-1)
		return nil
	})
	for range 3 {
		before := terms.Load()
		if err := c.leader(t).TransferLeadership(t.Context()); err != nil {
			t.Log(err) // the peer may lag; then the same node goes on
			continue
		}
		eventually(t, "a new term", func() bool { return terms.Load() > before })
	}
	for _, n := range c.nodes {
		n.stop(t)
	}
	if reigning.Load() != 0 || terms.Load() < 1 {
		t.Fatalf("%d reigns, %d still on", terms.Load(), reigning.Load())
	}
}

func TestAStoppedLeaderIsReplacedAndCatchesUpLater(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	old := c.leader(t)
	at := c.index(old)
	propose(t, old.Node, "c0")
	old.stop(t)
	var last Result
	now := c.leader(t)
	for _, cmd := range numbered(1, 30) {
		last = propose(t, now.Node, cmd)
	}
	c.restart(t, at)
	back := c.nodes[at]
	if err := back.WaitApplied(t.Context(), last.Index); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbered(0, 30), back.state.commands()); diff != "" || back.state.repeats > 0 {
		t.Fatal(diff)
	}
}

func TestALeaderWithoutAMajorityNeverClaimsSuccess(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	leader := c.leader(t)
	propose(t, leader.Node, "kept")
	for _, n := range c.nodes {
		if n != leader {
			n.stop(t)
		}
	}
	_, err := leader.Propose(t.Context(), []byte("doubtful"))
	if !errors.Is(err, ErrUnknownOutcome) && !errors.Is(err, ErrNotLeader) {
		t.Fatalf("Propose: %v", err)
	}
	if err := leader.Linearizable(t.Context()); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("Linearizable: %v", err)
	}
}

func TestANodeTooFarBehindGetsAnImageAndGoesOnFromThere(t *testing.T) {
	t.Parallel()
	c := newTrioOf(t, calm)
	f := c.follower(t)
	at := c.index(f)
	f.stop(t)
	leader := c.leader(t)
	rush(t, leader.Node, 0, 301)
	shortenAll(t, c, at)
	rush(t, leader.Node, 301, 400)
	first, err := leader.entries.FirstIndex()
	if err != nil || first < 100 {
		t.Fatalf("the log begins at %d, %v", first, err)
	}
	c.restart(t, at)
	last := propose(t, leader.Node, "c400")
	back := c.nodes[at]
	if err := back.WaitApplied(t.Context(), last.Index); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbered(0, 401), back.state.commands()); diff != "" || back.state.repeats > 0 {
		t.Fatalf("%d repeats, %s", back.state.repeats, diff)
	}

	back.stop(t) // and it can start from what it has
	c.restart(t, at)
	last = propose(t, c.leader(t).Node, "c401")
	if err := c.nodes[at].WaitApplied(t.Context(), last.Index); err != nil {
		t.Fatal(err)
	}
}

// shortenAll takes snapshots on the nodes that run and keeps hardly any log.
func shortenAll(t *testing.T, c *trio, but int) {
	t.Helper()
	for i, n := range c.nodes {
		if i == but {
			continue
		}
		n.conf.TrailingBytes = 1
		takeSnapshot(t, n.Node)
	}
}

func TestAnImageThatWasNotTakenInBeforeACrashIsTakenInAtTheStart(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	conf := lone(t, dir, state)
	n := lead(t, conf)
	for _, cmd := range numbered(0, 5) {
		propose(t, n.Node, cmd)
	}
	takeSnapshot(t, n.Node)
	arrive(t, n.Node)
	n.stop(t)

	lost := &memory{} // the state as it was before the image came
	again := lead(t, lone(t, dir, lost))
	propose(t, again.Node, "c5")
	if diff := cmp.Diff(numbered(0, 6), lost.commands()); diff != "" || lost.repeats > 0 {
		t.Fatal(diff)
	}
}

// arrive stores an image of the node's own state as if a leader had sent it.
func arrive(t *testing.T, n *Node) {
	t.Helper()
	newest, err := n.snaps.newestMeta()
	if err != nil {
		t.Fatal(err)
	}
	meta, r, err := n.snaps.Open(newest.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	to, size := fill(t, n, *meta, r)
	if err := errors.Join(to.Close(), to.Close()); err != nil || size != meta.Size {
		t.Fatalf("%d bytes of %d, %v", size, meta.Size, err)
	}
}

func TestALogThatConflictsWithTheLeadersSnapshotIsDroppedByARestart(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	conf := lone(t, dir, state).withDefaults()
	conf.ProgressDir = t.TempDir()
	n := newNode(conf, conf.Bootstrap[0].ID)
	if err := n.openDisk(); err != nil {
		t.Fatal(err)
	}
	for i := uint64(2); i < 12; i++ { // a tail that no majority has seen
		if err := n.entries.StoreLog(&raft.Log{Index: i, Term: 5, Data: []byte("tail")}); err != nil {
			t.Fatal(err)
		}
	}
	image := &memory{live: content{Index: 7, Term: 3, Commands: numbered(0, 3)}}
	n.machine.images = image
	n.machine.state = image
	err := receive(t, n, raft.SnapshotMeta{Version: 1, Index: 8, Term: 3, ConfigurationIndex: 1,
		Configuration: raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(n.id), Address: "here"}}}})
	if !errors.Is(err, ErrRestart) || !errors.Is(n.haltReason(), ErrRestart) {
		t.Fatal(err)
	}
	if err := n.closeDisk(); err != nil {
		t.Fatal(err)
	}
	n = newNode(conf, conf.Bootstrap[0].ID)
	if err := n.openDisk(); err != nil || n.progress.isBehind() {
		t.Fatalf("the dropped tail is missed: %v, %v", n.progress.isBehind(), err)
	}
	if err := n.closeDisk(); err != nil {
		t.Fatal(err)
	}
	again := lead(t, lone(t, dir, state))
	propose(t, again.Node, "c3")
	if diff := cmp.Diff(numbered(0, 4), state.commands()); diff != "" {
		t.Fatal(diff)
	}
}

// receive stores an image of the node's state as a snapshot that has come in.
func receive(t *testing.T, n *Node, meta raft.SnapshotMeta) error {
	t.Helper()
	r, _, err := n.snaps.liveImage(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	to, _ := fill(t, n, meta, r)
	return to.Close()
}

// fill begins a snapshot and writes the image into it.
func fill(t *testing.T, n *Node, meta raft.SnapshotMeta, image io.Reader) (to raft.SnapshotSink, size int64) {
	t.Helper()
	to, err := n.snaps.Create(meta.Version, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	if err != nil {
		t.Fatal(err)
	}
	if size, err = io.Copy(to, image); err != nil {
		t.Fatal(err)
	}
	return to, size
}

func BenchmarkPropose(b *testing.B) {
	for _, size := range []int{700, MaxEntry - 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchPropose(b, size) })
	}
}

func benchPropose(b *testing.B, size int) {
	dir := b.TempDir()
	id, err := Identity(dir)
	if err != nil {
		b.Fatal(err)
	}
	n, err := Open(Config{DataDir: dir, State: &sink0{}, Bootstrap: []Server{{ID: id, Addr: "here"}}})
	if err != nil {
		b.Fatal(err)
	}
	defer n.Shutdown(context.Background())
	for n.Linearizable(b.Context()) != nil {
	}
	b.SetBytes(int64(size))
	data := make([]byte, size)
	var all []*Proposal
	for b.Loop() {
		p, err := n.Submit(b.Context(), data)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, p)
	}
	for _, p := range all {
		if _, err := p.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// sink0 is a State that forgets.
type sink0 struct{ index, term atomic.Uint64 }

func (s *sink0) Apply(index, term uint64, _ []byte) (any, error) {
	s.index.Store(index)
	s.term.Store(term)
	return nil, nil
}
func (s *sink0) Applied() (uint64, uint64) { return s.index.Load(), s.term.Load() }
func (s *sink0) Flush() error              { return nil }
