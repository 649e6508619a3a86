package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"
)

// reignPause is how long a leader waits before it starts over after one of its
// functions failed and no one else could take over.
const termPause = time.Second

// leadership turns raft's notices into terms: one context for each time that this
// node leads, and never two terms at once.
type leadership struct {
	mu     sync.Mutex
	term   context.Context // of the newest notice; nil before the first
	cancel context.CancelFunc
	duties []func(context.Context) error
	wake   chan struct{}
}

func newLeadership() leadership { return leadership{wake: make(chan struct{}, 1)} }

// OnLeader has duty run, in a goroutine of its own, each time that this node
// becomes the leader and has applied everything that was committed before. Its
// ctx ends with the leadership; it must then return, for the next term waits
// for it. When it returns nil the term goes on without it. When it returns an
// error while it leads, all duties are ended and the leadership is handed on;
// where no other node can take it, the duties start over after a pause.
//
// OnLeader must be called before Run.
func (n *Node) OnLeader(duty func(ctx context.Context) error) {
	n.leadership.mu.Lock()
	defer n.leadership.mu.Unlock()
	n.leadership.duties = append(n.leadership.duties, duty)
}

// followNotices takes raft's notices as they come: raft's main loop waits for it.
func (t *leadership) followNotices(notices <-chan bool, stop <-chan struct{}) {
	for {
		select {
		case leads := <-notices:
			t.noticeLeader(leads)
		case <-stop:
			t.noticeLeader(false)
			return
		}
	}
}

// renewTerm has the duties start over if this node leads.
func (t *leadership) renewTerm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term != nil && t.term.Err() == nil {
		t.beginTerm(true)
	}
}

func (t *leadership) noticeLeader(leads bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beginTerm(leads)
}

// beginTerm is called under the lock.
func (t *leadership) beginTerm(leads bool) {
	if t.cancel != nil {
		t.cancel()
	}
	if !leads {
		return
	}
	t.term, t.cancel = context.WithCancel(context.Background())
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *leadership) currentTerm() (context.Context, []func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term, t.duties
}

// serveTerms runs the duties of one term after the other.
func (t *leadership) serveTerms(n *Node, stop <-chan struct{}) {
	for {
		select {
		case <-t.wake:
		case <-stop:
			return
		}
		term, duties := t.currentTerm()
		for term.Err() == nil {
			n.serveTerm(term, duties)
		}
	}
}

// serveTerm returns when the term is over or has to start again.
func (n *Node) serveTerm(term context.Context, duties []func(context.Context) error) {
	err := n.openTerm(term, n.raft.CurrentTerm())
	if err == nil {
		err = performDuties(term, duties)
	}
	if term.Err() != nil {
		return
	}
	if err == nil {
		<-term.Done()
		return
	}
	n.logger.Error("a duty of the leader failed", "error", err)
	err = n.TransferLeadership(term)
	if err != nil && !errors.Is(err, ErrNoPeer) && term.Err() == nil {
		n.logger.Warn("the leadership could not be handed on", "error", err)
	}
	pauseFor(term, termPause)
}

// performDuties runs all duties until they have returned.
func performDuties(term context.Context, duties []func(context.Context) error) error {
	group, ctx := errgroup.WithContext(term)
	for _, duty := range duties {
		group.Go(func() error { return duty(ctx) })
	}
	return group.Wait()
}

func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Lease is how long a leader that runs, and hears from no one, goes on believing that
// it leads.
func (n *Node) Lease() time.Duration { return n.conf.leaseTimeout() }

// furthestVoter is the voter that is furthest among those that have answered lately:
// raft itself would choose one that is dead.
func (n *Node) furthestVoter() (heir Server, ok bool) {
	term, best := n.raft.CurrentTerm(), contact{}
	lately := time.Now().Add(-2 * 500 * time.Millisecond * time.Duration(n.conf.Multiplier))
	for _, m := range n.Members() {
		c := n.trans.peers.contactOf(m.ID, term)
		if !m.Voter || m.ID == n.id || c.at.Before(lately) {
			continue
		}
		if !ok || c.match > best.match || (c.match == best.match && c.at.After(best.at)) {
			heir, best, ok = m.Server, c, true
		}
	}
	return heir, ok
}

// TransferLeadership hands the leadership to the voter that is furthest, and
// returns when it has it. Commands in flight are answered first, and further
// ones wait meanwhile, so that no outcome is unknown. Errors: ErrNotLeader,
// ErrNoPeer, ErrStopped, or why the transfer failed, in which case this node goes
// on leading.
func (n *Node) TransferLeadership(ctx context.Context) error {
	switch {
	case !n.IsLeader():
		return ErrNotLeader
	case !n.hasPeer():
		return ErrNoPeer
	}
	release, err := n.holdProposals(ctx)
	if err != nil {
		return err
	}
	defer release()
	heir, ok := n.furthestVoter()
	if !ok {
		return fmt.Errorf("%w: no voter answers", ErrNoPeer)
	}
	return n.awaitEnd(ctx, n.raft.LeadershipTransferToServer(raft.ServerID(heir.ID), raft.ServerAddress(heir.Addr)).Error)
}

// awaitEnd returns what do returns, which goes on where ctx or the node ends before.
func (n *Node) awaitEnd(ctx context.Context, do func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- do() }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ended:
		return ErrStopped
	}
}
