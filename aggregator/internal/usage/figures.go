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
	n       []uint64    // the numbers, or of a mean how many records
	sum     []sums.Sum  // in millionths, or as [sums.Worth] has it
	over    []sums.Sum  // by which sum is to be divided, or of which it is a part; of a worth what is beside it
	real    []float64   // in millionths
	worth   *sums.Worth // of a worth
	lacking []sums.Sum  // what has no score, or is of no cluster
	// spans are how long the known parts of a level's buckets are: cell i is of bucket i modulo
	// their number. Groups that are put together add up, and their spans do not.
	spans []record.Time
}

// hasValue reports whether there is anything in a cell.
func (f *figures) hasValue(i int) bool {
	return f.n != nil && f.n[i] != 0 || f.sum != nil && !f.sum[i].IsZero() || f.over != nil && !f.over[i].IsZero() || f.real != nil && f.real[i] != 0
}

// isUnknown reports whether a sum is not known, which only that of a worth can be, and a part of
// what is not there.
func (f *figures) isUnknown(i int) bool {
	if f.worth != nil {
		return f.worth.IsUnknown(i)
	}
	return f.over != nil && f.over[i].IsZero()
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

	hours bool
	// of returns the figures of an answer, whose columns it shares.
	of func(*sums.Answer) figures
	// cells are of all groups and buckets, whole of the groups, total of all of them and before
	// of the groups in the other window. They are nil where they cannot be told.
	cells                figures
	whole, total, before *figures
	// without is how many records have no such component, or no such score of it; nil
	// for what is neither.
	without *uint64
	// apart says that groups cannot be added up: the same person may be in two.
	apart bool
	// supply is the capacity that the column is about; nil: none.
	supply *supply
}

// figuresOf returns the figures of an answer; nil where it has none.
func (c *Column) figuresOf(a *sums.Answer) *figures {
	f := c.of(a)
	if c.Kind == Count && f.n == nil {
		return nil
	}
	return &f
}

func newColumn(name string, kind Kind, of func(*sums.Answer) figures) Column {
	return Column{Name: name, Kind: kind, of: of}
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
func (r *Request) answerColumns(a *sums.Answer) []Column {
	var out []Column
	for _, m := range wordMeasures() {
		if r.wantsWord(m.word) {
			out = append(out, m.column(r))
		}
	}
	for i := range a.Worths {
		c := newColumn(a.Worths[i].Name, Worth, func(a *sums.Answer) figures {
			w := &a.Worths[i]
			return figures{sum: w.Sum, over: w.Beside, worth: w}
		})
		c.Unit, c.hours = a.Worths[i].Unit, r.Hours
		out = append(out, c)
	}
	for i := range a.Components {
		out = r.appendComponent(out, a, &a.Components[i])
	}
	renameDuplicates(out)
	return out
}

// appendComponent appends the columns that are wanted of a component.
func (r *Request) appendComponent(out []Column, a *sums.Answer, c *sums.Component) []Column {
	all := r.wantsAll() || slices.Contains(r.Components, c.Name)
	name, of := c.Name, c.Kind
	find := func(a *sums.Answer) *sums.Component {
		i := slices.IndexFunc(a.Components, func(o sums.Component) bool { return o.Name == name && o.Kind == of })
		return &a.Components[i]
	}
	kind := Rate
	if of == record.Total {
		kind = Total
	}
	if all || slices.Contains(r.Measures, name) {
		col := r.ofComponent(newColumn(name, kind, func(a *sums.Answer) figures { return figures{sum: find(a).Used} }), c, "")
		lack := a.Runs - c.Runs
		col.without = &lack
		out = append(out, col)
	}
	for i := range c.Scores {
		score := c.Scores[i].Name
		if name := name + times + score; all || slices.Contains(r.Measures, name) {
			col := r.ofComponent(newColumn(name, Weighted, func(a *sums.Answer) figures {
				c := find(a)
				s := &c.Scores[slices.IndexFunc(c.Scores, func(o sums.Score) bool { return o.Name == score })]
				return figures{real: s.Used, lacking: s.Lacking}
			}), c, score)
			lack := c.Runs - c.Scores[i].Runs
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

// totalOf adds up a list.
func totalOf(list []sums.Sum) (total sums.Sum) {
	for _, s := range list {
		total = total.Add(s)
	}
	return total
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
