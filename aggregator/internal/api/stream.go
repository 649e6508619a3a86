package api

import (
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// pieceSize is how much of a stream is collected before it is sent, in bytes.
const pieceSize = 64 << 10

// stream collects an answer and sends it in large pieces. Memory stays flat: a
// client that reads slowly is waited for, up to a limit for each piece.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	typ  string
	buf  []byte
	sent bool
}

// format is how rows are written into a stream.
type format struct {
	contentType string
	head        string // before the first row
	add         func(b []byte, row *columns.Row) ([]byte, error)
}

// stream sends all rows of a query. What fails before the first piece is
// returned, and nothing has been sent; what fails later breaks off the
// connection.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, view *access.View, q store.Query, f format) error {
	q.Lent = true // each row is written out at once
	out := &stream{w: w, rc: http.NewResponseController(w), typ: f.contentType, buf: []byte(f.head)}
	err := view.Query(r.Context(), q, func(row *columns.Row) (err error) {
		if out.buf, err = f.add(out.buf, row); err != nil || len(out.buf) < pieceSize {
			return err
		}
		return out.flush()
	})
	if err == nil {
		err = out.flush()
	}
	if err == nil || !out.sent {
		return err
	}
	if r.Context().Err() == nil {
		s.opt.Log.Error("an answer was broken off", "path", r.URL.Path, "error", err)
	}
	breakOff()
	return err
}

func (s *stream) flush() error {
	if !s.sent {
		s.w.Header().Set("Content-Type", s.typ)
		s.sent = true
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(answerTime)) // a writer that cannot is a test's
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}
