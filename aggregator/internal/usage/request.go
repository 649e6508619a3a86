package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"

	"github.com/bursar-accounting/bursar/proto/record"
)

// MaxCells bounds the cells of a table: groups × buckets.
const MaxCells = 1_000_000

// ErrRequest is wrapped by errors that say what is wrong with a request, and what
// is allowed.
var ErrRequest = errors.New("invalid usage query")

// wrong is an [ErrRequest] with its own words.
type wrong struct{ error }

func (w wrong) Unwrap() []error { return []error{ErrRequest, w.error} }

func requestError(format string, args ...any) error { return wrong{fmt.Errorf(format, args...)} }

// Request says what a table is about.
type Request struct {
	Window calendar.Window
	Word   string // that said the window; "" when points did
	Bucket calendar.Unit
	Zone   *time.Location
	// By are meta keys.
	By    []string
	Where store.Query
	// Having are conditions on keys, derived ones too.
	Having []sums.Filter
	// Derived are keys that are known even where no record has them.
	Derived []string
	// Weights are the names of the measures that value usage; they hide components.
	Weights []string
	// Measures are words of [MeasureWords], component names and COMPONENT*SCORE; Components
	// are names of components that are wanted with all scores. Without either there
	// are the records and all components.
	Measures, Components []string
	Credit               sums.Credit
	// Hours asks for hours in the place of seconds, rounded to a millionth.
	Hours bool
	// Top is how many groups have a line of their own, by Order; 0 is all.
	Top int
	// Order is the measure by which groups are ordered, the largest first; "" is the
	// order of their values, and with Top the first of Measures, or without any the
	// first component.
	Order string
	// Versus is the window to compare with, said by VersusWord; nil: none.
	Versus     *calendar.Window
	VersusWord string
	// People is the meta key of the measure people; CPU and Cores are the components
	// of the measure efficiency. The zero value has the usual names.
	People, CPU, Cores string
	Now                record.Time
	// Known is the time of which records are known: outside of it what is not recorded is
	// unknown, not zero, and has no part in means and utilization.
	Known sums.Span
	// Sources are those of all records. Where those of which a part of an answer can be begin
	// later than Known, so does the known time of that part. With NameSources, an answer names
	// those that begin later than its own.
	Sources     []SourceBegin
	NameSources bool
	// Capacity knows what clusters have; nil: no one does.
	Capacity Capacity
}

// CapacityWords are the measures about what clusters have. Before * and the name of a
// component they are about that.
func CapacityWords() []string { return []string{supplied, utilization} }

// usualPeople is the key of people where the request names none.
const usualPeople = "user_id"

// times stands between a component and its score.
const times = "*"

func (r *Request) setDefaults() {
	for _, d := range []struct {
		name *string
		def  string
	}{{&r.People, usualPeople}, {&r.CPU, "TotalCPU"}, {&r.Cores, "Cores"}} {
		if *d.name == "" {
			*d.name = d.def
		}
	}
	if r.Zone == nil {
		r.Zone = time.UTC
	}
}

// wantsAll reports whether nothing special is asked for.
func (r *Request) wantsAll() bool { return r.Measures == nil && r.Components == nil }

// wantsWord reports whether a word is among the measures.
func (r *Request) wantsWord(word string) bool {
	if word == records && r.Measures == nil {
		return true
	}
	return slices.Contains(r.Measures, word)
}

// isWordMeasure reports whether a measure is no component.
func (r *Request) isWordMeasure(measure string) bool {
	_, supply := r.demandOf(measure)
	return supply || slices.Contains(MeasureWords(), measure) || slices.Contains(r.Weights, measure)
}

// allWords are the measures that are no component.
func (r *Request) allWords() []string {
	return slices.Concat(MeasureWords(), CapacityWords(), r.Weights)
}

