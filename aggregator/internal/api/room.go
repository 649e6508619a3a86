package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// withLease lets do answer a request within the memory for answers. When it turns out
// that there must be more, do is called again, once that much is free; it has sent
// nothing until then. One of several answers shares their memory, and fails when there
// must be more.
func (s *Server) withLease(w http.ResponseWriter, r *http.Request, do func(r *http.Request) error) error {
	if store.LeaseOf(r.Context()).OfSeveral() {
		err := do(r)
		if more, ok := errors.AsType[*store.MoreError](err); ok {
			return newRefusal(http.StatusServiceUnavailable, "%v", more)
		}
		return err
	}
	for first := int64(0); ; {
		more, err := s.tryWithLease(w, r, first, do)
		if more == 0 {
			return err
		}
		first = more
	}
}

// tryWithLease calls do with so much memory. More is what it needs beyond that; 0 when it
// is done.
func (s *Server) tryWithLease(w http.ResponseWriter, r *http.Request, first int64, do func(r *http.Request) error) (more int64, err error) {
	lease, err := s.opt.Memory.Begin(r.Context(), first)
	if err != nil {
		return 0, err
	}
	defer lease.End()
	if first > 0 {
		s.extendWrite(w) // the time in the queue is not the client's
	}
	err = do(r.WithContext(store.WithLease(r.Context(), lease)))
	if m, ok := errors.AsType[*store.MoreError](err); ok {
		return m.Bytes, err
	}
	return 0, err
}

// isMemoryShortage reports whether an answer failed for want of room, which may be there later.
func isMemoryShortage(err error) bool {
	return errors.Is(err, store.ErrNoRoom) || errors.Is(err, store.ErrSpill)
}

// decodedBytes is about how much each byte of an answer's JSON takes once it is
// decoded, together with the text itself.
const decodedBytes = 8

// chargeDecoded lets ask fetch one of several answers, and counts what is kept of it: what is
// decoded from a text of n bytes, in place of what it took to make the text.
func chargeDecoded(ctx context.Context, ask func() (n int, err error)) error {
	lease := store.LeaseOf(ctx)
	if !lease.OfSeveral() {
		_, err := ask()
		return err
	}
	before := lease.Used()
	n, err := ask()
	lease.Free(lease.Used() - before)
	if err != nil {
		return err
	}
	return lease.Use(ctx, decodedBytes*int64(n))
}

// bodyRow is about how many bytes a record takes in an answer.
const bodyRow = 1 << 10

// pageRoom is the memory of an answer that is collected before it is sent.
type pageRoom struct {
	ctx   context.Context
	lease *store.Lease
	taken int64
}

// newPageRoom is the memory of a page of so many records; the query takes it with its
// own.
func newPageRoom(r *http.Request, records int) *pageRoom {
	p := &pageRoom{ctx: r.Context(), lease: store.LeaseOf(r.Context()), taken: int64(records) * 2 * bodyRow}
	p.lease.Also(p.taken)
	return p
}

// grow takes what a body of n bytes needs beyond what there is: a slice that grows is
// there twice.
func (p *pageRoom) grow(n int) error {
	more := 2*int64(n) - p.taken
	if more <= 0 {
		return nil
	}
	more = max(more, p.taken/2)
	if err := p.lease.Use(p.ctx, more); err != nil {
		return err
	}
	p.taken += more
	return nil
}

// shrink gives back what a body of n bytes does not need any more.
func (p *pageRoom) shrink(n int) {
	if less := p.taken - int64(n); less > 0 {
		p.lease.Free(less)
		p.taken = int64(n)
	}
}
