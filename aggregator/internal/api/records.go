package api

import (
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// getRecords is GET /records: the records one after the other, each on a line of
// its own, without brackets and commas.
func (s *Server) getRecords(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.RawQuery, nil)
	if err != nil {
		jsonError(w, http.StatusBadRequest, err.Error())
		return
	}
	if q.Limit == 0 {
		w.Header().Set("Content-Type", "application/json")
		empty(w, http.StatusOK)
		return
	}
	view, ok := s.view(w, r)
	if !ok {
		return
	}
	defer s.close(view)
	out := newStream(w, "application/json")
	err = view.Query(r.Context(), q.store(), func(row *columns.Row) error {
		shown := shownOf(row)
		out.buf = append(wire.AppendJSON(out.buf, &shown), '\n')
		return out.flushFull()
	})
	s.finish(w, r, out, err)
}

// finish sends the rest of a stream, or says that it failed: by a status while
// nothing has been sent, by breaking off the connection afterwards.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, out *stream, err error) {
	if err == nil {
		err = out.flush()
	}
	if err == nil {
		return
	}
	if r.Context().Err() == nil {
		s.opt.Log.Error("an answer failed", "path", r.URL.Path, "error", err)
	}
	if out.sent {
		breakOff()
	}
	jsonError(w, http.StatusInternalServerError, err.Error())
}

// stream collects an answer and sends it in large pieces. Memory stays flat: a
// client that reads slowly is waited for, up to a limit for each piece.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	typ  string
	buf  []byte
	sent bool
}

const (
	pieceSize = 64 << 10
	pieceTime = time.Minute
)

func newStream(w http.ResponseWriter, contentType string) *stream {
	return &stream{w: w, rc: http.NewResponseController(w), typ: contentType, buf: make([]byte, 0, pieceSize+4096)}
}

func (s *stream) flushFull() error {
	if len(s.buf) < pieceSize {
		return nil
	}
	return s.flush()
}

func (s *stream) flush() error {
	if !s.sent {
		s.w.Header().Set("Content-Type", s.typ)
		s.sent = true
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(pieceTime)) // a writer that cannot is a test's
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// store translates a query for the store.
func (q *recordsQuery) store() store.Query {
	out := store.Query{ID: q.RecordID, Desc: q.Descending, Limit: int(max(q.Limit, 0))}
	apply(&out.Start, q.Start)
	apply(&out.Stop, q.Stop)
	apply(&out.Runtime, q.Runtime)
	for _, m := range q.Meta {
		out.Meta = append(out.Meta, store.MetaTest{Key: m.Key, Contains: m.Contains, Lacks: m.Without})
	}
	for _, c := range q.Components {
		test := store.AmountTest{Name: c.Name}
		apply(&test.Amount, []condition{c.condition})
		out.Amounts = append(out.Amounts, test)
	}
	switch q.SortBy {
	case "start_time":
		out.Order = store.ByStart
	case "runtime":
		out.Order = store.ByRuntime
	case "record_id":
		out.Order = store.ByID
	default:
		out.Order = store.ByStop
	}
	return out
}

func apply(r *store.Range, conditions []condition) {
	for _, c := range conditions {
		switch c.Op {
		case opGt:
			r.GT(c.Value)
		case opGte:
			r.GTE(c.Value)
		case opLt:
			r.LT(c.Value)
		case opLte:
			r.LTE(c.Value)
		case opEquals:
			r.Equals(c.Value)
		}
	}
}
