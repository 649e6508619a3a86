package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Entry is a report of the catalogue.
type Entry struct {
	v1.Report

	// Long and Example are what the command line says of the report in its help.
	Long, Example string

	// whole says that the first period begins with a whole interval of its course, of the
	// parameter bucket, and so does the one before it.
	whole bool
	make  func(ctx context.Context, r v1.API, q Query) (*Document, error)
}

// Param is a value of a query that a report takes.
type Param = v1.ReportParameter

// The kinds of parameters. A Window is one of /v1/usage; a Choice is one of the words;
// Pairs are of the form KEY=VALUE, and may also be given as NAME[KEY]=VALUE; the value is a
// list as in /v1/usage. Of a List the spaces around each value do not count.
const (
	ParamWindow = "window"
	ParamZone   = "zone"
	ParamText   = "text"
	ParamList   = "list"
	ParamNumber = "number"
	ParamChoice = "choice"
	ParamPairs  = "pairs"
)

// Catalogue lists the reports that can be asked for by name.
func Catalogue() []Entry {
	return []Entry{
		usageEntry(),
		subscriptionEntry(),
		utilizationEntry(),
		efficiencyEntry(),
		statementEntry(),
		summaryEntry(),
		jobEntry(),
		personEntry(),
		projectsEntry(),
		centreEntry(),
		budgetsEntry(),
		pricesEntry(),
		distributionsEntry(),
	}
}

// Errors of [Make] that a caller decides on; [ErrNothing] is the third.
var (
	// ErrUnknown is wrapped where there is no report of a name.
	ErrUnknown = errors.New("there is no such report")
	// ErrQuery is wrapped where a report does not take what it was told.
	ErrQuery = errors.New("invalid report query")
)

// Find returns the report of a name. The error wraps [ErrUnknown] and names a near one.
func Find(name string) (*Entry, error) {
	list := Catalogue()
	var names []string
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
		names = append(names, list[i].Name)
	}
	return nil, fmt.Errorf("%w: %.60q%s", ErrUnknown, name, Suggestion(name, names))
}

