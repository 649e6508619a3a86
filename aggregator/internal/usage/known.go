package usage

import (
	"context"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Span is the time from From, included, to To, not included. The zero Span is all time.
type Span struct{ From, To record.Time }

// SourceBegin says from when on a source has all runs that ended.
type SourceBegin struct {
	Source string
	From   record.Time
}

// part returns the part of a time that lies in the span; it is empty, with the same ends,
// where none does.
func (s Span) part(from, to record.Time) (record.Time, record.Time) {
	if s == (Span{}) {
		return from, to
	}
	begin := min(max(from, s.From), to)
	return begin, max(min(to, s.To), begin)
}

// length is how much of a time lies in the span.
func (s Span) length(from, to record.Time) record.Time {
	from, to = s.part(from, to)
	return to - from
}

// covers reports whether all of a time lies in the span.
func (s Span) covers(from, to record.Time) bool { return s.length(from, to) == to-from }

// cut returns the edges of buckets that have a part in the span, moved to its ends, and
// which bucket the first of them is.
func (s Span) cut(edges []record.Time) (first int, out []record.Time) {
	for i := range len(edges) - 1 {
		from, to := s.part(edges[i], edges[i+1])
		if from == to {
			continue
		}
		if out == nil {
			first, out = i, []record.Time{from}
		}
		out = append(out, to)
	}
	return first, out
}

// setLevels replaces the times that runs took and waited in buckets of which a part is
// unknown by those of the known part: a mean number of runs is of that alone.
func (r *Request) setLevels(ctx context.Context, ask QueryFunc, a *Result, edges []record.Time) error {
	if a.Running == nil || r.Known.covers(edges[0], edges[len(edges)-1]) {
		return nil
	}
	clear(a.Running)
	clear(a.Queued)
	first, known := r.Known.cut(edges)
	if known == nil {
		return nil
	}
	q := r.question(known)
	q.Counts, q.People, q.CPU, q.Cores, q.Energy = false, "", "", "", nil
	q.Components, q.Unscored, q.Weights = []string{}, nil, nil
	b, err := ask(ctx, q)
	if err != nil {
		return err
	}
	buckets, width := len(edges)-1, len(known)-1
	for g := range b.Groups {
		at, found := slices.BinarySearchFunc(a.Groups, b.Groups[g], func(x, y Group) int { return compareValues(x.Values, y.Values, x.Lacks, y.Lacks) })
		if !found {
			continue // it came after the other groups were asked for
		}
		copy(a.Running[at*buckets+first:], b.Running[g*width:(g+1)*width])
		copy(a.Queued[at*buckets+first:], b.Queued[g*width:(g+1)*width])
	}
	return nil
}

// markUnknown notes which buckets lie wholly outside of the known time, and which are a part
// of an interval or have a part that is unknown.
func (s *Table) markUnknown() {
	r, last := s.Request, s.buckets()-1
	s.partial, s.unknown = make([]bool, last+1), make([]bool, last+1)
	for i := range s.partial {
		known := r.Known.length(s.Edges[i], s.Edges[i+1])
		s.unknown[i] = known == 0
		s.partial[i] = known < s.Edges[i+1]-s.Edges[i] ||
			i == 0 && !r.Bucket.Starts(s.Edges[0], r.Zone) || i == last && !r.Bucket.Starts(s.Edges[last+1], r.Zone)
	}
}

// Known returns the known part of the window; from is to where none of it is known.
func (s *Table) Known() (from, to record.Time) {
	return s.Request.Known.part(s.Request.Window.From, s.Request.Window.To)
}

// isUnknown reports whether a cell is unknown: nothing is recorded in it, and nothing would
// be. What runs that were recorded later used before is there all the same.
func (s *Table) isUnknown(c *Column, g, bucket int) bool {
	return s.unknown[bucket] && !c.cells.some(g*s.buckets()+bucket)
}

// isWholeUnknown reports whether a group's figure of the whole window is unknown.
func (s *Table) isWholeUnknown(c *Column, g int) bool {
	return !slices.Contains(s.unknown, false) && !c.whole.some(g)
}

// isBeforeUnknown is as isWholeUnknown, for the other window.
func (s *Table) isBeforeUnknown(c *Column, g int) bool {
	v := s.Request.Versus
	return s.Request.Known.length(v.From, v.To) == 0 && !c.before.some(g)
}

// isComparable reports whether the sums of both windows are of all of their time. A mean
// or a quotient is of the known part of either.
func (s *Table) isComparable(c *Column) bool {
	switch c.Kind {
	case Mean, Ratio, Level:
		return true
	case Count, Rate, Total, Weighted, Worth, Supply:
	}
	return s.Request.comparable()
}

// comparable reports whether both windows are known: this one from its start on.
func (r *Request) comparable() bool {
	return r.Known == (Span{}) || r.Known.From <= min(r.Window.From, r.Versus.From) && r.Known.covers(r.Versus.From, r.Versus.To)
}
