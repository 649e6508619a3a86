package api

import (
	"bytes"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// auditorQuery is a query of AUDITOR's GET /records.
type auditorQuery struct {
	recordFilters

	SortBy   v1.SortBy `query:"sort_by"`
	Limit    *int      `query:"limit"`
	Archived bool      `query:"archived"`
}

// getRecords is GET /records: the records one after the other, each on a line of
// its own, without brackets and commas.
func (s *Server) getRecords(w http.ResponseWriter, r *http.Request) {
	q, err := decodeQuery[auditorQuery](r)
	if err != nil {
		jsonError(w, http.StatusBadRequest, err.Error())
		return
	}
	if !s.traffic.lists.Take() {
		s.traffic.refused.Inc()
		w.Header().Set("Retry-After", "1")
		jsonError(w, http.StatusServiceUnavailable, "too many concurrent requests; retry later")
		return
	}
	defer s.traffic.lists.Give()
	err = s.withLease(w, r, func(r *http.Request) error {
		view, err := s.opt.Reader.Read(r.Context(), access.From(r.Context()))
		if err != nil {
			return err
		}
		defer s.closeView(view)
		query := q.storeQuery()
		sortRecords(&query, q.SortBy)
		switch {
		case q.Limit == nil:
		case *q.Limit > 0:
			query.Limit = *q.Limit
		default: // no rows; for the store it is no limit
			w.Header().Set("Content-Type", "application/json")
			answerEmpty(w, http.StatusOK)
			return nil
		}
		for i := range query.Meta {
			query.Meta[i].OfMeta = true // AUDITOR knows no other keys
		}
		read, done, err := s.rowSource(w, r, view, &query, q.Archived)
		if err != nil {
			return err
		}
		defer done()
		return s.streamRows(w, r, read, query, format{contentType: "application/json", add: appendAuditor})
	})
	if err != nil {
		s.answerReadError(w, r, err)
	}
}

func appendAuditor(b []byte, row *columns.Row) ([]byte, error) {
	from := len(b)
	rec := row.Shown()
	b = wire.AppendJSON(b, &rec)
	if bytes.IndexByte(b[from:], '\\') >= 0 {
		b = append(b[:from], spellBackslashes(b[from:])...)
	}
	return append(b, '\n'), nil
}

// spellBackslashes writes every backslash of a text in JSON as \u005c instead of
// \\. AUDITOR's async client takes the quote behind a text that ends with \\ for
// an escaped one, and then loses the rest of the answer without an error.
func spellBackslashes(text []byte) []byte {
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\':
			out = append(out, text[i])
		case text[i+1] == '\\':
			out = append(out, `\u005c`...)
			i++
		default:
			out = append(out, text[i], text[i+1])
			i++
		}
	}
	return out
}
