package api

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// decodeQuery decodes the query of a request by the tags of its type. The error is a refusal:
// a field that were passed over would be an answer to another question.
func decodeQuery[Q any](r *http.Request) (q Q, err error) {
	if err := v1.DecodeQuery(r.URL.RawQuery, &q); err != nil {
		return q, newRefusal(http.StatusBadRequest, "%v", err)
	}
	return q, nil
}

// recordFilters are the fields of queries that choose records: those of AUDITOR. All
// conditions hold together.
type recordFilters struct {
	RecordID  string                   `query:"record_id"`
	StartTime v1.TimeTest              `query:"start_time"`
	StopTime  v1.TimeTest              `query:"stop_time"`
	Runtime   v1.NumberTest            `query:"runtime"`
	Meta      map[string]v1.MetaTest   `query:"meta"`
	Component map[string]v1.NumberTest `query:"component"`
}

// storeQuery translates the filters for the store. Records come in the order of their stops.
func (f *recordFilters) storeQuery() store.Query {
	q := store.Query{ID: f.RecordID, Start: timeRange(f.StartTime), Stop: timeRange(f.StopTime), Runtime: numberRange(f.Runtime), Order: store.ByStop}
	for _, key := range slices.Sorted(maps.Keys(f.Meta)) {
		m := f.Meta[key]
		q.Meta = append(q.Meta, store.MetaTest{Key: key, Contains: m.C, Lacks: m.Dnc, Any: m.Any})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Component)) {
		q.Amounts = append(q.Amounts, store.AmountTest{Name: name, Amount: numberRange(f.Component[name])})
	}
	return q
}

func timeRange(t v1.TimeTest) store.Range {
	micros := func(at v1.Time) *int64 {
		if at.IsZero() {
			return nil
		}
		return new(int64(record.FromStd(at.Time)))
	}
	return newRange(micros(t.Gt), micros(t.Gte), micros(t.Lt), micros(t.Lte), micros(t.Equals))
}

func numberRange(t v1.NumberTest) store.Range {
	wide := func(n *int) *int64 {
		if n == nil {
			return nil
		}
		return new(int64(*n))
	}
	return newRange(wide(t.Gt), wide(t.Gte), wide(t.Lt), wide(t.Lte), wide(t.Equals))
}

// newRange is the range in which all comparisons hold that are not nil.
func newRange(gt, gte, lt, lte, equals *int64) (r store.Range) {
	for _, c := range []struct {
		value *int64
		limit func(int64)
	}{{gt, r.GT}, {gte, r.GTE}, {lt, r.LT}, {lte, r.LTE}, {equals, r.Equals}} {
		if c.value != nil {
			c.limit(*c.value)
		}
	}
	return r
}

// sortRecords sets the order that sort_by names; without one it stays.
func sortRecords(q *store.Query, by v1.SortBy) {
	q.Desc = by.Asc == "" && by.Desc != ""
	switch cmp.Or(by.Asc, by.Desc) {
	case "start_time":
		q.Order = store.ByStart
	case "runtime":
		q.Order = store.ByRuntime
	case "record_id":
		q.Order = store.ByID
	}
}

// onlyOpen is the test of the field open.
func onlyOpen(open *bool) store.OpenTest {
	switch {
	case open == nil:
		return store.OpenOrClosed
	case *open:
		return store.OnlyOpen
	}
	return store.OnlyClosed
}

// parseCredit reads the field credit.
func parseCredit(word string) sums.Credit {
	if word == "stop" {
		return sums.AtStop
	}
	return sums.Spread
}

// parseConditions are the conditions on keys of the field where, by key.
func parseConditions(where map[string]string) (list []sums.Filter, err error) {
	for _, key := range slices.Sorted(maps.Keys(where)) {
		if wrong := record.ValidateName(key); key == "" || wrong != "" {
			return nil, newRefusal(http.StatusBadRequest, "where[%s]: %s; want where[KEY]=VALUE, or several values with commas, or nothing for what has no value; a comma of a value is written \\,", key, wrong)
		}
		list = append(list, sums.Filter{Key: key, Values: v1.SplitList(where[key])})
	}
	return list, nil
}

// siteZone is the time zone by whose clock days begin where a question names none.
func (s *Server) siteZone() *time.Location {
	if s.opt.Zone == nil {
		return time.UTC
	}
	return s.opt.Zone()
}

// parseZone reads the field zone.
func (s *Server) parseZone(name string) (*time.Location, error) {
	if name == "" {
		return s.siteZone(), nil
	}
	zone, err := calendar.Zone(name)
	if err != nil {
		return nil, newRefusal(http.StatusBadRequest, "%v", err)
	}
	return zone, nil
}

// parseAt reads the instant of the field at; now without one.
func parseAt(word string, now record.Time, zone *time.Location) (record.Time, error) {
	if word == "" {
		return now, nil
	}
	at, err := calendar.Point(word, now, zone)
	if err != nil {
		return at, newRefusal(http.StatusBadRequest, "at: %v", err)
	}
	return at, nil
}

// parseWindow reads that of the fields window, or from and to; nil without any of them.
func parseWindow(word, from, to string, now record.Time, zone *time.Location) (window *calendar.Window, err error) {
	var found calendar.Window
	switch {
	case word+from+to == "":
		return nil, nil //nolint:nilnil // no window was asked for
	case word != "" && from+to != "":
		return nil, newRefusal(http.StatusBadRequest, "window cannot be combined with from or to")
	case word != "":
		found, err = calendar.ParseWindow(word, now, zone)
	default:
		found, err = calendar.Between(from, to, now, zone)
	}
	if err != nil {
		return nil, newRefusal(http.StatusBadRequest, "%v", err)
	}
	return &found, nil
}

// parseNeededWindow is [parseWindow] where a time must be given.
func parseNeededWindow(word, from, to string, now record.Time, zone *time.Location) (*calendar.Window, error) {
	if word+from == "" {
		return nil, newRefusal(http.StatusBadRequest, "no time is given; want window=, one of %s, or from= and to=", calendar.Words)
	}
	return parseWindow(word, from, to, now, zone)
}

func quoteWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "`" + w + "`"
	}
	return strings.Join(out, ", ")
}
