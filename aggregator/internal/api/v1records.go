package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Sizes of a page of /v1.
const (
	defaultPage = 1000
	maxPage     = 10_000
)

// v1Records is GET /v1/records.
func (s *Server) v1Records(w http.ResponseWriter, r *http.Request, view *access.View) error {
	p, err := parsePage(r)
	if err != nil {
		return err
	}
	if p.query.Resume == nil && !p.archived && !isLenient(r) {
		if err := s.checkNames(r.Context(), view, p.query); err != nil {
			return err
		}
	}
	read, done, err := s.rowSource(w, r, view, &p.query, p.archived)
	if err != nil {
		return err
	}
	defer done()
	switch p.format {
	case "ndjson":
		return s.streamRows(w, r, read, p.query, format{contentType: "application/x-ndjson", add: appendLine})
	case "csv":
		return s.recordsTable(w, r, read, p)
	}
	return s.recordsPage(w, r, read, p.query)
}

// recordsTable answers a table. It reads the records twice, first for the columns: both
// times they are those of one view.
func (s *Server) recordsTable(w http.ResponseWriter, r *http.Request, read rows, p page) error {
	q := p.query
	if q.Limit == 0 && q.Resume == nil && !p.archived {
		q.Order, q.By, q.Desc = store.BySeq, "", false // the cheapest
	}
	c, err := columnsOf(r.Context(), read, q)
	if err != nil {
		return err
	}
	s.extendWrite(w)
	row, head := c.newRow()
	return s.streamRows(w, r, read, p.query, format{contentType: "text/csv; charset=utf-8", head: head, add: row.appendRow})
}

// appendLine appends a record of /v1 as a line.
func appendLine(b []byte, row *columns.Row) ([]byte, error) {
	return append(row.AppendV1(b), '\n'), nil
}

// checkNames refuses a query that finds nothing when that is due to a name that no record
// has, and an order by such a name.
func (s *Server) checkNames(ctx context.Context, view *access.View, q store.Query) error {
	u := unmatched{s, view, &usage.Derivation{}, nil}
	if err := u.checkOrder(ctx, &q); err != nil || len(q.Meta)+len(q.Amounts) == 0 {
		return err
	}
	if some, err := u.anyRecord(ctx, q); err != nil || some {
		return err
	}
	return u.checkFilters(ctx, &q, nil)
}

// recordsPage answers {"records": […], "next": "cursor"}; next is null on the
// last page.
func (s *Server) recordsPage(w http.ResponseWriter, r *http.Request, read rows, q store.Query) error {
	size := q.Limit
	if size == 0 {
		size = defaultPage
	}
	if size > maxPage {
		return newRefusal(http.StatusBadRequest, "a page has at most %d records; ask for more pages by cursor, or for format=ndjson", maxPage)
	}
	q.Limit = size + 1
	body, n, next := []byte(`{"records":[`), 0, "null"
	var last store.Position
	room := newPageRoom(r, size)
	err := read(r.Context(), q, func(row *columns.Row) error {
		if n++; n > size {
			cursor, err := encodeCursor(last)
			next = strconv.Quote(cursor)
			return err
		}
		if err := room.grow(len(body)); err != nil {
			return err
		}
		if n > 1 {
			body = append(body, ',')
		}
		body, last = row.AppendV1(body), q.PositionOf(row)
		return nil
	})
	if err != nil {
		return err
	}
	body = append(append(body, `],"next":`...), next...)
	room.shrink(len(body))
	answerRawJSON(w, http.StatusOK, append(body, "}\n"...))
	return nil
}

// page is what /v1/records is asked for.
type page struct {
	query    store.Query
	format   string // json, ndjson or csv
	archived bool
}

// parsePage reads a query of /v1/records.
func parsePage(r *http.Request) (p page, err error) {
	in, err := decodeQuery[struct {
		v1.ListRecordsQuery
		Format string `query:"format" enum:"json,ndjson,csv"`
	}](r)
	if err != nil {
		return p, err
	}
	filters := recordFilters{RecordID: in.RecordID, StartTime: in.StartTime, StopTime: in.StopTime, Runtime: in.Runtime, Meta: in.Meta, Component: in.Component}
	p = page{query: filters.storeQuery(), format: cmp.Or(in.Format, formatOf(r.Header.Get("Accept"))), archived: in.Archived != nil && *in.Archived}
	p.query.Wait, p.query.Open, p.query.After, p.query.Limit = numberRange(in.Wait), onlyOpen(in.Open), in.After, in.Limit
	if sortRecords(&p.query, in.SortBy); in.Order != "" {
		if in.SortBy != (v1.SortBy{}) {
			return p, newRefusal(http.StatusBadRequest, "order and sort_by cannot be combined; use one of them")
		}
		if err := parseOrder(&p.query, in.Order); err != nil {
			return p, err
		}
	}
	if !in.RanFrom.IsZero() || !in.RanTo.IsZero() {
		p.query.Running = &store.Window{From: record.None, To: math.MaxInt64}
		if !in.RanFrom.IsZero() {
			p.query.Running.From = record.FromStd(in.RanFrom.Time)
		}
		if !in.RanTo.IsZero() {
			p.query.Running.To = record.FromStd(in.RanTo.Time)
		}
	}
	if in.Cursor != "" {
		p.query.Resume, err = decodeCursor(in.Cursor)
	}
	return p, err
}

// formatOf is the format that a client accepts.
func formatOf(accept string) string {
	switch {
	case strings.Contains(accept, "application/x-ndjson"):
		return "ndjson"
	case strings.Contains(accept, "text/csv"):
		return "csv"
	}
	return "json"
}

// parseOrder reads an order of records: change, or a column behind a minus where the greatest
// comes first.
func parseOrder(q *store.Query, text string) error {
	word, desc := strings.CutPrefix(text, "-")
	q.Desc = desc
	kind, by, named := strings.Cut(word, ".")
	switch {
	case text == "change":
		q.Order = store.BySeq
	case word == "stop_time":
		q.Order = store.ByStop
	case word == "start_time":
		q.Order = store.ByStart
	case word == "runtime":
		q.Order = store.ByRuntime
	case word == "record_id":
		q.Order = store.ByID
	case named && by != "" && kind == "meta":
		q.Order, q.By = store.ByMeta, by
	case named && by != "" && kind == "component":
		q.Order, q.By = store.ByAmount, by
	case named && by != "" && kind == "used":
		q.Order, q.By = store.ByUsed, by
	default:
		return newRefusal(http.StatusBadRequest, "invalid order %q: use change, stop_time, start_time, runtime, record_id, meta.KEY, component.NAME or used.NAME; with a leading minus the greatest come first", text)
	}
	return nil
}

// encodeCursor writes a position: base64url of JSON.
func encodeCursor(p store.Position) (string, error) {
	text, err := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(text), err
}

func decodeCursor(s string) (*store.Position, error) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	p := &store.Position{}
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil {
		return nil, newRefusal(http.StatusBadRequest, "this server did not give the cursor")
	}
	return p, nil
}
