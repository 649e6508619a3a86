package usage

import (
	"context"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// addComparison adds what the groups had in the other window, and the groups that were
// only there.
func (s *Table) addComparison(ctx context.Context, ask QueryFunc) error {
	w := s.Request.Versus
	a, err := s.Request.askBuckets(ctx, ask, []record.Time{w.From, w.To})
	if err != nil {
		return err
	}
	place := s.uniteGroups(a.Groups)
	if len(s.Groups)*s.bucketCount() > MaxCells {
		return tooMany(s.bucketCount())
	}
	other := s.Request.answerColumns(a)
	for i := range s.Columns {
		s.Columns[i].setBefore(other, place, len(s.Groups))
	}
	s.addGoneColumns(other)
	return s.addCapacityBefore(ctx, ask)
}

func (c *Column) setBefore(other []Column, place []int, groups int) {
	at := slices.IndexFunc(other, func(o Column) bool {
		return o.Component == c.Component && o.Score == c.Score && o.Kind == c.Kind && o.Unit == c.Unit && (c.Component != "" || o.Name == c.Name)
	})
	before := c.cells.emptyLike(groups)
	if at >= 0 {
		before = other[at].cells.regroupCells(place, groups, 1)
	}
	c.before = &before
}

// addGoneColumns adds the columns that only the other window has.
func (s *Table) addGoneColumns(other []Column) {
	for i := range other {
		o := &other[i]
		if o.Component == "" || slices.ContainsFunc(s.Columns, func(c Column) bool {
			return o.Component == c.Component && o.Score == c.Score && o.Kind == c.Kind && o.Unit == c.Unit
		}) {
			continue
		}
		c := *o
		c.lacking, c.without = nil, &s.Records
		whole := o.cells.emptyLike(len(s.Groups))
		c.cells, c.whole = o.cells.emptyLike(len(s.Groups)*s.bucketCount()), &whole
		s.Columns = append(s.Columns, c)
		s.Columns[len(s.Columns)-1].setBefore(other, s.placeOf, len(s.Groups))
	}
}

// uniteGroups adds the groups of another answer that the table has not, all in the order of
// their values, and returns where each of the others is.
func (s *Table) uniteGroups(list []sums.Group) []int {
	union := slices.Clone(s.Groups)
	for _, g := range list {
		union = append(union, s.Request.tableGroup(&g))
	}
	slices.SortStableFunc(union, compareTableGroups)
	union = slices.CompactFunc(union, func(a, b TableGroup) bool { return compareTableGroups(a, b) == 0 })
	find := func(g TableGroup) int {
		at, _ := slices.BinarySearchFunc(union, g, compareTableGroups)
		return at
	}
	if len(union) > len(s.Groups) {
		own := make([]int, len(s.Groups))
		for i, g := range s.Groups {
			own[i] = find(g)
		}
		for i := range s.Columns {
			s.Columns[i].regroupFigures(own, len(union), s.bucketCount())
		}
		s.Groups = union
		s.updateCapacity()
	}
	place := make([]int, len(list))
	for i, g := range list {
		place[i] = find(TableGroup{Values: g.Values, Lacks: g.Lacks})
	}
	s.placeOf = place
	return place
}

// compareTableGroups orders groups as answers do.
func compareTableGroups(a, b TableGroup) int {
	return sums.CompareValues(a.Values, b.Values, a.Lacks, b.Lacks)
}