// Make makes the report of a name. Of query it takes the values that the catalogue
// names and no others; empty ones are as if they were not there. What it is told
// wrongly is an error that wraps [ErrUnknown] or [ErrQuery], what is not there one that
// wraps [ErrNothing], and what /v1 refuses comes as it is.
func Make(ctx context.Context, r v1.API, name string, query url.Values, now time.Time) (*Document, error) {
	e, err := Find(name)
	if err != nil {
		return nil, err
	}
	keys, err := askKeys(ctx, r)
	if err != nil {
		return nil, err
	}
	q, err := e.Own(keys).Query(query)
	if err != nil {
		return nil, err
	}
	q.Now, q.Keys = now, keys
	if err := q.resolvePrevious(ctx, r, e.whole); err != nil {
		return nil, err
	}
	var d *Document
	err = store.Several(ctx, func(ctx context.Context) error {
		if d, err = e.make(ctx, r, q); err != nil {
			return err
		}
		lease := store.LeaseOf(ctx)
		lease.Free(lease.Used()) // the answers
		return lease.Use(ctx, d.estimateMemory())
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// cellBytes is about what a cell takes in memory, as it is and as it is written.
const cellBytes = 512

// estimateMemory returns about how many bytes a document needs.
func (d *Document) estimateMemory() (n int64) {
	for i := range d.Tables {
		n += int64(len(d.Tables[i].Rows)+1) * int64(len(d.Tables[i].Columns)) * cellBytes
	}
	return n
}

// Suggestion says what could have been meant.
func Suggestion(word string, words []string) string {
	if near := hcl.Suggest(word, words); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; there are " + strings.Join(words, ", ")
}

// Query is what a report is told, checked against its parameters.
type Query struct {
	Now  time.Time
	Keys Keys

	values map[string][]string
	pairs  map[string]map[string]string
}

// One is the value of a parameter; "" where none is given and there is no default.
func (q *Query) One(name string) string {
	if len(q.values[name]) == 0 {
		return ""
	}
	return q.values[name][0]
}

// All are the values of a parameter that takes several.
func (q *Query) All(name string) []string { return q.values[name] }

// Number is the value of a parameter that is one; 0 where none is given.
func (q *Query) Number(name string) int {
	n, _ := strconv.Atoi(q.One(name)) // it was read when it was checked
	return n
}

// Pairs are the values of a parameter that takes keys with values.
func (q *Query) Pairs(name string) map[string]string { return q.pairs[name] }

// Query checks what the report is told. Where nothing is given the default counts.
func (e *Entry) Query(query url.Values) (Query, error) {
	q := Query{values: map[string][]string{}, pairs: map[string]map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		name, inner, bracket := strings.Cut(key, "[")
		p := e.Param(name)
		if p == nil || bracket && (p.Kind != ParamPairs || !strings.HasSuffix(inner, "]")) {
			return q, fmt.Errorf("%w: the report %s knows no %.60q%s", ErrQuery, e.Name, key, Suggestion(name, e.paramNames()))
		}
		for _, value := range query[key] {
			if bracket {
				value = strings.TrimSuffix(inner, "]") + "=" + value
			} else if value == "" {
				continue
			}
			if err := q.addValue(p, value); err != nil {
				return q, err
			}
		}
	}
	for i := range e.Parameters {
		p := &e.Parameters[i]
		given := len(q.values[p.Name]) + len(q.pairs[p.Name])
		switch {
		case given > p.Most && p.Kind != ParamList:
			return q, fmt.Errorf("%w: %s given %d times; give it at most %d times", ErrQuery, p.Name, given, p.Most)
		case given == 0 && p.Needed:
			return q, fmt.Errorf("%w: %s needs %s", ErrQuery, e.Name, flagHint(p))
		case given == 0:
			q.values[p.Name] = p.Default
		}
	}
	return q, nil
}

// flagHint says how a parameter is given.
func flagHint(p *Param) string {
	flag := "-" + strings.ReplaceAll(p.Name, "_", "-")
	if p.Kind == ParamPairs {
		return fmt.Sprintf("%s KEY=VALUE, such as %[1]s %s", flag, p.Words[0])
	}
	return flag + ": " + strings.ToLower(p.About[:1]) + strings.TrimSuffix(p.About[1:], ".")
}

// resolvePrevious replaces the word previous by the window before the first period, and drops the
// word none. With whole, the first period begins with a whole interval.
func (q *Query) resolvePrevious(ctx context.Context, r v1.API, whole bool) error {
	list := q.All("period")
	if len(list) > 1 && list[1] == Alone {
		q.values["period"] = list[:1]
	}
	if len(list) < 2 || list[1] != Previous {
		return nil
	}
	zoneName := q.One("zone")
	zone, err := clockOf(ctx, r, &zoneName)
	if err != nil {
		return err
	}
	w, err := calendar.ParseWindow(list[0], record.Time(q.Now.UnixMicro()), zone)
	if err != nil {
		return fmt.Errorf("%w: period: %w", ErrQuery, err)
	}
	unit := calendar.None
	if whole {
		if unit, err = calendar.ParseUnit(cmp.Or(q.One("bucket"), "day")); err != nil {
			return fmt.Errorf("%w: bucket: %w", ErrQuery, err)
		}
	}
	s := previousWindow(list[0], span{From: time.UnixMicro(int64(w.From)), To: time.UnixMicro(int64(w.To))}, unit, q.Now, zone)
	q.values["period"] = []string{list[0], s.windowWord(zone)}
	return nil
}

// Param returns the parameter of a name; nil when the report has none.
func (e *Entry) Param(name string) *Param {
	for i := range e.Parameters {
		if e.Parameters[i].Name == name {
			return &e.Parameters[i]
		}
	}
	return nil
}

func (e *Entry) paramNames() (names []string) {
	for i := range e.Parameters {
		names = append(names, e.Parameters[i].Name)
	}
	return names
}

// addValue adds a value of a parameter, if it is one.
func (q *Query) addValue(p *Param, value string) error {
	switch p.Kind {
	case ParamPairs:
		return q.addPair(p, value)
	case ParamList:
		for _, part := range v1.SplitList(value) {
			q.values[p.Name] = append(q.values[p.Name], strings.TrimSpace(part))
		}
		return nil
	case ParamChoice:
		if !slices.Contains(p.Words, value) {
			return fmt.Errorf("%w: %s is %.60q%s", ErrQuery, p.Name, value, Suggestion(value, p.Words))
		}
	case ParamZone:
		if _, err := time.LoadLocation(value); err != nil {
			return fmt.Errorf("%w: %s: %w; want one like Europe/Berlin", ErrQuery, p.Name, err)
		}
	case ParamNumber:
		if n, err := strconv.Atoi(value); err != nil || n < 0 {
			return fmt.Errorf("%w: %s is %.60q; want a number, 0 or more", ErrQuery, p.Name, value)
		}
	}
	q.values[p.Name] = append(q.values[p.Name], value)
	return nil
}

func (q *Query) addPair(p *Param, text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("%w: %s is %.60q; want KEY=VALUE, such as %s", ErrQuery, p.Name, text, p.Words[0])
	}
	if _, twice := q.pairs[p.Name][key]; twice {
		return fmt.Errorf("%w: %s has %.60q more than once", ErrQuery, p.Name, key)
	}
	if q.pairs[p.Name] == nil {
		q.pairs[p.Name] = map[string]string{}
	}
	q.pairs[p.Name][key] = value
	return nil
}
