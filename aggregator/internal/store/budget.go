package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// ErrNoRoom says that other answers took the memory for longer than an answer waits.
var ErrNoRoom = errors.New("other answers take the memory that this node has for answers")

// ErrTooMuch says that an answer takes more memory than all of them may.
var ErrTooMuch = errors.New("the answer takes more memory than this node has for answers")

// MoreError says that an answer has to start over with more memory: what it has is
// too little, and waiting for more while it holds some could stop all others.
type MoreError struct{ Bytes int64 }

// Error implements error.
func (e *MoreError) Error() string {
	return fmt.Sprintf("the answer has to begin anew with %d bytes of memory", e.Bytes)
}

// Budget bounds what all answers together take in memory. Nil bounds nothing.
type Budget struct {
	total    int64
	patience time.Duration // how long an answer waits for room
	room     *semaphore.Weighted
	taken    atomic.Int64
	waiting  atomic.Int64
	refused  prometheus.Counter
}

// NewBudget makes a budget of total bytes, for which an answer waits no longer than
// patience, with its metrics; the registry may be nil.
func NewBudget(total int64, patience time.Duration, reg prometheus.Registerer) *Budget {
	b := &Budget{total: total, patience: patience, room: semaphore.NewWeighted(total)}
	b.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "bursar_answer_memory_refused_total", Help: "Answers that were refused because others took the memory for too long, or because they would take more than there is for all."})
	if reg != nil {
		gauge := func(name, help string, of func() int64) prometheus.Collector {
			return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_answer_memory_" + name, Help: help}, func() float64 { return float64(of()) })
		}
		reg.MustRegister(b.refused, gauge("limit_bytes", "How much memory all answers together may take.", func() int64 { return total }),
			gauge("bytes", "How much memory answers have reserved.", b.taken.Load), gauge("waiting", "Answers that wait for memory.", b.waiting.Load))
	}
	return b
}

// Waiting reports whether an answer waits for memory.
func (b *Budget) Waiting() bool { return b != nil && b.waiting.Load() > 0 }

// Lease is what one answer has of a budget. A nil lease has as much as it wants.
type Lease struct {
	budget *Budget

	whole bool // of several answers, see [Several]

	mu    sync.Mutex
	held  int64
	used  int64
	lacks int64 // what the last [MoreError] asked for
}

// Begin gives an answer a lease of n bytes, as soon as there is room; of 0, at once.
// The caller ends it by [Lease.End].
func (b *Budget) Begin(ctx context.Context, n int64) (*Lease, error) {
	if b == nil {
		return nil, nil
	}
	l := &Lease{budget: b}
	if n > 0 {
		if err := l.waitForRoom(ctx, min(n, b.total)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// waitForRoom reserves n bytes for an answer that has none.
func (l *Lease) waitForRoom(ctx context.Context, n int64) error {
	b := l.budget
	if !b.room.TryAcquire(n) {
		b.waiting.Add(1)
		defer b.waiting.Add(-1)
		ctx, cancel := context.WithTimeout(ctx, b.patience)
		defer cancel()
		if err := b.room.Acquire(ctx, n); err != nil {
			b.refused.Inc()
			return fmt.Errorf("%w: %w", ErrNoRoom, err)
		}
	}
	b.taken.Add(n)
	l.held += n
	return nil
}

// Use takes n more bytes. An answer that has none waits for them, as long as ctx
// lasts; one that has some gets a [MoreError] where there are no more right now, and
// [ErrTooMuch] where there can never be.
func (l *Lease) Use(ctx context.Context, n int64) error {
	if l == nil || n <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budget
	more := l.used + n - l.held
	switch {
	case more <= 0:
	case l.used+n > b.total:
		b.refused.Inc()
		return fmt.Errorf("%w, %d MiB", ErrTooMuch, b.total>>20)
	case l.held == 0:
		if err := l.waitForRoom(ctx, more); err != nil {
			return err
		}
	case b.room.TryAcquire(more):
		b.taken.Add(more)
		l.held += more
	default:
		l.lacks = min(l.used+l.used/2+n, b.total)
		return &MoreError{Bytes: l.lacks}
	}
	l.used += n
	return nil
}

// Also adds n bytes to what the next Use takes, so that both are waited for at once.
func (l *Lease) Also(n int64) {
	if l == nil || n <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used += n
}

// Free gives n bytes back that were taken by Use.
func (l *Lease) Free(n int64) {
	if l == nil || n <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used -= min(n, l.used)
	if !l.whole {
		l.shrinkTo(l.used)
	}
}

// shrinkTo holds no more than n bytes.
func (l *Lease) shrinkTo(n int64) {
	if less := l.held - n; less > 0 {
		l.held = n
		l.budget.taken.Add(-less)
		l.budget.room.Release(less)
	}
}

// End gives all back. Nothing may be taken afterwards.
func (l *Lease) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = 0
	l.shrinkTo(0)
}

// Several lets do make something out of several answers. All of them share one lease,
// which is in do's context, and which keeps what is given back for the next answer: one
// that held a part of the memory while it waits for another part could stop all others.
// When do fails for want of memory, Several calls do again, once there is more. What do
// still uses when it succeeds is counted to the lease in ctx. Without one, Several
// calls do.
func Several(ctx context.Context, do func(context.Context) error) error {
	outer := LeaseOf(ctx)
	if outer == nil || outer.whole {
		return do(ctx)
	}
	for first := int64(0); ; {
		l, err := outer.budget.Begin(ctx, first)
		if err != nil {
			return err
		}
		l.whole = true
		if err = do(WithLease(ctx, l)); err == nil {
			outer.adopt(l)
			return nil
		}
		more := l.lacks
		l.End()
		if more <= first {
			return err
		}
		first = more
	}
}

// adopt takes over what another lease uses, and ends it.
func (l *Lease) adopt(other *Lease) {
	other.mu.Lock()
	other.shrinkTo(other.used)
	n := other.held
	other.held, other.used = 0, 0
	other.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += n
	l.used += n
}

// OfSeveral reports whether the lease is one that [Several] made.
func (l *Lease) OfSeveral() bool { return l != nil && l.whole }

// Used is how many bytes are in use.
func (l *Lease) Used() int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

// Most is how much an answer may take at most.
func (l *Lease) Most() int64 {
	if l == nil {
		return math.MaxInt64
	}
	return l.budget.total
}

// Began reports whether the answer has taken something.
func (l *Lease) Began() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held > 0 && l.used > 0
}

// Pressed reports whether another answer waits for what this one holds.
func (l *Lease) Pressed() bool { return l != nil && l.budget.Waiting() }

type leaseKey struct{}

// WithLease returns a context in which what an answer takes is counted to the lease.
func WithLease(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// LeaseOf returns the lease of a context; nil without one.
func LeaseOf(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	return l
}
