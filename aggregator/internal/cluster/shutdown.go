package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits of an orderly end.
const (
	shutdownLimit = 30 * time.Second // Run's, for all of it
	transferLimit = 5 * time.Second
	drainLimit    = 5 * time.Second
)

// Shutdown ends the node: the duties of the leader are ended, the leadership is
// handed to a peer if there is one, commands in flight are awaited, raft stops,
// the State is flushed, and the files are closed. A second call waits for the
// first. It returns why the node had halted, or what went wrong at the end; when
// ctx ends early the rest is cut short, which costs nothing but time at the next
// start. The State may be closed afterwards.
func (n *Node) Shutdown(ctx context.Context) error {
	n.stopOnce.Do(func() {
		n.stopErr = n.shutdownRaft(ctx)
		close(n.ended)
	})
	<-n.ended
	return n.stopErr
}

func (n *Node) shutdownRaft(ctx context.Context) error {
	n.leadership.noticeLeader(false)
	if n.haltReason() == nil {
		n.passLeadership(ctx)
	}
	n.closing.Store(true)
	n.drainProposals(ctx)
	close(n.stopping)
	n.serveImages(nil)
	n.settleChange(ctx)
	err := n.stopRaft(ctx)
	n.tasks.Wait()
	n.news.closeNews()
	n.measure.unregisterMetrics()
	if halted := n.haltReason(); halted != nil {
		return halted
	}
	return err
}

// passLeadership spares the others an election.
func (n *Node) passLeadership(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	err := n.TransferLeadership(ctx)
	if err != nil && !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrNoPeer) {
		n.logger.Warn("the leadership could not be handed on before the end", "error", err)
	}
}

// holdProposals waits until nothing is in flight and keeps everyone from proposing until
// release is called.
func (n *Node) holdProposals(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	select {
	case n.holding <- struct{}{}:
	case <-ctx.Done():
		return nil, errHold(ctx)
	}
	held := 0
	release = func() {
		for range held {
			n.freeSlot()
		}
		<-n.holding
	}
	for range cap(n.slots) {
		select {
		case n.slots <- struct{}{}:
			held++
		case <-ctx.Done():
			release()
			return nil, errHold(ctx)
		case <-n.ended:
			release()
			return nil, ErrStopped
		}
	}
	return release, nil
}

func errHold(ctx context.Context) error {
	return fmt.Errorf("cluster: commands in flight do not end: %w", ctx.Err())
}

// drainProposals waits until raft has answered what it was given: it forgets to answer
// what still waits when it stops.
func (n *Node) drainProposals(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	for range cap(n.slots) {
		select {
		case n.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// settleChange waits until raft has answered about the change of the members
// that is under way, if any, for the same reason.
func (n *Node) settleChange(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	select {
	case n.changing <- struct{}{}:
	case <-ctx.Done():
	}
}

// stopRaft stops raft, then makes the State durable and closes the log.
func (n *Node) stopRaft(ctx context.Context) error {
	stopped := make(chan error, 1)
	future := n.raft.Shutdown()
	go func() { stopped <- future.Error() }()
	select {
	case err := <-stopped:
		if err != nil {
			return fmt.Errorf("cluster: stop raft: %w", err)
		}
	case <-ctx.Done():
		// The log stays open: a goroutine of raft still uses it.
		return fmt.Errorf("cluster: stop raft: %w", ctx.Err())
	}
	return errors.Join(n.lastFlush(), n.closeDisk())
}

func (n *Node) lastFlush() error {
	if _, err := n.machine.statePosition(); err != nil {
		return nil //nolint:nilerr // the State is not to be touched any more
	}
	if err := n.conf.State.Flush(); err != nil {
		return fmt.Errorf("cluster: flush the state: %w", err)
	}
	return nil
}

// Snapshot flushes the State and shortens the log now, as the node does by
// itself when LogBytes have come in. Nothing to do is no error.
func (n *Node) Snapshot(ctx context.Context) error {
	if n.closing.Load() || n.haltReason() != nil {
		return ErrStopped
	}
	return n.awaitEnd(ctx, n.shortenLog)
}
