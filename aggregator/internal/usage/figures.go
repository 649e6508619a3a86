package usage

import (
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Kind says what the figures of a column are.
type Kind uint8

// The kinds of figures.
const (
	Count    Kind = iota // a number
	Rate                 // what a rate used over time
	Total                // what a total came to
	Weighted             // either, weighted with a score
	Mean                 // a time for each record
	Ratio                // a quotient of two sums
	Worth                // what usage is worth, in the unit of a weight
	Supply               // what clusters have, over time
	Level                // how many there were at a time, in the mean
)

// String returns the word for the kind.
func (k Kind) String() string {
	return [...]string{"count", "rate", "total", "weighted", "mean", "ratio", "worth", "capacity", "level"}[k]
}

// figures are those of a column's cells. What a kind has no use for is nil.
type figures struct {
	n     []uint64   // the numbers, or of a mean how many records
	sum   []sums.Sum // in millionths, or as [Value] has it
	over  []sums.Sum // by which sum is to be divided; of a worth [Value.Beside]
	apart []sums.Sum // of a worth, [Value.Apart]
	real  []float64  // in millionths
	// spans are how long the known parts of a level's buckets are: cell i is of bucket i modulo
	// their number. Groups that are put together add up, and their spans do not.
	spans []record.Time
}

// emptyLike returns figures of the same kind for n cells.
func (f *figures) emptyLike(n int) figures {
	out := figures{spans: f.spans}
	if f.n != nil {
		out.n = make([]uint64, n)
	}
	if f.sum != nil {
		out.sum = make([]sums.Sum, n)
	}
	if f.over != nil {
		out.over = make([]sums.Sum, n)
	}
	if f.apart != nil {
		out.apart = make([]sums.Sum, n)
	}
	if f.real != nil {
		out.real = make([]float64, n)
	}
	return out
}

// addCell adds cell j of from to cell i.
func (f *figures) addCell(i int, from *figures, j int) {
	if f.n != nil {
		f.n[i] += from.n[j]
	}
	if f.sum != nil {
		f.sum[i] = f.sum[i].Add(from.sum[j])
	}
	if f.over != nil {
		f.over[i] = f.over[i].Add(from.over[j])
	}
	if f.apart != nil {
		f.apart[i] = f.apart[i].Add(from.apart[j])
	}
	if f.real != nil {
		f.real[i] += from.real[j]
	}
}

// hasValue reports whether there is anything in a cell.
func (f *figures) hasValue(i int) bool {
	return f.n != nil && f.n[i] != 0 || f.sum != nil && !f.sum[i].IsZero() || f.over != nil && !f.over[i].IsZero() || f.real != nil && f.real[i] != 0
}

// isUnknown reports whether a sum is not known, which only that of a worth can be.
func (f *figures) isUnknown(i int) bool {
	known := f.sum[i]
	if f.apart != nil {
		known = known.Sub(f.apart[i])
	}
	return f.over != nil && known.IsZero() && !f.over[i].IsZero()
}

// regroupCells puts the cells of group g into those of group place[g], unless that is
// negative.
func (f *figures) regroupCells(place []int, groups, buckets int) figures {
	out := f.emptyLike(groups * buckets)
	for g, p := range place {
		for b := 0; p >= 0 && b < buckets; b++ {
			out.addCell(p*buckets+b, f, g*buckets+b)
		}
	}
	return out
}

// sumBuckets adds up the buckets of each group.
func (f *figures) sumBuckets(groups, buckets int) figures {
	if buckets == 1 {
		return *f
	}
	out := f.emptyLike(groups)
	if f.spans != nil {
		out.spans = []record.Time{0}
		for _, span := range f.spans {
			out.spans[0] += span
		}
	}
	for g := range groups {
		for b := range buckets {
			out.addCell(g, f, g*buckets+b)
		}
	}
	return out
}

// cellValue is a cell as a number to compare by; false when it has none.
func (c *Column) cellValue(f *figures, i int) (float64, bool) {
	switch c.Kind {
	case Count:
		return float64(f.n[i]), true
	case Rate, Total, Worth:
		return f.sum[i].Float() / c.unitScale(), !f.isUnknown(i)
	case Weighted:
		return f.real[i] / c.unitScale(), true
	case Mean:
		return f.sum[i].Float() / 1e6 / float64(f.n[i]), f.n[i] > 0
	case Supply:
		return f.sum[i].Float() / c.unitScale(), !f.sum[i].IsZero()
	case Ratio:
		return f.sum[i].Float() / f.over[i].Float(), !f.over[i].IsZero()
	case Level:
		span := f.spans[i%len(f.spans)]
		return f.sum[i].Float() / float64(span), span > 0
	}
	return 0, false
}

// unitScale is by how much figures are divided.
func (c *Column) unitScale() float64 {
	switch {
	case c.isInValueUnit():
		return 3600e15
	case c.hours:
		return 3600e6
	}
	return 1e6
}

// Column is a measure with its figures.
type Column struct {
	// Name is that of the measure; Component and Score are those that it is of.
	Name, Component, Score string
	Kind                   Kind
	// Unit is hour, second, that of a weight, or nothing.
	Unit string

	hours   bool
	cells   figures    // of all groups and buckets
	whole   *figures   // of the groups; nil: it cannot be told
	lacking []sums.Sum // of cells: what has no score; nil: nothing
	before  *figures   // of the groups in the other window
	// without is how many records have no such component, or no such score of it; nil
	// for what is neither.
	without *uint64
	// unpriced are the parts of components that the weight does not know.
	unpriced []sums.Unvalued
	// apart says that groups cannot be added up: the same person may be in two.
	apart bool
	// strict is [Value.Strict].
	strict bool
	// once is the figure of all groups together where the same run may be in two; nil
	// where they add up.
	once *uint64
	// supply is the capacity that the column is about; nil: none.
	supply *supply
}

func newColumn(name string, kind Kind, f figures) Column {
	return Column{Name: name, Kind: kind, cells: f}
}

// withTimeUnit sets the unit of what is a time, or was used over one.
func (c Column) withTimeUnit(hours bool) Column {
	c.Unit, c.hours = "second", hours
	if hours {
		c.Unit = "hour"
	}
	return c
}

// answerColumns are the columns of an answer.
func (r *Request) answerColumns(a *Result) []Column {
	var out []Column
	for _, m := range wordMeasures() {
		if r.wantsWord(m.word) {
			out = append(out, m.column(r, a.Answer))
		}
	}
	for i := range a.Worths {
		w := &a.Worths[i]
		c := newColumn(w.Name, Worth, figures{sum: w.Sum, over: w.Beside, apart: w.Apart})
		c.Unit, c.hours, c.unpriced = w.Unit, r.Hours, w.Lacking
		c.strict = w.Strict
		out = append(out, c)
	}
	for i := range a.Components {
		out = r.appendComponent(out, a.Answer, &a.Components[i])
	}
	renameDuplicates(out)
	return out
}

// appendComponent appends the columns that are wanted of a component.
func (r *Request) appendComponent(out []Column, a *sums.Answer, c *sums.Component) []Column {
	whole := r.wantsAll() || slices.Contains(r.Components, c.Name)
	kind := Rate
	if c.Kind == record.Total {
		kind = Total
	}
	if whole || slices.Contains(r.Measures, c.Name) {
		col := newColumn(c.Name, kind, figures{sum: c.Used})
		col = r.ofComponent(col, c, "")
		lack := a.Runs - c.Runs
		col.without = &lack
		out = append(out, col)
	}
	for i := range c.Scores {
		s := &c.Scores[i]
		if name := c.Name + times + s.Name; whole || slices.Contains(r.Measures, name) {
			col := r.ofComponent(newColumn(name, Weighted, figures{real: s.Used}), c, s.Name)
			col.lacking = unlessZero(s.Lacking)
			lack := c.Runs - s.Runs
			col.without = &lack
			out = append(out, col)
		}
	}
	return out
}

func (r *Request) ofComponent(col Column, c *sums.Component, score string) Column {
	col.Component, col.Score = c.Name, score
	if c.Kind != record.Total {
		col = col.withTimeUnit(r.Hours)
	}
	return col
}

func unlessZero(list []sums.Sum) []sums.Sum {
	for _, s := range list {
		if !s.IsZero() {
			return list
		}
	}
	return nil
}

// renameDuplicates keeps the names of columns apart: a component may be a rate in one record
// and a total in another.
func renameDuplicates(list []Column) {
	seen := map[string]bool{}
	for i := range list {
		if c := &list[i]; seen[c.Name] {
			c.Name += " (" + c.Kind.String() + ")"
			if c.Kind == Weighted && c.Unit == "" {
				c.Name = c.Component + times + c.Score + " (total)"
			}
		}
		seen[list[i].Name] = true
	}
}