// queryFor is what is to be asked for the buckets between edges.
func (r *Request) queryFor(edges []record.Time) sums.Query {
	q := sums.Query{Edges: edges, By: r.By, Where: r.Where, Credit: r.Credit, Now: r.Now, MaxCells: MaxCells}
	for _, m := range wordMeasures() {
		if r.wantsWord(m.word) {
			m.ask(&q, r)
		}
	}
	if !r.wantsAll() {
		q.Components, q.Unscored = r.componentNames(), r.unscoredNames()
	}
	q.Weights, q.Having, q.Known = r.wantedWeights(), r.Having, r.Known
	return q
}

// wantedWeights are the weights that are asked for.
func (r *Request) wantedWeights() []string {
	return slices.DeleteFunc(slices.Clone(r.Weights), func(name string) bool { return !slices.Contains(r.Measures, name) })
}

// unscoredNames are the components of which no score is asked for.
func (r *Request) unscoredNames() []string {
	return slices.DeleteFunc(r.componentNames(), func(name string) bool {
		return slices.Contains(r.Components, name) || slices.ContainsFunc(r.Measures, func(m string) bool { return strings.HasPrefix(m, name+times) })
	})
}

// componentNames are the components that are asked for, never nil.
func (r *Request) componentNames() []string {
	names := slices.Concat([]string{}, r.Components)
	for _, m := range r.Measures {
		if !r.isWordMeasure(m) {
			name, _, _ := strings.Cut(m, times)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *Request) checkFields() error {
	for _, list := range [][]string{r.By, r.Measures, r.Components} {
		for i, name := range list {
			if name == "" || slices.Contains(list[:i], name) {
				return requestError("%q is duplicate or empty in %s", name, strings.Join(list, ", "))
			}
		}
	}
	if r.Top < 0 {
		return requestError("the top %d groups; want a number of groups, or 0 for all", r.Top)
	}
	if err := r.expandClusters(); err != nil {
		return err
	}
	return r.checkCapacity(r.capacityDemands())
}

// Ever asks for all that there ever was by some keys.
func (r *Request) Ever(ctx context.Context, ask sums.AskFunc, by ...string) (*sums.Answer, error) {
	q := sums.Query{Edges: []record.Time{record.MinTime, record.MaxTime}, By: by, Now: r.Now, MaxCells: MaxCells}
	return ask(ctx, q)
}

// checkKeys returns an error when a key of By, or the one whose values are people, is in no
// record at all.
func (r *Request) checkKeys(ctx context.Context, ask sums.AskFunc, a *sums.Answer) error {
	for i, key := range r.By {
		if slices.ContainsFunc(a.Groups, func(g sums.Group) bool { return !g.Lacks[i] }) {
			continue
		}
		if err := r.checkKey(ctx, ask, key); err != nil {
			return err
		}
	}
	if r.People == usualPeople || !r.wantsWord(people) || slices.ContainsFunc(a.People, func(n uint64) bool { return n > 0 }) {
		return nil
	}
	return r.checkKey(ctx, ask, r.People)
}

// checkKey returns an error when there are records and none has the key.
func (r *Request) checkKey(ctx context.Context, ask sums.AskFunc, key string) error {
	if slices.Contains(r.Derived, key) {
		return nil
	}
	all, err := r.Ever(ctx, ask, key)
	if err == nil && len(all.Groups) > 0 && !slices.ContainsFunc(all.Groups, func(g sums.Group) bool { return !g.Lacks[0] }) {
		return &UnknownKeyError{key}
	}
	return err
}

// UnknownKeyError says that no record has a meta key.
type UnknownKeyError struct{ Key string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("no record has a meta key %q", e.Key)
}

// Unwrap returns [ErrRequest].
func (e *UnknownKeyError) Unwrap() error { return ErrRequest }

// UnknownMeasureError says that there is no measure of a name.
type UnknownMeasureError struct {
	Name string
	// Measures are the names of all that there are.
	Measures []string
	// Units are the components by the units that people say for them.
	Units map[string]string
}

func (e *UnknownMeasureError) Error() string { return fmt.Sprintf("unknown measure %q", e.Name) }

// Unwrap returns [ErrRequest].
func (e *UnknownMeasureError) Unwrap() error { return ErrRequest }
