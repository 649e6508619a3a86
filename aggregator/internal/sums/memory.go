package sums

import (
	"context"
	"errors"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// What an answer takes, about, for each thing that an accumulator notes: there is a copy in
// the answer, one on the table, and its text.
const (
	copies      = 3
	sumBytes    = copies * 16
	countsBytes = copies * 48
	personBytes = 64
	groupBytes  = copies * 2560
	// baseBytes is what an answer takes beside that, growBytes the step in which it
	// takes more.
	baseBytes = 4 << 20
	growBytes = 1 << 20
)

// memory is what an answer takes of the memory for answers. All who add up share it.
type memory struct {
	ctx   context.Context
	lease *store.Lease

	mu  sync.Mutex
	err error // that there is no more
}

// memoryOf is the memory of the answer that is asked for by ctx; nil when nothing
// bounds it.
func memoryOf(ctx context.Context) *memory {
	if l := store.LeaseOf(ctx); l != nil {
		return &memory{ctx: ctx, lease: l}
	}
	return nil
}

// useBytes takes n more bytes, without waiting: an index must not stand still for it. The
// error stays.
func (m *memory) useBytes(n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = m.lease.Use(m.ctx, n)
	}
	return m.err
}

// leaseBase takes the memory that every answer needs, and waits for it, so that it must
// happen before anything is held that others want.
func leaseBase(ctx context.Context) error {
	l := store.LeaseOf(ctx)
	if l.Began() && !l.OfSeveral() {
		return nil // an answer may ask several questions
	}
	return l.Use(ctx, baseBytes)
}

// chargeMemory returns an error when what the accumulator has grown to is more than there is.
func (t *accumulator) chargeMemory() error {
	if t.memory == nil {
		return nil
	}
	n := t.grown
	if n < growBytes {
		n = 0
	}
	t.grown -= n
	return t.memory.useBytes(n)
}

// isOutOfMemory reports whether an answer failed for want of memory, which is no fault of
// an index.
func isOutOfMemory(err error) bool {
	_, more := errors.AsType[*store.MoreError](err)
	return more || errors.Is(err, store.ErrNoRoom) || errors.Is(err, store.ErrTooMuch)
}
