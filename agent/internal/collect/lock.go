package collect

import (
	"context"
	"sync"
)

// priority is what the lock is held for. A greater one interrupts a smaller one.
type priority int

const (
	audit priority = iota
	collection
	recollection
	exchange
)

// sourceLock lets one holder at a time speak with the plugin.
type sourceLock struct {
	busy sync.Mutex

	mu     sync.Mutex
	wanted [exchange + 1]int // holders that wait or have it, by priority
	holder priority
	cancel context.CancelFunc // of the holder; nil when there is none
}

// lockSource waits for the lock and interrupts a holder of smaller priority. The context
// ends with ctx, and when someone of greater priority wants the lock. The caller calls leave.
func (l *Loop) lockSource(ctx context.Context, as priority) (run context.Context, leave func()) {
	run, cancel := context.WithCancel(ctx)
	l.lock.announce(as)
	l.lock.busy.Lock()
	l.lock.setHolder(as, cancel)
	return run, func() {
		cancel()
		l.lock.release(as)
		l.lock.busy.Unlock()
	}
}

// announce notes that someone waits for the lock, and interrupts a smaller holder.
func (l *sourceLock) announce(as priority) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted[as]++
	if l.cancel != nil && l.holder < as {
		l.cancel()
	}
}

// setHolder notes who has the lock; someone of greater priority may have come meanwhile.
func (l *sourceLock) setHolder(as priority, cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder, l.cancel = as, cancel
	for greater := as + 1; greater <= exchange; greater++ {
		if l.wanted[greater] > 0 {
			cancel()
		}
	}
}

func (l *sourceLock) release(as priority) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted[as]--
	l.cancel = nil
}

// Exchange runs fn while no one speaks with the plugin, so that fn can put
// another one in its place. What goes on is interrupted; a collection goes on
// from its checkpoint afterwards.
func (l *Loop) Exchange(ctx context.Context, fn func()) {
	_, leave := l.lockSource(ctx, exchange)
	defer leave()
	fn()
}
