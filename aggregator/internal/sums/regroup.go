package sums

import (
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Regrouping says into which cells of a new answer those of an answer go. Cells that meet are
// added up.
type Regrouping struct {
	// By, Groups and Edges are those of the new answer.
	By     []string
	Groups []Group
	Edges  []record.Time
	// Target is the new group of each group in each phase: of group g in phase p at
	// g × Phases + p. Where it is negative, the cell goes nowhere.
	Target []int
	Phases int
	// Buckets has an element for each bucket of the answer.
	Buckets []BucketTarget
}

// BucketTarget is the new bucket of a bucket, and the phase in which it lies.
type BucketTarget struct{ Bucket, Phase int }

// Cells is the number of cells of the new answer.
func (r *Regrouping) Cells() int { return len(r.Groups) * (len(r.Edges) - 1) }

// EachCell calls do for all cells that go anywhere, group by group: from is the cell of the
// answer, to that of the new one, and at its element of Target. same says that the cell before it
// is of the same group and went to the same place.
func (r *Regrouping) EachCell(do func(from, to, at int, same bool)) {
	buckets := len(r.Edges) - 1
	for g := range len(r.Target) / max(r.Phases, 1) {
		before := -1
		for i, b := range r.Buckets {
			at, to := g*r.Phases+b.Phase, -1
			if n := r.Target[at]; n >= 0 {
				to = n*buckets + b.Bucket
				do(g*len(r.Buckets)+i, to, at, to == before)
			}
			before = to
		}
	}
}

// SumCells returns a column of the new answer; nil stays nil.
func (r *Regrouping) SumCells(from []Sum) []Sum {
	if from == nil {
		return nil
	}
	out := make([]Sum, r.Cells())
	r.EachCell(func(i, to, _ int, _ bool) { out[to] = out[to].Add(from[i]) })
	return out
}

// sumUnvalued is SumCells for each of a list.
func (r *Regrouping) sumUnvalued(list []Unvalued) []Unvalued {
	out := slices.Clone(list)
	for i := range out {
		out[i].Used = r.SumCells(out[i].Used)
	}
	return out
}

// Regroup returns the answer with its cells in other places. A run that goes on from a cell into
// the next one of its group is counted once where both meet. People of cells that meet are added
// up, which is right where the same person is in one of them only. What is of all cells together
// stays. The answers share what does not move.
func (a *Answer) Regroup(r *Regrouping) *Answer {
	out := *a
	out.By, out.Groups, out.Edges = r.By, r.Groups, r.Edges
	out.regroupCounts(a, r)
	out.EachSum(func(column *[]Sum) { *column = r.SumCells(*column) })
	out.Waited = r.SumCells(a.Waited)
	out.Components = slices.Clone(a.Components)
	for i := range out.Components {
		out.Components[i].regroupCells(r)
	}
	out.Energy.Unmodelled = r.sumUnvalued(a.Energy.Unmodelled)
	out.Worths = slices.Clone(a.Worths)
	for i := range out.Worths {
		out.Worths[i].regroupCells(r)
	}
	if a.Bases != nil {
		out.Bases = make([]EnergyBasis, r.Cells())
		r.EachCell(func(from, to, _ int, _ bool) { out.Bases[to].Add(&a.Bases[from]) })
	}
	out.AllRecords, out.AllJobs = a.AllRecords.regroupCounts(r), a.AllJobs.regroupCounts(r)
	return &out
}

// regroupCounts sets what is counted to that of an answer of which this is a copy.
func (a *Answer) regroupCounts(from *Answer, r *Regrouping) {
	numbers := append(a.countColumns(), &a.People)
	old := append(from.countColumns(), &from.People)
	for i, column := range numbers {
		if *column == nil {
			continue
		}
		list, of := make([]uint64, r.Cells()), *old[i]
		first := of // those that the cell before did not have
		switch {
		case from.Credit == AtStop:
		case old[i] == &from.Records:
			first = from.Begun
		case old[i] == &from.Jobs:
			first = from.Started
		}
		r.EachCell(func(from, to, _ int, same bool) {
			if same {
				list[to] += first[from]
			} else {
				list[to] += of[from]
			}
		})
		*column = list
	}
}

// regroupCells puts the cells of the component into other places.
func (c *Component) regroupCells(r *Regrouping) {
	c.Used = r.SumCells(c.Used)
	c.Scores = slices.Clone(c.Scores)
	for i := range c.Scores {
		s := &c.Scores[i]
		used := make([]float64, r.Cells())
		r.EachCell(func(from, to, _ int, _ bool) { used[to] += s.Used[from] })
		s.Used, s.Lacking = used, r.SumCells(s.Lacking)
	}
}

// regroupCells puts the cells of the worth into other places.
func (w *Worth) regroupCells(r *Regrouping) {
	old := *w
	w.Sum, w.Beside, w.Apart = r.SumCells(w.Sum), r.SumCells(w.Beside), r.SumCells(w.Apart)
	w.Lacking = r.sumUnvalued(w.Lacking)
	if !w.Strict {
		return
	}
	r.EachCell(func(from, to, _ int, _ bool) {
		if old.IsUnknown(from) {
			w.Sum[to], w.Beside[to] = Sum{}, SumOf(1)
		}
	})
}

// regroupCounts puts the groups together where each group goes to one place; nil stays nil.
func (w *Whole) regroupCounts(r *Regrouping) *Whole {
	if w == nil || r.Phases != 1 {
		return nil
	}
	out := &Whole{Groups: make([]uint64, len(r.Groups)), All: w.All}
	for g, to := range r.Target {
		if to >= 0 {
			out.Groups[to] += w.Groups[g]
		}
	}
	return out
}

// MoveGroups returns the answer with group g at place[g] of groups, without those whose place is
// negative.
func (a *Answer) MoveGroups(place []int, groups []Group) *Answer {
	r := &Regrouping{By: a.By, Groups: groups, Edges: a.Edges, Target: place, Phases: 1, Buckets: make([]BucketTarget, len(a.Edges)-1)}
	for b := range r.Buckets {
		r.Buckets[b].Bucket = b
	}
	return a.Regroup(r)
}

// SumBuckets returns the answer with one bucket. Of several, distinct people do not follow.
func (a *Answer) SumBuckets() *Answer {
	out := *a
	if last := len(a.Edges) - 1; last > 1 {
		r := &Regrouping{By: a.By, Groups: a.Groups, Edges: []record.Time{a.Edges[0], a.Edges[last]}, Target: make([]int, len(a.Groups)), Phases: 1, Buckets: make([]BucketTarget, last)}
		for g := range r.Target {
			r.Target[g] = g
		}
		out = *a.Regroup(r)
		out.People = nil
	}
	if a.AllRecords != nil {
		out.Records, out.Jobs = a.AllRecords.Groups, a.AllJobs.Groups
	}
	return &out
}

// SumGroups returns an answer of one bucket with all groups in one.
func (a *Answer) SumGroups() *Answer {
	out := a.MoveGroups(make([]int, len(a.Groups)), make([]Group, 1))
	if a.AllRecords != nil {
		out.Records, out.Jobs = []uint64{a.AllRecords.All}, []uint64{a.AllJobs.All}
	}
	return out
}
