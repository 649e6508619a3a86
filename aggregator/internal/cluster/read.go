package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// readGuard remembers the term in which this node, as the leader, has applied
// all that earlier leaders had committed. Before that its commit index may lag.
type readGuard struct{ term atomic.Uint64 }

// ReadIndex returns the index of the last command that a read which begins now
// must see, after it has made sure that this node leads, and has waited until
// that command is applied here. A follower that asks the leader for it and then
// calls WaitApplied answers linearizable reads itself.
//
// The errors are ErrNotLeader, ErrStopped and those of ctx.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if n.closing.Load() || n.haltReason() != nil {
		return 0, ErrStopped
	}
	if n.raft.State() != raft.Leader {
		return 0, ErrNotLeader
	}
	term := n.raft.CurrentTerm()
	if err := n.openTerm(ctx, term); err != nil {
		return 0, err
	}
	index := n.entries.lastCommand(n.raft.CommitIndex())
	if err := n.verifyLeader(ctx, term); err != nil {
		return 0, err
	}
	return index, n.WaitApplied(ctx, index)
}

// Linearizable returns nil when a read of the State that begins afterwards sees
// every command whose Propose had returned, on any node, before this call. It
// works on the leader only; see ReadIndex.
func (n *Node) Linearizable(ctx context.Context) error {
	_, err := n.ReadIndex(ctx)
	return err
}

// WaitApplied returns nil when the State of this node has applied the command
// at index. Errors are ErrStopped, the reason why the node halted, and those of
// ctx.
func (n *Node) WaitApplied(ctx context.Context, index uint64) error {
	return n.machine.waitApplied(ctx, index, n.ended)
}

// openTerm makes the first read of a term a write: only then is it known what
// has been committed.
func (n *Node) openTerm(ctx context.Context, term uint64) error {
	if n.reads.term.Load() == term {
		return nil
	}
	if err := n.Barrier(ctx); err != nil {
		return err
	}
	if n.raft.CurrentTerm() == term {
		n.reads.term.Store(term)
	}
	return nil
}

// verifyLeader asks a majority whether this node still leads in a term. A leader
// that is the only member needs to ask no one: without its vote there is no other.
//
// Raft is content with any answer that comes after its question, also with one to
// a heartbeat of long ago that lay in the socket while this process was paused and
// another leader was elected. So it is asked again until a majority has answered
// what was sent after this call.
func (n *Node) verifyLeader(ctx context.Context, term uint64) error {
	for began := time.Now(); ; {
		if n.raft.State() != raft.Leader {
			return ErrNotLeader
		}
		if now := n.raft.CurrentTerm(); now != term {
			return fmt.Errorf("%w: term %d ended", ErrNotLeader, term)
		}
		if n.isAlone() || n.heardSince(began, term) {
			return nil
		}
		future := n.raft.VerifyLeader()
		if err := n.awaitEnd(ctx, func() error { return questionError(future.Error()) }); err != nil {
			return err
		}
	}
}

// heardSince reports whether a majority of the voters, this node among them, has
// answered in the term what was sent to it after a moment.
func (n *Node) heardSince(moment time.Time, term uint64) bool {
	voters, heard := 0, 0
	for _, s := range n.currentServers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == raft.ServerID(n.id) || n.trans.peers.contactOf(string(s.ID), term).asked.After(moment) {
			heard++
		}
	}
	return heard > voters/2
}

// isAlone reports whether this node is the whole cluster.
func (n *Node) isAlone() bool {
	servers := n.currentServers()
	return len(servers) == 1 && servers[0].ID == raft.ServerID(n.id)
}

// currentServers returns the newest configuration that this node knows.
func (n *Node) currentServers() []raft.Server {
	return n.raft.GetConfiguration().Configuration().Servers
}

// hasPeer reports whether another voter could lead.
func (n *Node) hasPeer() bool {
	for _, s := range n.currentServers() {
		if s.Suffrage == raft.Voter && s.ID != raft.ServerID(n.id) {
			return true
		}
	}
	return false
}
