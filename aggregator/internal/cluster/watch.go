package cluster

import (
	"errors"
	"sync"
	"time"
)

// stallLimit is how long a write of the log may hang before a leader gives up
// the leadership.
const stallLimit = 5 * time.Second

// pulse knows which writes of the log are under way.
type pulse struct {
	mu   sync.Mutex
	next int
	open map[int]time.Time
}

// begin notes a write; the function that it returns ends it.
func (p *pulse) begin() (end func()) {
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

// oldest returns how long the oldest write has been under way.
func (p *pulse) oldest() time.Duration {
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
func (n *Node) LogStalled() time.Duration { return n.pulse.oldest() }

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
	if err := n.failure(); err != nil {
		return err
	}
	timer := time.NewTimer(aliveLimit * time.Duration(n.conf.Multiplier))
	defer timer.Stop()
	select {
	case <-n.ask():
		return nil
	case <-n.ended:
		return ErrStopped
	case <-timer.C:
		return errors.New("cluster: raft does not answer")
	}
}

// ask asks unless a question is open already.
func (n *Node) ask() <-chan struct{} {
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
