package web

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// fullRecord is a row as /v1 shows it.
func fullRecord(row *columns.Row) (r v1.FullRecord, err error) {
	return r, json.Unmarshal(row.AppendV1(nil), &r)
}

func firstValue(m v1.Meta, key string) string {
	if v := m[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// filter is what the form of the records page asks for, as it was typed. Site, Group, User
// and Value are lists, of which a record has one value.
type filter struct {
	ID, Since, Until, RanSince, RanUntil, Site, Group, User, Key, Value, Component, Least, Runs, Sort string
	TookFrom, TookBelow, WaitedFrom, WaitedBelow                                                      string // whole seconds

	zone *time.Location // of times without one; nil: UTC
	own  report.Keys
}

// wholeKeys are those of users and groups.
func (f filter) wholeKeys() report.Keys { return f.own.Whole() }

// fieldsOf are the fields of the form that stand for meta keys.
func fieldsOf(own report.Keys) map[string]string {
	return map[string]string{"site_id": "site", own.Group: "group", own.User: "user"}
}

func (f filter) timeZone() *time.Location {
	if f.zone == nil {
		return time.UTC
	}
	return f.zone
}

// fieldPointers are the fields of the form by their names in an address.
func (f *filter) fieldPointers() map[string]*string {
	return map[string]*string{
		"id": &f.ID, "since": &f.Since, "until": &f.Until, "ran_since": &f.RanSince, "ran_until": &f.RanUntil, "site": &f.Site, "group": &f.Group, "user": &f.User,
		"key": &f.Key, "value": &f.Value, "component": &f.Component, "least": &f.Least, "runs": &f.Runs, "sort": &f.Sort,
		"took_from": &f.TookFrom, "took_below": &f.TookBelow, "waited_from": &f.WaitedFrom, "waited_below": &f.WaitedBelow,
	}
}

// recordsPage is what the records page shows.
type recordsPage struct {
	Filter filter
	Table  shownTable
	InAll  string     // how many there are; empty for readers of some records
	Hints  []string   // why nothing is found
	Why    string     // the address of what is known of the job whose id was looked for
	OfJob  jobRecords // of that job
	CSV    string     // the address of all that is found; "" when /v1 has no such query
	More   string     // the address of the next page
	Paged  bool       // this is not the first page
	First  string     // the address of the first page
	Find   string     // what was typed and is not a filter yet
	Chips  []crumb    // the filters, each with the address without it
	Sorts  []choice
	Offers []offered // values of the fields
	Views  []savedView
	Keep   *keeping // nil: the reader does not configure the cluster
}

// Found says how many records are shown.
func (p *recordsPage) Found() string {
	n := len(p.Table.Rows)
	switch {
	case n == 0:
		return "No record matches."
	case p.More != "" && p.Paged:
		return fmt.Sprintf("%d more records; there are others.", n)
	case p.More != "":
		return fmt.Sprintf("The last %d records; there are more.", n)
	case p.Paged:
		return fmt.Sprintf("The %s of the list.", view.Plural(n, "last record"))
	}
	return view.Plural(n, "record") + "."
}

// pageSize is how many records a page shows.
const pageSize = 50

func (p *Pages) recordsContent(r *http.Request, v *access.View) (any, error) {
	form := r.URL.Query()
	page := &recordsPage{}
	if total, err := v.Count(); err == nil {
		page.InAll = view.Plural(total, "record") + " in all"
	}
	page.Filter.zone, page.Filter.own = p.siteZone(), p.ownKeys()
	for name, field := range page.Filter.fieldPointers() {
		*field = form.Get(name)
	}
	page.Offers = p.offerFilters(r.Context(), v, page.Filter.Key)
	if err := page.Filter.addSearch(form.Get("find")); err != nil {
		page.Find = form.Get("find")
		return page, err
	}
	page.Chips, page.Sorts = page.Filter.filterChips(), markChosen(page.Filter.Sort, sortChoices(page.Filter.wholeKeys()))
	page.First = "/ui/records?" + page.Filter.addressQuery().Encode()
	page.Views, page.Keep = p.savedViews(r), keepRecords(r.Context(), page.First)
	q, err := page.Filter.storeQuery()
	if err != nil {
		return page, err
	}
	page.CSV = page.Filter.csvAddress(&q)
	if token := form.Get("after"); token != "" {
		if q.Resume, err = decodePosition(token, &q); err != nil {
			return page, err
		}
		page.Paged = true
	}
	list, err := page.readRecords(r.Context(), v, q)
	if err != nil {
		return page, err
	}
	page.Table = p.showRecords(list, &page.Filter)
	if len(list) == 0 {
		page.CSV = ""
		if q.ID != "" {
			page.Why, page.OfJob = jobAddress(q.ID), p.recordsOfJob(r.Context(), q.ID)
		}
		page.Hints, err = missingHints(r.Context(), v, &q)
	}
	return page, err
}

// readRecords reads the records of the page, and finds the address of the next one.
func (p *recordsPage) readRecords(ctx context.Context, v *access.View, q store.Query) (list []v1.FullRecord, err error) {
	var last store.Position
	more := false
	q.Details = true
	err = v.Query(ctx, q, func(row *columns.Row) error {
		if len(list) == pageSize {
			more = true
			return nil
		}
		r, err := fullRecord(row)
		list, last = append(list, r), q.PositionOf(row)
		return err
	})
	if more {
		next := p.Filter.addressQuery()
		next.Set("after", encodePosition(last))
		p.More = "/ui/records?" + next.Encode()
	}
	return list, err
}

// showRecords is a table of records. By a filter, its heads sort the list; nil for none.
func (p *Pages) showRecords(list []v1.FullRecord, f *filter) shownTable {
	own := p.ownKeys()
	t := p.showList(view.Records(list, own.Group, own.User), len(list), "")
	if f == nil {
		return t
	}
	orders := map[string]string{
		"Record": "id", "Site": "meta.site_id", "Group": "meta." + own.Group, "User": "meta." + own.User, "Job": "meta.job_name", "Components": "-component.Cores",
		"Start": "-start", "Stop": "-stop", "Runtime": "-runtime", "State": "meta.state", "Exit code": "meta.exit_code",
	}
	for i := range t.Head {
		h, next := &t.Head[i], *f
		next.Sort = orders[h.Label]
		word := strings.TrimPrefix(next.Sort, "-")
		switch cmp.Or(f.Sort, "-stop") {
		case word:
			h.Sorted, next.Sort = "ascending", "-"+word
		case "-" + word:
			h.Sorted, next.Sort = "descending", word
		}
		h.Href = "/ui/records?" + next.addressQuery().Encode()
		for _, c := range sortChoices(own) {
			if c.Value == next.Sort {
				h.About = "Sort by: " + c.Text
			}
		}
	}
	return t
}

// missingHints say which of the values no record has that the reader sees, and which one is
// near. Of many records only the newest are looked at, since the page is asked for while
// someone types.
func missingHints(ctx context.Context, v *access.View, q *store.Query) (list []string, err error) {
	if len(q.Meta)+len(q.Amounts) == 0 {
		return nil, nil
	}
	keys := make([]string, len(q.Meta))
	for i := range q.Meta {
		keys[i] = q.Meta[i].Key
	}
	known, err := v.Names(ctx, keys)
	if err != nil || known.Records == 0 {
		return nil, err
	}
	none := "No record has"
	if !known.Whole {
		none = "None of the newest records has"
	}
	for _, t := range q.Meta {
		values := known.Values[t.Key]
		switch {
		case len(values) == 0:
			list = append(list, fmt.Sprintf("%s the meta key %s%s", none, t.Key, suggestNear(t.Key, slices.Sorted(maps.Keys(known.Keys)))))
		case len(t.Any) > 0 && !slices.ContainsFunc(t.Any, func(v string) bool { return values[v] }):
			list = append(list, fmt.Sprintf("%s the %s %s%s", none, t.Key, strings.Join(t.Any, " or "), suggestNear(t.Any[0], slices.Sorted(maps.Keys(values)))))
		}
	}
	for _, t := range q.Amounts {
		if !known.Components[t.Name] {
			list = append(list, fmt.Sprintf("%s the component %s%s", none, t.Name, suggestNear(t.Name, slices.Sorted(maps.Keys(known.Components)))))
		}
	}
	return list, nil
}

// suggestNear names what was perhaps meant.
func suggestNear(word string, known []string) string {
	if s := hcl.Suggest(word, known); s != "" {
		return "; did you mean " + s + "?"
	}
	if len(known) > 0 && len(known) <= 8 {
		return "; there are " + strings.Join(known, ", ") + "."
	}
	return "."
}

// addressQuery is the filter as the query of an address.
func (f filter) addressQuery() url.Values {
	q := url.Values{}
	for name, value := range f.fieldPointers() {
		if *value != "" {
			q.Set(name, *value)
		}
	}
	return q
}

// sortChoices are the orders of the list.
func sortChoices(own report.Keys) []choice {
	return []choice{
		{Value: "", Text: "latest end first"}, {Value: "stop", Text: "earliest end first"}, {Value: "-start", Text: "latest start first"}, {Value: "start", Text: "earliest start first"},
		{Value: "-runtime", Text: "longest first"}, {Value: "runtime", Text: "shortest first"}, {Value: "id", Text: "record"}, {Value: "-id", Text: "record, backwards"},
		{Value: "meta.site_id", Text: "site"}, {Value: "meta." + own.Group, Text: "group"}, {Value: "meta." + own.User, Text: "user"}, {Value: "meta.state", Text: "state"},
		{Value: "-component.Cores", Text: "most cores first"}, {Value: "-component.Memory", Text: "most memory first"}, {Value: "-component.GPUs", Text: "most GPUs first"},
	}
}

// setOrder sets the order of the list, and returns its name in /v1.
func (f filter) setOrder(q *store.Query) (name string, err error) {
	word, down := strings.CutPrefix(f.Sort, "-")
	q.Desc = down || f.Sort == ""
	if key, ok := strings.CutPrefix(word, "meta."); ok && key != "" {
		q.Order, q.By = store.ByMeta, key
		return word, nil
	}
	if component, ok := strings.CutPrefix(word, "component."); ok && component != "" {
		q.Order, q.By = store.ByAmount, component
		return word, nil
	}
	switch word {
	case "", "stop":
		q.Order, name = store.ByStop, "stop_time"
	case "start":
		q.Order, name = store.ByStart, "start_time"
	case "runtime":
		q.Order, name = store.ByRuntime, "runtime"
	case "id":
		q.Order, name = store.ByID, "record_id"
	default:
		return "", badRequest("%q is no order.", f.Sort)
	}
	return name, nil
}

// addSearch makes filters of the words of the search field: KEY=VALUE, COMPONENT>=AMOUNT,
// running, ended, or the id of a record.
func (f *filter) addSearch(text string) error {
	for word := range strings.FieldsSeq(text) {
		key, value, pair := strings.Cut(word, "=")
		field := map[string]*string{
			"site": &f.Site, "site_id": &f.Site, "group": &f.Group, f.wholeKeys().Group: &f.Group, "user": &f.User, f.wholeKeys().User: &f.User, "id": &f.ID, "record": &f.ID,
			"since": &f.Since, "until": &f.Until, "ran_since": &f.RanSince, "ran_until": &f.RanUntil,
		}[key]
		name, more := strings.CutSuffix(key, ">")
		switch {
		case word == "running" || word == "ended":
			f.Runs = word
		case !pair:
			f.ID = word
		case more:
			f.Component, f.Least = name, value
		case field != nil:
			*field = value
		case f.Key != "" && f.Key != key:
			return badRequest("The list filters by one meta key beside site, group and user: %s or %s.", f.Key, key)
		default:
			f.Key, f.Value = key, value
		}
	}
	return nil
}

// filterChips are the filters with the addresses of the list without each.
func (f filter) filterChips() (list []crumb) {
	add := func(key, value string, fields ...string) {
		if value == "" {
			return
		}
		rest := f.addressQuery()
		for _, field := range fields {
			rest.Del(field)
		}
		list = append(list, crumb{Key: key, Value: value, Address: "/ui/records?" + rest.Encode()})
	}
	add("record", f.ID, "id")
	for _, m := range []struct{ name, list string }{{"site", f.Site}, {"group", f.Group}, {"user", f.User}} {
		if m.list != "" {
			add(m.name, valuesText(m.list), m.name)
		}
	}
	add("ended since", f.Since, "since")
	add("ended before", f.Until, "until")
	add("ran since", f.RanSince, "ran_since")
	add("ran before", f.RanUntil, "ran_until")
	add("run time in seconds", atLeast(f.TookFrom), "took_from")
	add("run time in seconds", below(f.TookBelow), "took_below")
	add("wait in seconds", atLeast(f.WaitedFrom), "waited_from")
	add("wait in seconds", below(f.WaitedBelow), "waited_below")
	add("runs", f.Runs, "runs")
	if f.Least != "" {
		add(f.Component, "≥ "+f.Least, "component", "least")
	} else {
		add("component", f.Component, "component")
	}
	if f.Value != "" {
		add(f.Key, valuesText(f.Value), "key", "value")
	} else {
		add("has", f.Key, "key")
	}
	return list
}

// atLeast and below are a bound for people; "" without one.
func atLeast(bound string) string {
	if bound == "" {
		return ""
	}
	return "≥ " + bound
}

func below(bound string) string {
	if bound == "" {
		return ""
	}
	return "< " + bound
}

// numberTest returns the test that is a range.
func numberTest(r store.Range) (t v1.NumberTest) {
	if r.Min != nil {
		t.Gte = new(int(*r.Min))
	}
	if r.Max != nil {
		t.Lte = new(int(*r.Max))
	}
	return t
}

// csvAddress is the address at which /v1 has all that is found, in the same order; "" when
// it cannot be asked that.
func (f filter) csvAddress(q *store.Query) string {
	out := v1.ListRecordsQuery{RecordID: q.ID, Meta: map[string]v1.MetaTest{}, Component: map[string]v1.NumberTest{}}
	switch name, _ := f.setOrder(&store.Query{}); { // it was parsed before
	case q.By != "":
		out.Order = f.Sort
	case q.Desc:
		out.SortBy.Desc = name
	default:
		out.SortBy.Asc = name
	}
	if q.Stop.Min != nil {
		out.StopTime.Gte = v1.Stamp(record.Time(*q.Stop.Min))
	}
	if until, ok, _ := parseMoment(f.Until, f.timeZone()); ok { // it was parsed before
		out.StopTime.Lt = v1.Stamp(until)
	}
	out.Runtime, out.Wait = numberTest(q.Runtime), numberTest(q.Wait)
	if w := q.Running; w != nil {
		if w.From != record.None {
			out.RanFrom = v1.Stamp(w.From)
		}
		if w.To != math.MaxInt64 {
			out.RanTo = v1.Stamp(w.To)
		}
	}
	for _, m := range q.Meta {
		test := out.Meta[m.Key]
		switch {
		case len(m.Any) == 1:
			test.C = append(test.C, m.Any[0])
		case len(m.Any) == 0 || test.Any != nil:
			return ""
		default:
			test.Any = m.Any
		}
		out.Meta[m.Key] = test
	}
	for _, a := range q.Amounts {
		out.Component[a.Name] = v1.NumberTest{Gte: new(int(*a.Amount.Min))}
	}
	if q.Open != store.OpenOrClosed {
		out.Open = new(q.Open == store.OnlyOpen)
	}
	return v1.ListRecordsAddress(&out, "csv")
}

// storeQuery turns the filter into a query: without another order the newest first, running
// ones before all others.
func (f filter) storeQuery() (store.Query, error) {
	q := store.Query{ID: strings.TrimSpace(f.ID), Limit: pageSize + 1}
	if _, err := f.setOrder(&q); err != nil {
		return q, err
	}
	if since, ok, err := parseMoment(f.Since, f.timeZone()); err != nil {
		return q, err
	} else if ok {
		q.Stop.GTE(int64(since))
	}
	if until, ok, err := parseMoment(f.Until, f.timeZone()); err != nil {
		return q, err
	} else if ok {
		q.Stop.LT(int64(until))
	}
	if err := f.addWindow(&q); err != nil {
		return q, err
	}
	for _, m := range []struct{ key, value string }{{"site_id", f.Site}, {f.wholeKeys().Group, f.Group}, {f.wholeKeys().User, f.User}} {
		if m.value != "" {
			q.Meta = append(q.Meta, store.MetaTest{Key: m.key, Any: v1.SplitList(m.value)})
		}
	}
	switch {
	case f.Value != "" && f.Key == "":
		return q, badRequest("A value needs the key that has it, for example %s.", f.wholeKeys().User)
	case f.Key != "" && f.Value == "":
		q.Meta = append(q.Meta, store.MetaTest{Key: f.Key})
	case f.Key != "":
		q.Meta = append(q.Meta, store.MetaTest{Key: f.Key, Any: v1.SplitList(f.Value)})
	}
	if err := f.addAmount(&q); err != nil {
		return q, err
	}
	for _, bound := range []struct {
		what, text string
		least      int64
		set        func(int64)
	}{{"run time", f.TookFrom, 0, q.Runtime.GTE}, {"run time", f.TookBelow, 1, q.Runtime.LT}, {"wait", f.WaitedFrom, 0, q.Wait.GTE}, {"wait", f.WaitedBelow, 1, q.Wait.LT}} {
		if bound.text == "" {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(bound.text), 10, 64)
		if err != nil || n < bound.least {
			return q, badRequest("The %s is %q; write whole seconds, %d or more.", bound.what, bound.text, bound.least)
		}
		bound.set(n)
	}
	switch f.Runs {
	case "":
	case "running":
		q.Open = store.OnlyOpen
	case "ended":
		q.Open = store.OnlyClosed
	default:
		return q, badRequest("%q is no choice of runs.", f.Runs)
	}
	return q, nil
}

// addWindow adds the window in which runs went on for some of the time.
func (f filter) addWindow(q *store.Query) error {
	w := store.Window{From: record.None, To: math.MaxInt64}
	for _, end := range []struct {
		text string
		at   *record.Time
	}{{f.RanSince, &w.From}, {f.RanUntil, &w.To}} {
		t, ok, err := parseMoment(end.text, f.timeZone())
		if err != nil {
			return err
		}
		if ok {
			*end.at, q.Running = t, &w
		}
	}
	return nil
}

// addAmount adds the test of a component.
func (f filter) addAmount(q *store.Query) error {
	if f.Component == "" {
		if f.Least != "" {
			return badRequest("An amount needs the component that has it, for example Cores.")
		}
		return nil
	}
	least := int64(0)
	if f.Least != "" {
		n, err := strconv.ParseInt(strings.TrimSpace(f.Least), 10, 64)
		if err != nil || n < 0 {
			return badRequest("%q is no amount; write a whole number.", f.Least)
		}
		least = n
	}
	t := store.AmountTest{Name: f.Component}
	t.Amount.GTE(least)
	q.Amounts = append(q.Amounts, t)
	return nil
}

// parseMoment reads a date, a date with a time, or RFC 3339; by the clock of the zone if it
// says nothing else.
func parseMoment(s string, zone *time.Location) (record.Time, bool, error) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, false, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", time.DateTime, time.RFC3339Nano} {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return record.FromStd(t), true, nil
		}
	}
	if why := calendar.Impossible(s); why != "" {
		return 0, false, badRequest("%q is not a time: %s.", s, why)
	}
	return 0, false, badRequest("%q is not a time; write it like 2026-01-31, 2026-01-31 12:00 or 2026-01-31T12:00:00Z.", s)
}

// encodePosition writes a position for an address.
func encodePosition(p store.Position) string {
	text, _ := json.Marshal(p) // numbers and text only
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodePosition(token string, q *store.Query) (*store.Position, error) {
	var p store.Position
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.Order != q.Order || p.By != q.By || p.Desc != q.Desc {
		return nil, badRequest("This page of the list does not exist; start with the first one.")
	}
	return &p, nil
}
