package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Proposal is a command on its way through the log.
type Proposal struct {
	node   *Node
	done   chan struct{}
	result Result
	err    error
}

// Propose has data committed and applied and returns what became of it. data
// must not be changed by anyone afterwards, whatever is returned.
//
// ErrNotLeader, ErrTooLarge, ErrStopped and a bare context error say that
// nothing was proposed. ErrUnknownOutcome says that it may have been.
func (n *Node) Propose(ctx context.Context, data []byte) (Result, error) {
	p, err := n.Submit(ctx, data)
	if err != nil {
		return Result{}, err
	}
	return p.Wait(ctx)
}

// Submit hands data to raft and does not wait for it. Commands that one
// goroutine submits take their places in the log in that order, though one may
// fail and a later one succeed. It waits while MaxInFlight commands are on their
// way. The errors are those of Propose, except that ErrUnknownOutcome, and
// ErrNotLeader when leadership was lost meanwhile, come from Wait.
func (n *Node) Submit(ctx context.Context, data []byte) (*Proposal, error) {
	if len(data) > MaxEntry {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(data), MaxEntry)
	}
	if err := n.takeSlot(ctx); err != nil {
		return nil, err
	}
	if n.raft.State() != raft.Leader {
		n.freeSlot()
		return nil, ErrNotLeader
	}
	begun := time.Now()
	future := n.raft.Apply(data, timeLeft(ctx))
	p := &Proposal{node: n, done: make(chan struct{})}
	go p.followApply(future, begun)
	return p, nil
}

// takeSlot waits for room among the commands in flight.
func (n *Node) takeSlot(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case n.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.halted:
		return ErrStopped
	case <-n.ended:
		return ErrStopped
	}
	if n.closing.Load() || n.haltReason() != nil {
		n.freeSlot()
		return ErrStopped
	}
	return nil
}

func (n *Node) freeSlot() { <-n.slots }

// timeLeft is the time in which raft must accept a command; 0 is for ever.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(end), time.Nanosecond)
}

// followApply waits for raft's answer; it is the only one that frees the slot, so
// that what no one waits for any more still counts as in flight.
func (p *Proposal) followApply(future raft.ApplyFuture, begun time.Time) {
	defer p.node.freeSlot()
	p.settleOutcome(future, begun)
}

func (p *Proposal) settleOutcome(future raft.ApplyFuture, begun time.Time) {
	defer close(p.done)
	if err := future.Error(); err != nil {
		p.err = proposeError(err)
		return
	}
	p.node.measure.commit.Observe(time.Since(begun).Seconds())
	out, ok := future.Response().(outcome)
	switch {
	case !ok:
		p.err = fmt.Errorf("%w: no answer from the state", ErrUnknownOutcome)
	case out.err != nil:
		p.err = fmt.Errorf("%w: %w", ErrUnknownOutcome, out.err)
	default:
		p.result = Result{Index: future.Index(), Value: out.value}
	}
}

// proposeError sorts raft's errors into those after which nothing can have
// happened and all others.
func proposeError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return ErrNotLeader
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return context.DeadlineExceeded
	default:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
}

// Wait returns what became of the command. When ctx ends first the outcome is
// unknown; Wait may be called again.
func (p *Proposal) Wait(ctx context.Context) (Result, error) {
	select {
	case <-p.done:
		return p.result, p.err
	default:
	}
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return Result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err())
	case <-p.node.ended:
	}
	select {
	case <-p.done: // both were ready
		return p.result, p.err
	default:
		return Result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, ErrStopped)
	}
}

// Barrier returns when everything that was proposed before, by any leader, has
// been applied on this node, which must lead. The errors are those of Propose;
// the barrier itself changes nothing.
func (n *Node) Barrier(ctx context.Context) error {
	if err := n.takeSlot(ctx); err != nil {
		return err
	}
	future := n.raft.Barrier(timeLeft(ctx))
	return n.awaitEnd(ctx, func() error {
		defer n.freeSlot()
		return questionError(future.Error())
	})
}

// questionError is of a question that changes nothing, so that no outcome is unknown.
func questionError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrStopped
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return context.DeadlineExceeded
	default:
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
}
