package sdk

import (
	"context"
	"sync"
	"sync/atomic"
)

// progress counts the steps of one call.
type progress struct {
	ctx   context.Context //nolint:containedctx // of the call, which is all of its life
	steps atomic.Uint64
	waits atomic.Int64 // that Idle began and that have not ended
}

type progressKey struct{}

func (p *progress) noteStep() {
	if p.ctx.Err() == nil {
		p.steps.Add(1)
	}
}

// The calls that Progress knows.
const (
	CallCollect = "Collect"
	CallCount   = "Count"
)

// Alive tells the daemon that a call makes progress. Collect and Count call it, or
// [Idle], or Stream.Send at least once a minute: the daemon takes a call that does not
// for hung, writes the plugin's goroutines to its log, kills the plugin and starts it
// again. Ctx is that of the call, or one made of it. Alive is cheap and safe for
// concurrent use; with another ctx it does nothing.
func Alive(ctx context.Context) {
	if p, ok := ctx.Value(progressKey{}).(*progress); ok {
		p.noteStep()
	}
}

// Idle tells the daemon that a call waits: for something that may not come for hours,
// such as a push, or for something that has a deadline of its own, such as a program.
// Until busy is called, or ctx ends, the wait counts as progress. Calling busy twice is
// a no-op.
func Idle(ctx context.Context) (busy func()) {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return func() {}
	}
	p.noteStep()
	p.waits.Add(1)
	return sync.OnceFunc(func() {
		p.noteStep()
		p.waits.Add(-1)
	})
}

// stepsSoFar returns the number of steps. That of a call that waits grows.
func (p *progress) stepsSoFar() uint64 {
	if p.waits.Load() > 0 {
		p.noteStep()
	}
	return p.steps.Load()
}

// calls are those that were begun last, by their names.
type calls struct {
	mu   sync.Mutex
	last map[string]*progress
}

// beginCall makes a call known and returns its context.
func (c *calls) beginCall(ctx context.Context, name string) context.Context {
	p := &progress{}
	p.ctx = context.WithValue(ctx, progressKey{}, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]*progress{}
	}
	c.last[name] = p
	return p.ctx
}

// stepsByCall returns how far the calls have come.
func (c *calls) stepsByCall() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]uint64{}
	for name, p := range c.last {
		out[name] = p.stepsSoFar()
	}
	return out
}
