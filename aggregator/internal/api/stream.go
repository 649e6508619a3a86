package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// pieceSize is how much of a stream is collected before it is sent, in bytes.
const pieceSize = 64 << 10

// How slowly a client may read: for each piece it has answerTime, and all of its
// pauses together are no longer than what a pace allows. While others wait for the
// memory that its answer holds, the pace is higher.
const (
	slowGrace       = time.Minute
	slowPace        = 16 << 10 // bytes a second
	pressGrace      = 20 * time.Second
	pressPace       = 256 << 10
	pressCheckEvery = time.Second // how often it is looked whether others wait
)

// errSlow breaks off an answer that its client reads too slowly.
var errSlow = errors.New("the client reads too slowly while others wait for the memory")

// stream collects an answer and sends it in large pieces. Memory stays flat: a
// client that reads slowly is waited for, up to a limit for each piece and for all.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	lease *store.Lease
	typ   string
	buf   []byte
	sent  bool

	bytes  int64         // that were sent
	waited time.Duration // for the client
}

func newStream(w http.ResponseWriter, r *http.Request, typ string) *stream {
	return &stream{w: w, rc: http.NewResponseController(w), lease: store.LeaseOf(r.Context()), typ: typ}
}

// format is how rows are written into a stream.
type format struct {
	contentType string
	head        string // before the first row
	add         func(b []byte, row *columns.Row) ([]byte, error)
}

// rows calls yield with the rows of a query, as [access.View.Query] does.
type rows func(ctx context.Context, q store.Query, yield func(*columns.Row) error) error

// streamRows sends all rows of a query. What fails before the first piece is
// returned, and nothing has been sent; what fails later breaks off the
// connection.
func (s *Server) streamRows(w http.ResponseWriter, r *http.Request, read rows, q store.Query, f format) error {
	q.ReuseRows = true // each row is written out at once
	out := newStream(w, r, f.contentType)
	out.buf = []byte(f.head)
	out.lease.Also(streamBytes)
	err := read(r.Context(), q, func(row *columns.Row) (err error) {
		if out.buf, err = f.add(out.buf, row); err != nil || len(out.buf) < pieceSize {
			return err
		}
		return out.flush()
	})
	if err == nil {
		err = out.flush()
	}
	return s.endStream(r, out, err)
}

// endStream breaks off an answer that failed after a part of it was sent.
func (s *Server) endStream(r *http.Request, out *stream, err error) error {
	if err == nil || !out.sent {
		return err
	}
	if r.Context().Err() == nil && !errors.Is(err, errLeft) {
		s.opt.Log.Error("an answer was broken off", "path", r.URL.Path, "error", err)
	}
	breakOff()
	return err
}

// streamBytes is about what a stream takes beside its query: the piece, and what the
// connection has of it.
const streamBytes = 4 * pieceSize

func (s *stream) flush() error {
	if !s.sent {
		s.w.Header().Set("Content-Type", s.typ)
		s.sent = true
	}
	begun := time.Now()
	_ = s.rc.SetWriteDeadline(begun.Add(min(answerTime, s.pauseLeft(slowGrace, slowPace)))) // a writer that cannot is a test's
	watch := s.watchSlowness(begun)
	_, err := s.w.Write(s.buf) //nolint:gosec // JSON, and its content type says so
	slow := watch()
	s.bytes += int64(len(s.buf))
	s.waited += time.Since(begun)
	s.buf = s.buf[:0]
	if slow && err != nil {
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	return err
}

// pauseLeft is how much longer the client may pause at a pace.
func (s *stream) pauseLeft(grace time.Duration, pace int64) time.Duration {
	return max(grace+time.Duration(s.bytes/pace)*time.Second-s.waited, 0)
}

// watchSlowness ends a write that began at begun when the client is too slow for others that
// wait. What it returns ends the watch, and says whether it ended the write.
func (s *stream) watchSlowness(begun time.Time) (stop func() bool) {
	if s.lease == nil {
		return func() bool { return false }
	}
	left, cut := s.pauseLeft(pressGrace, pressPace), false
	if left == 0 && s.lease.Pressed() { // many short pauses count as a long one does
		_ = s.rc.SetWriteDeadline(begun)
		return func() bool { return true }
	}
	end, done := make(chan struct{}), make(chan struct{})
	begin := time.AfterFunc(min(max(left, pressCheckEvery), answerTime), func() {
		defer close(done)
		tick := time.NewTicker(pressCheckEvery)
		defer tick.Stop()
		for {
			if s.lease.Pressed() {
				cut = true
				_ = s.rc.SetWriteDeadline(begun) // has passed
				return
			}
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	})
	return func() bool {
		if begin.Stop() {
			return false
		}
		close(end)
		<-done
		_ = s.rc.SetWriteDeadline(time.Now().Add(answerTime)) // for a write that ended just then
		return cut
	}
}
