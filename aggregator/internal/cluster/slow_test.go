package cluster

import (
	"context"
	"errors"
	"testing"
)

// gated is a State that applies only when it is let.
type gated struct {
	memory
	gate  chan struct{}
	flush error
}

func (g *gated) Apply(index, term uint64, data []byte) (any, error) {
	<-g.gate
	return g.memory.Apply(index, term, data)
}

func (g *gated) Flush() error { return errors.Join(g.flush, g.memory.Flush()) }

func openGated(t *testing.T, g *gated, inFlight int) *Node {
	t.Helper()
	conf := lone(t, t.TempDir(), &g.memory)
	conf.State, conf.MaxInFlight = g, inFlight
	n, err := Open(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Shutdown(context.Background()) })
	eventually(t, "leads", n.IsLeader)
	return n
}

func TestAProposerThatStopsWaitingIsToldThatTheOutcomeIsUnknown(t *testing.T) {
	g := &gated{gate: make(chan struct{})}
	n := openGated(t, g, 4)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := n.Submit(ctx, []byte("slow"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Wait(ctx); !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(g.gate)
	if res, err := p.Wait(t.Context()); err != nil || res.Value != 1 {
		t.Fatal(res, err) // it was applied after all
	}
}

func TestNoMoreThanTheLimitIsInFlight(t *testing.T) {
	g := &gated{gate: make(chan struct{})}
	n := openGated(t, g, 2)
	var all []*Proposal
	for _, c := range numbered(0, 2) {
		p, err := n.Submit(t.Context(), []byte(c))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	third := make(chan error, 1)
	go func() {
		_, err := n.Propose(t.Context(), []byte("c2"))
		third <- err
	}()
	if got := n.Stats().InFlight; got != 2 {
		t.Fatalf("%d in flight", got)
	}
	close(g.gate)
	for _, p := range all {
		if _, err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-third; err != nil {
		t.Fatal(err)
	}
}

func TestAStateThatCannotFlushKeepsTheLogAndStopsTheNode(t *testing.T) {
	g := &gated{gate: make(chan struct{}), flush: errBroken}
	close(g.gate)
	n := openGated(t, g, 4)
	propose(t, n, "a")
	if err := n.Snapshot(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if err := n.Run(t.Context()); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if left, err := n.snaps.listMetas(); len(left) > 0 || err != nil {
		t.Fatal(left, err)
	}
}
