package usage

import (
	"context"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// SourceBegin says from when on a source has all runs that ended.
type SourceBegin struct {
	Source string
	From   record.Time
	// Common are the keys that the metas of all of its records have with the same values, as far
	// as that is known: records with others are not of this source.
	Common record.Meta
}

// mayPass reports whether records of the source can pass tests.
func (b *SourceBegin) mayPass(tests []store.MetaTest) bool {
	for i := range tests {
		if b.Common.Get(tests[i].Key) != nil && !store.MetaAllowed([][]store.MetaTest{tests[i : i+1]}, b.Common) {
			return false
		}
	}
	return true
}

// isOf reports whether records of the source can have the first values of keys.
func (b *SourceBegin) isOf(keys, values []string, lacks []bool) bool {
	for i, key := range keys {
		if own := b.Common.Get(key); len(own) > 0 && (lacks[i] || own[0] != values[i]) {
			return false
		}
	}
	return true
}

// narrowKnown begins the known time where the sources begin of which records can pass the
// conditions.
func (r *Request) narrowKnown() {
	if r.Known != (sums.Span{}) {
		r.Known.From = min(r.beginOf(nil, nil, nil, nil), r.Known.To)
	}
}

// beginOf returns from when on the runs are known that pass the conditions, have the first
// values of keys, and are of one of clusters; nil clusters: of any. It is the start of the known
// time where no source is told to have such runs.
func (r *Request) beginOf(keys, values []string, lacks []bool, clusters []string) record.Time {
	begin := record.MaxTime
	for i := range r.Sources {
		if b := &r.Sources[i]; b.From < begin && b.isOf(keys, values, lacks) && r.mayHave(b, clusters) {
			begin = b.From
		}
	}
	if begin == record.MaxTime {
		return r.Known.From
	}
	return max(begin, r.Known.From)
}

// mayHave reports whether records of a source can pass the conditions and be of one of clusters.
func (r *Request) mayHave(b *SourceBegin, clusters []string) bool {
	if !b.mayPass(r.Where.Meta) {
		return false
	}
	for _, f := range r.Having {
		switch {
		case f.Key == clusterKey:
			if !r.isOfCluster(b, f.Values) {
				return false
			}
		case r.isOfMeta(f.Key):
			if own := b.Common.Get(f.Key); len(own) > 0 && !slices.Contains(f.Values, own[0]) {
				return false
			}
		}
	}
	return clusters == nil || r.isOfCluster(b, clusters)
}

// isOfCluster reports whether records of a source can be of one of clusters; "" is none of them.
func (r *Request) isOfCluster(b *SourceBegin, clusters []string) bool {
	if r.Capacity == nil {
		return true
	}
	var tests []store.MetaTest
	for _, e := range b.Common {
		tests = append(tests, store.MetaTest{Key: e.Key, Any: e.Values, OfMeta: true})
	}
	return len(r.Capacity.Among(clusters, tests)) > 0
}

// isOfMeta reports whether the values of a key are those of the meta of records: keys that
// follow from others, such as project, tell nothing of sources.
func (r *Request) isOfMeta(key string) bool {
	return key != clusterKey && !slices.Contains(r.Derived, key) && !record.IsEndKey(key)
}

// beginOfGroup returns from when on the runs of a group are known.
func (r *Request) beginOfGroup(g *TableGroup) record.Time {
	if len(r.Sources) < 2 || r.Known == (sums.Span{}) {
		return r.Known.From
	}
	var keys, values, clusters []string
	var lacks []bool
	for i, key := range r.By {
		switch {
		case key == clusterKey && !g.Lacks[i]:
			clusters = []string{g.Values[i]}
		case r.isOfMeta(key):
			keys, values, lacks = append(keys, key), append(values, g.Values[i]), append(lacks, g.Lacks[i])
		}
	}
	return r.beginOf(keys, values, lacks, clusters)
}

// KnownPart returns the part of the window of which the records are known that pass the
// conditions, with the same ends where none is, and the sources that begin within it.
func (r *Request) KnownPart() (part sums.Span, later []SourceBegin) {
	r.narrowKnown()
	part.From, part.To = r.Known.Overlap(r.Window.From, r.Window.To)
	return part, r.laterSources()
}

// laterSources returns the sources that begin within the known part of the window.
func (r *Request) laterSources() (list []SourceBegin) {
	if !r.NameSources {
		return nil
	}
	from, to := r.Known.Overlap(r.Window.From, r.Window.To)
	for i := range r.Sources {
		if b := &r.Sources[i]; b.From > from && b.From < to && r.mayHave(b, nil) {
			list = append(list, *b)
		}
	}
	return list
}

// cutEdges returns the edges of buckets that have a part in a span, moved to its ends, and
// which bucket the first of them is.
func cutEdges(s sums.Span, edges []record.Time) (first int, out []record.Time) {
	for i := range len(edges) - 1 {
		from, to := s.Overlap(edges[i], edges[i+1])
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
func (r *Request) setLevels(ctx context.Context, ask sums.AskFunc, a *sums.Answer, edges []record.Time) error {
	if a.Running == nil || r.Known.Covers(edges[0], edges[len(edges)-1]) {
		return nil
	}
	clear(a.Running)
	clear(a.Queued)
	first, known := cutEdges(r.Known, edges)
	if known == nil {
		return nil
	}
	q := r.queryFor(known)
	q.Counts, q.People, q.CPU, q.Cores, q.Energy = false, "", "", "", nil
	q.Components, q.Unscored, q.Weights = []string{}, nil, nil
	b, err := ask(ctx, q)
	if err != nil {
		return err
	}
	buckets, width := len(edges)-1, len(known)-1
	for g := range b.Groups {
		at, found := slices.BinarySearchFunc(a.Groups, b.Groups[g], compareGroups)
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
	r, last := s.Request, s.bucketCount()-1
	s.partial, s.unknown = make([]bool, last+1), make([]bool, last+1)
	for i := range s.partial {
		known := r.Known.OverlapLength(s.Edges[i], s.Edges[i+1])
		s.unknown[i] = known == 0
		s.partial[i] = known < s.Edges[i+1]-s.Edges[i] ||
			i == 0 && !r.Bucket.Starts(s.Edges[0], r.Zone) || i == last && !r.Bucket.Starts(s.Edges[last+1], r.Zone)
	}
}

// Known returns the known part of the window; from is to where none of it is known.
func (s *Table) Known() (from, to record.Time) {
	return s.Request.Known.Overlap(s.Request.Window.From, s.Request.Window.To)
}

// isUnknown reports whether a cell is unknown: nothing is recorded in it, and nothing would
// be. What runs that were recorded later used before is there all the same.
func (s *Table) isUnknown(c *Column, g, bucket int) bool {
	return (s.unknown[bucket] || s.beginsAfter(g, s.Edges[bucket+1])) && !c.cells.hasValue(g*s.bucketCount()+bucket)
}

// isWholeUnknown reports whether a group's figure of the whole window is unknown.
func (s *Table) isWholeUnknown(c *Column, g int) bool {
	return (!slices.Contains(s.unknown, false) || s.beginsAfter(g, s.Edges[len(s.Edges)-1])) && !c.whole.hasValue(g)
}

// isBeforeUnknown is as isWholeUnknown, for the other window.
func (s *Table) isBeforeUnknown(c *Column, g int) bool {
	v := s.Request.Versus
	return s.knownOf(g).OverlapLength(v.From, v.To) == 0 && !c.before.hasValue(g)
}

// beginsAfter reports whether the runs of a group are known from a time on, or from later.
func (s *Table) beginsAfter(g int, at record.Time) bool {
	known := s.knownOf(g)
	return known != (sums.Span{}) && known.From >= at
}

// knownOf returns the time of which the records of a group are known.
func (s *Table) knownOf(g int) sums.Span {
	known := s.Request.Known
	if known != (sums.Span{}) && s.Groups[g].Others == 0 {
		known.From = max(known.From, s.Groups[g].begin)
	}
	return known
}

// isComparable reports whether a group's sums of both windows are of all of their time. A mean
// or a quotient is of the known part of either.
func (s *Table) isComparable(c *Column, g int) bool {
	switch c.Kind {
	case Mean, Ratio, Level:
		return true
	case Count, Rate, Total, Weighted, Worth, Supply:
	}
	return s.Request.isComparable(s.knownOf(g))
}

// isComparable reports whether both windows are known: this one from its start on.
func (r *Request) isComparable(known sums.Span) bool {
	return known == (sums.Span{}) || known.From <= min(r.Window.From, r.Versus.From) && known.Covers(r.Versus.From, r.Versus.To)
}
