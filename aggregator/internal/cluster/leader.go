package cluster

import (
	"sync"

	"github.com/hashicorp/raft"
)

// leaderNews tells subscribers who leads.
type leaderNews struct {
	mu     sync.Mutex
	last   Leader
	subs   []chan Leader
	closed bool
}

// IsLeader reports whether this node believes that it leads. It may be wrong
// for a moment: only Propose and ReadIndex know.
func (n *Node) IsLeader() bool { return n.raft.State() == raft.Leader }

// Leader returns who leads as far as this node knows.
func (n *Node) Leader() Leader {
	addr, id := n.raft.LeaderWithID()
	return Leader{ID: string(id), Addr: string(addr)}
}

// LeaderChanges returns a new channel that holds the newest Leader that its
// reader has not seen yet, beginning with the present one. It is closed when the
// node ends.
func (n *Node) LeaderChanges() <-chan Leader {
	ch := make(chan Leader, 1)
	n.news.mu.Lock()
	defer n.news.mu.Unlock()
	if n.news.closed {
		close(ch)
		return ch
	}
	n.news.last = n.Leader()
	ch <- n.news.last
	n.news.subs = append(n.news.subs, ch)
	return ch
}

// startFollowing follows raft's observations until the node stops.
func (l *leaderNews) startFollowing(n *Node) {
	seen := make(chan raft.Observation, 1)
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	n.raft.RegisterObserver(observer)
	n.tasks.Go(func() {
		defer n.raft.DeregisterObserver(observer)
		for {
			select {
			case <-seen: // a full channel drops some, so ask for the newest
				l.tellLeader(n.Leader())
			case <-n.stopping:
				return
			}
		}
	})
}

func (l *leaderNews) tellLeader(leader Leader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if leader == l.last {
		return
	}
	l.last = leader
	for _, ch := range l.subs {
		select {
		case <-ch: // the reader will see the newer one
		default:
		}
		ch <- leader
	}
}

func (l *leaderNews) closeNews() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, ch := range l.subs {
		close(ch)
	}
	l.subs = nil
}
