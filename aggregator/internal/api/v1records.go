package api

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Sizes of a page of /v1/records.
const (
	defaultPage = 1000
	maxPage     = 10_000
)

// page is a query of /v1: AUDITOR's grammar with a cursor and a format.
type page struct {
	query  store.Query
	cursor string
	format string // json, ndjson or csv
	after  uint64
}

// parsePage reads a query of /v1. Beside AUDITOR's fields there are cursor,
// format, open (true or false), order (change) and after.
func parsePage(r *http.Request) (page, error) {
	p := page{format: formatOf(r)}
	open, order := "", ""
	q, err := parseQuery(r.URL.RawQuery, func(field, value string) (bool, error) {
		switch field {
		case "cursor":
			p.cursor = value
		case "format":
			p.format = value
		case "open":
			open = value
		case "order":
			order = value
		case "after":
			var err error
			p.after, err = strconv.ParseUint(value, 10, 64)
			return true, err
		default:
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return p, refuse(http.StatusBadRequest, err.Error())
	}
	p.query = q.store()
	p.query.After = p.after
	return p, p.choose(open, order, q.SortBy)
}

func formatOf(r *http.Request) string {
	accept := r.Header.Get("Accept")
	switch {
	case strings.Contains(accept, "application/x-ndjson"):
		return "ndjson"
	case strings.Contains(accept, "text/csv"):
		return "csv"
	}
	return "json"
}

func (p *page) choose(open, order, sort string) error {
	switch open {
	case "":
	case "true":
		p.query.Open = store.OnlyOpen
	case "false":
		p.query.Open = store.OnlyClosed
	default:
		return refuse(http.StatusBadRequest, fmt.Sprintf("open is %q, want true or false", open))
	}
	switch {
	case order == "change" && sort == "":
		p.query.Order = store.BySeq
	case order != "":
		return refuse(http.StatusBadRequest, "order takes change, and not together with sort_by")
	}
	if p.format != "json" && p.format != "ndjson" && p.format != "csv" {
		return refuse(http.StatusBadRequest, fmt.Sprintf("format is %q, want json, ndjson or csv", p.format))
	}
	if p.cursor == "" {
		return nil
	}
	resume, err := decodeCursor(p.cursor)
	p.query.Resume = resume
	return err
}

// cursor format: base64url of the position in JSON.
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
		return nil, refuse(http.StatusBadRequest, "the cursor is not one that this server gave")
	}
	return p, nil
}

// extraOf is what /v1 says of a row beyond its record.
func extraOf(row *columns.Row) wire.V1Extra {
	return wire.V1Extra{Origin: row.Origin, Rank: row.Rank, Seq: row.Seq, Received: row.Received, Changed: row.Changed}
}

// v1Records is GET /v1/records.
func (s *Server) v1Records(w http.ResponseWriter, r *http.Request, view *store.View) error {
	p, err := parsePage(r)
	if err != nil {
		return err
	}
	switch p.format {
	case "ndjson":
		return s.streamRows(w, r, view, p.query, "application/x-ndjson", nil, appendLine)
	case "csv":
		return s.streamRows(w, r, view, p.query, "text/csv; charset=utf-8", csvHeader(), appendCSV)
	}
	return s.recordsPage(w, r, view, p.query)
}

// recordsPage answers {"records": […], "next": "cursor"}; next is null on the
// last page.
func (s *Server) recordsPage(w http.ResponseWriter, r *http.Request, view *store.View, q store.Query) error {
	size := q.Limit
	if size == 0 {
		size = defaultPage
	}
	if size > maxPage {
		return refuse(http.StatusBadRequest, fmt.Sprintf("a page has at most %d records; ask for more pages by cursor, or for format=ndjson", maxPage))
	}
	q.Limit = size + 1
	body := []byte(`{"records":[`)
	n, next := 0, "null"
	var last store.Position
	err := view.Query(r.Context(), q, func(row *columns.Row) error {
		if n++; n > size {
			cursor, err := encodeCursor(last)
			next = strconv.Quote(cursor)
			return err
		}
		if n > 1 {
			body = append(body, ',')
		}
		shown := shownOf(row)
		body = wire.AppendV1JSON(body, &shown, extraOf(row))
		last = q.PositionOf(row)
		return nil
	})
	if err != nil {
		return err
	}
	body = append(append(append(body, `],"next":`...), next...), '}', '\n')
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // a client that is gone needs no answer
	return nil
}

