package usage

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
)

// member is a series and the group that it is in.
type member struct {
	*series
	group uint32
}

// fewMembers is how many series one goroutine adds up faster than two would.
const fewMembers = 64

// members adds the days of series, on all processors where there are many: each
// adds up some of the groups. Sums are whole numbers, so the answer is the same
// however many take part. who is which dimension names people, or negative.
func (x *Index) members(t *tally, list []member, who int) {
	slices.SortFunc(list, func(a, b member) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.tuple, b.tuple)) })
	w := newWindow(t.q, x.grid)
	workers := max(1, min(runtime.GOMAXPROCS(0), len(list)/fewMembers, 16))
	parts := make([]*tally, workers)
	var wait sync.WaitGroup
	for i := range parts {
		parts[i] = t
		if i > 0 {
			parts[i] = emptyTally(t.q)
			parts[i].groups, parts[i].memory, parts[i].known = t.groups, t.memory, math.MaxInt
		}
		wait.Go(func() { x.some(parts[i], list[len(list)*i/workers:len(list)*(i+1)/workers], who, w) })
	}
	wait.Wait()
	for _, part := range parts[1:] {
		t.merge(part)
	}
}

// some adds the days of some of the series.
func (x *Index) some(t *tally, list []member, who int, w *window) {
	for i := range list {
		name := ""
		if who >= 0 {
			name = x.tuples[list[i].tuple].values[who]
		}
		t.series(list[i].series, list[i].group, name, w)
		if t.enough() != nil {
			return // of which finished tells
		}
	}
}

// merge adds what another was told, and takes what it has over.
func (t *tally) merge(o *tally) {
	for _, c := range o.columns {
		to := t.column(c.columnName)
		for group, row := range c.rows {
			if row != nil {
				to.rows = mergeRow(to.rows, group, row, addSums)
			}
		}
	}
	for group, row := range o.cells {
		if row != nil {
			t.cells = mergeRow(t.cells, group, row, addCounts)
		}
	}
	for key, from := range o.targets { // as below
		if to, ok := t.targets[key]; ok {
			to.runs += from.runs
		} else {
			t.targetOf(from.layout).runs += from.runs
		}
	}
	t.open += o.open
	t.many += o.many
	for sh, n := range o.ofLayouts { // counts: the order does not matter
		t.ofLayouts[sh] += n
	}
	for p := range o.people {
		t.people[p] = struct{}{}
	}
}

// mergeGroups is merge of a tally that has groups of its own.
func (t *tally) mergeGroups(o *tally) {
	numbers := make([]uint32, len(o.groups.tuples))
	for i := range numbers {
		numbers[i] = t.groups.enter(o.groups.tuples[i])
	}
	for _, c := range o.columns {
		c.rows = renumbered(c.rows, numbers)
	}
	o.cells = renumbered(o.cells, numbers)
	people := o.people
	o.people = make(map[person]struct{}, len(people))
	for p := range people {
		group, bucket := p.cell/uint64(t.buckets), p.cell%uint64(t.buckets)
		p.cell = uint64(numbers[group])*uint64(t.buckets) + bucket
		o.people[p] = struct{}{}
	}
	t.merge(o)
}

// renumbered has row i at numbers[i].
func renumbered[T any](rows [][]T, numbers []uint32) [][]T {
	var out [][]T
	for i, row := range rows {
		if row != nil {
			out = mergeRow(out, int(numbers[i]), row, nil) // no two have the same number
		}
	}
	return out
}

// mergeRow adds a row to that of a group, or makes it the group's.
func mergeRow[T any](rows [][]T, group int, row []T, add func(to, from []T)) [][]T {
	for group >= len(rows) {
		rows = append(rows, nil)
	}
	if rows[group] == nil {
		rows[group] = row
	} else {
		add(rows[group], row)
	}
	return rows
}

func addSums(to, from []Sum) {
	for i := range to {
		to[i] = to[i].Add(from[i])
	}
}

func addCounts(to, from []counts) {
	for i := range to {
		to[i].add(&from[i])
	}
}
