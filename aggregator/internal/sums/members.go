package sums

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

// addMembers adds the days of series, on all processors where there are many: each
// adds up some of the groups. Sums are whole numbers, so the answer is the same
// however many take part.
func (x *Index) addMembers(t *accumulator, list []member, k *groupedSums) {
	t.places = t.groupPlaces()
	place := func(m *member) int { return t.places.of[m.group] }
	slices.SortFunc(list, func(a, b member) int { return cmp.Or(cmp.Compare(place(&a), place(&b)), cmp.Compare(a.tuple, b.tuple)) })
	w := newWindow(t.q, x.grid)
	workers := max(1, min(runtime.GOMAXPROCS(0), len(list)/fewMembers, 16))
	cuts := cutByPlace(list, workers, place)
	shared := cuts != nil
	if shared {
		t.shareColumns(x.seriesKeys.list)
	} else {
		for i := range workers + 1 {
			cuts = append(cuts, len(list)*i/workers)
		}
	}
	parts := make([]*accumulator, workers)
	var wait sync.WaitGroup
	for i := range parts {
		parts[i] = t
		if i > 0 {
			parts[i] = emptyAccumulator(t.q)
			if shared {
				parts[i] = t.withSharedColumns()
			}
			parts[i].groups, parts[i].memory, parts[i].known = t.groups, t.memory, math.MaxInt
		}
		wait.Go(func() { x.addMemberRange(parts[i], list[cuts[i]:cuts[i+1]], k, w) })
	}
	wait.Wait()
	for _, part := range parts[1:] {
		t.merge(part)
	}
}

// cutByPlace shares a list out so that no two have the same place; nil when there are too few
// places for all to have the same to do.
func cutByPlace(list []member, workers int, place func(*member) int) (cuts []int) {
	cuts = []int{0}
	for i := 1; i < workers; i++ {
		even := len(list) * i / workers
		at := even
		for at < len(list) && place(&list[at]) == place(&list[at-1]) {
			at++
		}
		if at-even > len(list)/workers/8 {
			return nil
		}
		cuts = append(cuts, at)
	}
	return append(cuts, len(list))
}

// addMemberRange adds the days of some series.
func (x *Index) addMemberRange(t *accumulator, list []member, k *groupedSums, w *window) {
	for i := range list {
		t.addSeries(list[i].series, list[i].group, k.personOf(list[i].tuple), w)
		if t.chargeMemory() != nil {
			return // finishAnswer returns the error
		}
	}
}

// merge adds what another has; it may take its rows over.
func (t *accumulator) merge(o *accumulator) {
	for _, c := range o.columns {
		to := t.columnFor(c.columnName)
		for group, row := range c.rows {
			switch {
			case row == nil || to == c:
			case to.shared:
				AddSums(t.rowOf(to, uint32(group)), row)
			default:
				to.rows = mergeRow(to.rows, group, row, AddSums)
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
	t.tooMuch = t.tooMuch || o.tooMuch
	for sh, n := range o.ofLayouts { // counts: the order does not matter
		t.ofLayouts[sh] += n
	}
	for p, records := range o.people {
		t.people[p] += records
	}
}

// mergeGroups merges an accumulator that has groups of its own.
func (t *accumulator) mergeGroups(o *accumulator) {
	numbers := make([]uint32, len(o.groups.tuples))
	for i := range numbers {
		numbers[i] = t.groups.addTuple(o.groups.tuples[i])
	}
	for _, c := range o.columns {
		c.rows = renumberRows(c.rows, numbers)
	}
	o.cells = renumberRows(o.cells, numbers)
	people := o.people
	o.people = make(map[person]uint64, len(people))
	for p, records := range people {
		group, bucket := p.cell/uint64(t.buckets), p.cell%uint64(t.buckets)
		p.cell = uint64(numbers[group])*uint64(t.buckets) + bucket
		o.people[p] += records
	}
	t.merge(o)
}

// renumberRows has row i at numbers[i].
func renumberRows[T any](rows [][]T, numbers []uint32) [][]T {
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

// AddSums adds from to to, element by element.
func AddSums(to, from []Sum) {
	for i := range to {
		to[i] = to[i].Add(from[i])
	}
}

func addCounts(to, from []counts) {
	for i := range to {
		to[i].add(&from[i])
	}
}