// streamRows sends all rows of a query.
func (s *Server) streamRows(w http.ResponseWriter, r *http.Request, view *store.View, q store.Query, contentType string, head []byte, add func([]byte, *columns.Row) ([]byte, error)) error {
	out := newStream(w, contentType)
	out.buf = append(out.buf, head...)
	err := view.Query(r.Context(), q, func(row *columns.Row) (err error) {
		if out.buf, err = add(out.buf, row); err != nil {
			return err
		}
		return out.flushFull()
	})
	if err == nil {
		err = out.flush()
	}
	if err != nil && out.sent {
		s.opt.Log.Warn("an answer was broken off", "path", r.URL.Path, "error", err)
		breakOff()
	}
	return err
}

func appendLine(b []byte, row *columns.Row) ([]byte, error) {
	shown := shownOf(row)
	return append(wire.AppendV1JSON(b, &shown, extraOf(row)), '\n'), nil
}

func csvHeader() []byte {
	return []byte("record_id,start_time,stop_time,runtime,submit_time,state,exit_code,exit_signal,origin,rank,meta,components\n")
}

// appendCSV writes a row with meta and components as JSON.
func appendCSV(b []byte, row *columns.Row) ([]byte, error) {
	r := shownOf(row)
	meta, err := json.Marshal(metaMap(r.Meta))
	if err != nil {
		return b, err
	}
	components, err := json.Marshal(componentList(r.Components))
	if err != nil {
		return b, err
	}
	runtime := ""
	if n, ok := r.Runtime(); ok {
		runtime = strconv.FormatInt(n, 10)
	}
	code, signal := "", ""
	if r.Exit.Known {
		code, signal = strconv.Itoa(int(r.Exit.Code)), strconv.Itoa(int(r.Exit.Signal))
	}
	var line bytes.Buffer
	out := csv.NewWriter(&line)
	err = out.Write([]string{r.ID, r.Start.String(), orBlank(r.Stop), runtime, orBlank(r.Submit), r.State, code, signal, row.Origin.String(), row.Rank.String(), string(meta), string(components)})
	out.Flush()
	return append(b, line.Bytes()...), errors.Join(err, out.Error())
}

func orBlank(t record.Time) string {
	if !t.Present() {
		return ""
	}
	return t.String()
}

func metaMap(m record.Meta) map[string][]string {
	if m == nil {
		return nil
	}
	out := map[string][]string{}
	for i := range m {
		out[m[i].Key] = m[i].Values
	}
	return out
}

type jsonComponent struct {
	Name   string      `json:"name"`
	Amount int64       `json:"amount"`
	Kind   string      `json:"kind"`
	Scores []jsonScore `json:"scores"`
}

type jsonScore struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

func componentList(in []record.Component) []jsonComponent {
	out := make([]jsonComponent, 0, len(in))
	for i := range in {
		c := jsonComponent{Name: in[i].Name, Amount: in[i].Amount, Kind: in[i].Kind.String(), Scores: []jsonScore{}}
		for _, s := range in[i].Scores {
			c.Scores = append(c.Scores, jsonScore{s.Name, s.Value})
		}
		out = append(out, c)
	}
	return out
}

