package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// line is a record in a table.
type line struct {
	ID                string
	Site, Group, User string
	Parts             []part
	Start, Stop       time.Time
	Open, Negative    bool
	Runtime           string
	State             string
	Origin            string
}

type part struct {
	Name   string
	Amount int64
	Total  bool
	Scores []record.Score
}

func lineOf(row *columns.Row) line {
	r := row.Record
	r.Stop = row.ShownStop()
	l := line{
		ID: r.ID, Site: first(r.Meta, "site_id"), Group: first(r.Meta, "group_id"), User: first(r.Meta, "user_id"),
		Start: std(r.Start), Stop: std(r.Stop), Open: r.Open(), Negative: r.Negative(), State: r.State, Origin: row.Origin.String(),
	}
	if s, ok := r.Runtime(); ok {
		l.Runtime = runtime(s)
	}
	for _, c := range r.Components {
		l.Parts = append(l.Parts, part{Name: c.Name, Amount: c.Amount, Total: c.Kind == record.Total, Scores: c.Scores})
	}
	return l
}

func first(m record.Meta, key string) string {
	if v := m.Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// filter is what the form of the records page asks for, as it was typed.
type filter struct {
	ID, Since, Until, Key, Value, Runs string
}

// recordsPage is what the records page shows.
type recordsPage struct {
	Filter filter
	Lines  []line
	Total  uint64
	More   string // the address of the next page
	Paged  bool   // this is not the first page
	First  string // the address of the first page
}

// pageSize is how many records a page shows.
const pageSize = 50

func (p *Pages) records(r *http.Request, v *access.View) (any, error) {
	form := r.URL.Query()
	total, err := v.Count(r.Context())
	if err != nil {
		return nil, err
	}
	page := &recordsPage{Total: total, Filter: filter{
		ID: form.Get("id"), Since: form.Get("since"), Until: form.Get("until"), Key: form.Get("key"), Value: form.Get("value"), Runs: form.Get("runs"),
	}}
	page.First = "/ui/records?" + page.Filter.query().Encode()
	q, err := page.Filter.parse()
	if err != nil {
		return page, err
	}
	if token := form.Get("after"); token != "" {
		if q.Resume, err = position(token); err != nil {
			return page, err
		}
		page.Paged = true
	}
	var last store.Position
	more := false
	err = v.Query(r.Context(), q, func(row *columns.Row) error {
		if len(page.Lines) == pageSize {
			more = true
			return nil
		}
		page.Lines = append(page.Lines, lineOf(row))
		last = q.PositionOf(row)
		return nil
	})
	if more {
		next := page.Filter.query()
		next.Set("after", token(last))
		page.More = "/ui/records?" + next.Encode()
	}
	return page, err
}

// query is the filter as the query of an address.
func (f filter) query() url.Values {
	q := url.Values{}
	for key, value := range map[string]string{"id": f.ID, "since": f.Since, "until": f.Until, "key": f.Key, "value": f.Value, "runs": f.Runs} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return q
}

// parse turns the filter into a query: the newest first, running ones before
// all others.
func (f filter) parse() (store.Query, error) {
	q := store.Query{ID: strings.TrimSpace(f.ID), Desc: true, Limit: pageSize + 1}
	if since, ok, err := moment(f.Since); err != nil {
		return q, err
	} else if ok {
		q.Stop.GTE(int64(since))
	}
	if until, ok, err := moment(f.Until); err != nil {
		return q, err
	} else if ok {
		q.Stop.LT(int64(until))
	}
	switch {
	case f.Value != "" && f.Key == "":
		return q, bad("A value needs the key that has it, for example user_id.")
	case f.Key != "" && f.Value == "":
		q.Meta = []store.MetaTest{{Key: f.Key}}
	case f.Key != "":
		q.Meta = []store.MetaTest{{Key: f.Key, Contains: []string{f.Value}}}
	}
	switch f.Runs {
	case "":
	case "running":
		q.Open = store.OnlyOpen
	case "ended":
		q.Open = store.OnlyClosed
	default:
		return q, bad("%q is no choice of runs.", f.Runs)
	}
	return q, nil
}

// moment reads a date, a date with a time, or RFC 3339; in UTC if it says
// nothing else.
func moment(s string) (record.Time, bool, error) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, false, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", time.DateTime, time.RFC3339Nano} {
		if t, err := time.Parse(layout, s); err == nil {
			return record.FromStd(t), true, nil
		}
	}
	return 0, false, bad("%q is no time; write it like 2026-01-31, 2026-01-31 12:00 or 2026-01-31T12:00:00Z.", s)
}

// token writes a position for an address.
func token(p store.Position) string {
	text, _ := json.Marshal(p) // numbers and text only
	return base64.RawURLEncoding.EncodeToString(text)
}

func position(token string) (*store.Position, error) {
	var p store.Position
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.Order != store.ByStop || !p.Desc {
		return nil, bad("This page of the list does not exist; start with the first one.")
	}
	return &p, nil
}

// recordPage is what the page of one record shows.
type recordPage struct {
	line

	Submit   time.Time
	Exit     string
	Meta     record.Meta
	Rank     string
	Received time.Time
	Changed  time.Time
	Seq      uint64
	Others   []saying
	Conflict bool
}

// saying is what one origin says about a run.
type saying struct {
	Origin, Rank string
	Start, Stop  time.Time
	Observed     time.Time
	Withdrawn    bool
	Waiting      bool
}

func (p *Pages) record(r *http.Request, v *access.View) (any, error) {
	id := r.URL.Query().Get("id")
	row, found, err := v.Get(id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, status{http.StatusNotFound, "There is no record " + strconv.Quote(id) + "."}
	}
	page := &recordPage{
		line: lineOf(&row), Submit: std(row.Record.Submit), Meta: row.Record.Meta, Rank: row.Rank.String(),
		Received: std(row.Received), Changed: std(row.Changed), Seq: row.Seq,
	}
	if e := row.Record.Exit; e.Known {
		page.Exit = strconv.Itoa(int(e.Code))
		if e.Signal != 0 {
			page.Exit += ", signal " + strconv.Itoa(int(e.Signal))
		}
	}
	entry, err := v.Entry(id)
	if err != nil {
		return nil, err
	}
	page.Others, page.Conflict = sayings(&entry), entry.Conflict()
	return page, nil
}
