package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Install has all nodes replace their State by the image in dir, which is what
// Images.Checkpoint writes, of this cluster or another, of now or long ago. It
// works on the leader only and is ordered with all commands: those whose Propose
// has returned come before, and are lost with the old State; later ones see the
// new one. It returns when the State of this node is the new one; a majority has
// the image then, and the others fetch it. The duties of the leader start over.
//
// dir is only read. A damaged image, or one that the State does not take, is
// refused before anything has changed. Errors: ErrCorrupt, ErrFormat,
// ErrNotLeader, ErrQuorum when too few voters have taken the image,
// ErrUnknownOutcome when the node lost the leadership meanwhile.
func (n *Node) Install(ctx context.Context, dir string) error {
	switch {
	case n.conf.Images == nil:
		return errors.New("cluster: install: this node cannot take images")
	case !n.IsLeader():
		return ErrNotLeader
	case !n.installing.TryLock():
		return fmt.Errorf("cluster: install: %w", errBusy)
	}
	defer n.installing.Unlock()
	o, err := n.prepareImage(dir)
	if err != nil {
		return fmt.Errorf("cluster: install: %w", err)
	}
	if err := n.spreadImage(ctx, o); err != nil {
		return fmt.Errorf("cluster: install: %w", err)
	}
	if err := n.commitOrder(ctx, o); err != nil {
		return err
	}
	n.logger.Info("the state has been replaced by an image", "sha256", o.SHA256, "bytes", o.Size)
	n.leadership.renewTerm()
	return nil
}

// prepareImage packs the image and has the State look at it.
func (n *Node) prepareImage(dir string) (order, error) {
	o, err := n.imageStore.packImage(dir)
	if err != nil {
		return o, err
	}
	return o, n.machine.tryImage(o)
}

// spreadImage gives the image to all members and returns when a majority of the
// voters has it on disk.
func (n *Node) spreadImage(ctx context.Context, o order) error {
	var mu sync.Mutex
	var tasks sync.WaitGroup
	members := n.Members()
	has, voters := 0, 0
	var problems []error
	for _, m := range members {
		if m.Voter {
			voters++
		}
		tasks.Go(func() {
			err := n.sendImageTo(ctx, m.Server, o)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				problems = append(problems, fmt.Errorf("node %s: %w", m.ID, err))
			case m.Voter:
				has++
			}
		})
	}
	tasks.Wait()
	if has < voters/2+1 {
		return fmt.Errorf("%w: %d of %d voters have taken the image: %w", ErrQuorum, has, voters, errors.Join(problems...))
	}
	for _, err := range problems {
		n.logger.Warn("a member has not taken the image and will fetch it", "error", err)
	}
	return ctx.Err()
}

// commitOrder puts the order into the log, alone: nothing else is in flight.
func (n *Node) commitOrder(ctx context.Context, o order) error {
	data, err := o.encodeOrder()
	if err != nil {
		return fmt.Errorf("cluster: install: %w", err)
	}
	release, err := n.holdProposals(ctx)
	if err != nil {
		return err
	}
	defer release()
	future := n.raft.ApplyLog(raft.Log{Data: data, Extensions: unsealedCommand(entryInstall)}, timeLeft(ctx))
	p := &Proposal{node: n, done: make(chan struct{})}
	n.tasks.Go(func() { p.settleOutcome(future, time.Now()) })
	_, err = p.Wait(ctx)
	return err
}

// serveImages begins, or ends, to hand images to the peers.
func (n *Node) serveImages(serve func(greeting, *Conn)) {
	if s, ok := n.conf.Stream.(*raftStream); ok {
		s.t.serveImages(serve)
	}
}

// fetchImage gets the image of an order that is committed, from whichever member has
// it. Nothing can be applied before.
func (n *Node) fetchImage(o order) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	<-n.begun
	go func() {
		select {
		case <-n.stopping:
		case <-n.halted:
		case <-ctx.Done():
		}
		cancel()
	}()
	for round := 0; !n.imageStore.hasImage(o); round++ {
		if ctx.Err() != nil {
			return ErrStopped
		}
		if round > 0 {
			pauseFor(ctx, n.conf.fetchPause)
		}
		if err := n.fetchOnce(ctx, o); err != nil && ctx.Err() == nil {
			n.wanting.Tell(n.logger, slog.LevelWarn, "the image that replaces the state is not here yet", "error", err)
			if errors.Is(err, errNowhere) && round >= fetchRounds {
				return fmt.Errorf("%w: %w", ErrImageGone, err)
			}
		}
	}
	return nil
}

const (
	// fetchPause lies between two rounds of questions for an image.
	fetchPause = time.Second
	// fetchRounds is how often all members must say that they do not have it.
	fetchRounds = 10
)

// errNowhere: every other member has answered that it does not have the image.
var errNowhere = errors.New("no member has the image")

func (n *Node) fetchOnce(ctx context.Context, o order) error {
	members := slices.DeleteFunc(n.Members(), func(m Member) bool { return m.ID == n.id })
	without := 0
	var problems []error
	for _, m := range members {
		err := n.fetchFrom(ctx, m.Server, o)
		if err == nil {
			return nil
		}
		if errors.Is(err, errNotHere) {
			without++
		}
		problems = append(problems, fmt.Errorf("node %s: %w", m.ID, err))
	}
	if without == len(members) {
		problems = append(problems, errNowhere)
	}
	return errors.Join(problems...)
}
