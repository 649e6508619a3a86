package cluster

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// stallLimit is how long a write of the log may hang before a leader gives up
// the leadership.
const stallLimit = 5 * time.Second

// logWrites knows which writes of the log are under way.
type logWrites struct {
	mu   sync.Mutex
	next int
	open map[int]time.Time
}

// beginWrite notes a write; the function that it returns ends it.
func (p *logWrites) beginWrite() (end func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[int]time.Time{}
	}
	p.next++
	id := p.next
	p.open[id] = time.Now()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, id)
	}
}

// oldestWrite returns how long the oldest write has been under way.
func (p *logWrites) oldestWrite() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var most time.Duration
	for _, begun := range p.open {
		most = max(most, time.Since(begun))
	}
	return most
}

// LogStalled returns how long the oldest write of the raft log has been hanging;
// 0 when none is under way.
func (n *Node) LogStalled() time.Duration { return n.writes.oldestWrite() }

// watchLog has another node lead when this one's log takes no writes: raft would
// go on sending heartbeats and lead for ever (hashicorp/raft #503). Its main loop
// may be what hangs, so the heir is told directly; mute keeps this node quiet
// until the write has ended.
func (n *Node) watchLog() {
	every := n.conf.stall / 10
	for tick := time.NewTicker(every); ; {
		select {
		case <-n.stopping:
			tick.Stop()
			return
		case <-n.halted:
			tick.Stop()
			return
		case <-tick.C:
		}
		if n.raft.State() == raft.Leader && n.LogStalled() > n.conf.stall {
			n.passLeadershipToFurthest()
			waitOrStop(n.conf.stall, n.stopping)
		}
	}
}

// waitOrStop returns false when stop came first.
func waitOrStop(d time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

// passLeadershipToFurthest tells the voter that is furthest to stand for election.
func (n *Node) passLeadershipToFurthest() {
	heir, ok := n.furthestVoter()
	if !ok {
		return
	}
	n.logger.Error("the raft log takes no writes: another node shall lead", "stalled", n.LogStalled(), "heir", heir.ID)
	req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3}}
	err := n.trans.TimeoutNow(raft.ServerID(heir.ID), raft.ServerAddress(heir.Addr), req, new(raft.TimeoutNowResponse))
	if err != nil {
		n.logger.Warn("the next leader could not be notified", "heir", heir.ID, "error", err)
	}
}

// aliveLimit is how long raft's main loop may take to answer.
const aliveLimit = 5 * time.Second

// probe is a question to raft's main loop.
type probe struct {
	mu      sync.Mutex
	waiting chan struct{} // closed when the answer is there; nil when none is asked
}

// Alive returns nil when raft's main loop answers within a few seconds: for the
// watchdog of the service manager. It says nothing of the cluster.
func (n *Node) Alive() error {
	if err := n.haltReason(); err != nil {
		return err
	}
	if n.closing.Load() {
		return ErrStopped // raft would not always answer any more
	}
	timer := time.NewTimer(aliveLimit * time.Duration(n.conf.Multiplier))
	defer timer.Stop()
	select {
	case <-n.askOnce():
		return nil
	case <-n.ended:
		return ErrStopped
	case <-timer.C:
		return errors.New("cluster: raft does not answer")
	}
}

// askOnce asks unless a question is open already.
func (n *Node) askOnce() <-chan struct{} {
	n.probe.mu.Lock()
	defer n.probe.mu.Unlock()
	if n.probe.waiting != nil {
		return n.probe.waiting
	}
	done := make(chan struct{})
	n.probe.waiting = done
	go func() {
		_ = n.raft.VerifyLeader().Error() // any answer is one
		n.probe.mu.Lock()
		n.probe.waiting = nil
		n.probe.mu.Unlock()
		close(done)
	}()
	return done
}