// v1Changes is GET /v1/changes: the change feed behind after, tombstones
// included, and the position to ask from next.
func (s *Server) v1Changes(w http.ResponseWriter, r *http.Request, view *store.View) error {
	p, err := parsePage(r)
	if err != nil {
		return err
	}
	q := store.Query{After: p.after, Order: store.BySeq, Tombstones: true, Limit: min(max(p.query.Limit, 0), maxPage)}
	if q.Limit == 0 {
		q.Limit = defaultPage
	}
	body, last := []byte(`{"changes":[`), p.after
	n := 0
	err = view.Query(r.Context(), q, func(row *columns.Row) error {
		if n++; n > 1 {
			body = append(body, ',')
		}
		body = appendChange(body, row)
		last = row.Seq
		return nil
	})
	if err != nil {
		return err
	}
	if n < q.Limit {
		last = max(last, view.Seq())
	}
	body = append(body, `],"last":`...)
	body = append(strconv.AppendUint(body, last, 10), '}', '\n')
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // a client that is gone needs no answer
	return nil
}

// appendChange writes {"seq":…,"record_id":…,"record":…}; record is null when the
// id shows nothing any more.
func appendChange(b []byte, row *columns.Row) []byte {
	b = strconv.AppendUint(append(b, `{"seq":`...), row.Seq, 10)
	id, _ := json.Marshal(row.Record.ID) // a string always has a JSON text
	b = append(append(b, `,"record_id":`...), id...)
	b = append(b, `,"record":`...)
	if row.Tombstone {
		return append(b, "null}"...)
	}
	shown := shownOf(row)
	return append(wire.AppendV1JSON(b, &shown, extraOf(row)), '}')
}

// v1Record is GET /v1/records/{id}: what is shown, and what everyone says.
func (s *Server) v1Record(w http.ResponseWriter, r *http.Request, view *store.View) error {
	id := r.PathValue("id")
	if err := record.ValidateID(id); err != nil {
		return refuse(http.StatusBadRequest, err.Error())
	}
	row, found, err := view.Get(id)
	if err != nil {
		return err
	}
	entry, err := view.Entry(id)
	if err != nil {
		return err
	}
	if !found && len(entry.Holdings) == 0 && !entry.Deleted {
		return refuse(http.StatusNotFound, "there is no record "+id)
	}
	out := entryJSON(&entry)
	if found {
		shown := shownOf(&row)
		out.Record = wire.AppendV1JSON(nil, &shown, extraOf(&row))
	}
	answer(w, http.StatusOK, out)
	return nil
}

type jsonEntry struct {
	RecordID string          `json:"record_id"`
	Deleted  bool            `json:"deleted"`
	Conflict bool            `json:"conflict"`
	Record   json.RawMessage `json:"record"`
	Holdings []jsonHolding   `json:"holdings"`
}

type jsonHolding struct {
	Origin    string          `json:"origin"`
	Rank      string          `json:"rank"`
	Ended     bool            `json:"ended"`
	Observed  *string         `json:"observed"`
	Withdrawn bool            `json:"withdrawn"`
	Stop      *string         `json:"waiting_stop"`
	Record    json.RawMessage `json:"record"`
}

func entryJSON(e *record.Entry) jsonEntry {
	out := jsonEntry{RecordID: e.ID, Deleted: e.Deleted, Conflict: e.Conflict(), Record: []byte("null"), Holdings: []jsonHolding{}}
	for i := range e.Holdings {
		h := &e.Holdings[i]
		v := h.Effective()
		j := jsonHolding{Origin: h.Origin.String(), Rank: h.Rank.String(), Ended: v.Ended, Withdrawn: h.Withdrawn(), Record: []byte("null")}
		if v.Observed != 0 {
			j.Observed = stamp(record.Time(v.Observed))
		}
		if h.Waiting() {
			j.Stop = stamp(h.Stop)
		}
		if r := h.Shown(); r != nil {
			j.Record = wire.AppendJSON(nil, r)
		}
		out.Holdings = append(out.Holdings, j)
	}
	return out
}
