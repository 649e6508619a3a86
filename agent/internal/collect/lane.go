package collect

import (
	"context"
	"sync"
)

// use is what the lane is entered for. A greater use interrupts a smaller one.
type use int

const (
	audit use = iota
	collection
	recollection
	exchange
)

// lane lets one user at a time speak with the plugin.
type lane struct {
	busy sync.Mutex

	mu     sync.Mutex
	wanted [exchange + 1]int // users that wait or are in, by use
	inside use
	cancel context.CancelFunc // of the user inside; nil when there is none
}

// enter waits for the lane and interrupts a smaller use that is in it. The
// context ends with ctx, and when a greater use wants the lane. The caller calls
// leave.
func (l *Loop) enter(ctx context.Context, as use) (run context.Context, leave func()) {
	run, cancel := context.WithCancel(ctx)
	l.lane.want(as)
	l.lane.busy.Lock()
	l.lane.take(as, cancel)
	return run, func() {
		cancel()
		l.lane.leave(as)
		l.lane.busy.Unlock()
	}
}

func (l *lane) want(as use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted[as]++
	if l.cancel != nil && l.inside < as {
		l.cancel()
	}
}

// take notes who is in; someone greater may have come meanwhile.
func (l *lane) take(as use, cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside, l.cancel = as, cancel
	for greater := as + 1; greater <= exchange; greater++ {
		if l.wanted[greater] > 0 {
			cancel()
		}
	}
}

func (l *lane) leave(as use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted[as]--
	l.cancel = nil
}

// Exchange runs fn while no one speaks with the plugin, so that fn can put
// another one in its place. What goes on is interrupted; a collection goes on
// from its checkpoint afterwards.
func (l *Loop) Exchange(ctx context.Context, fn func()) {
	_, leave := l.enter(ctx, exchange)
	defer leave()
	fn()
}
