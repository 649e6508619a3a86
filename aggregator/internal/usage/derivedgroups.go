package usage

import (
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"slices"
	"strconv"
)

// foldAnswer makes the answer to the question of the one to its base.
func (p *plan) foldAnswer(a *sums.Answer) (*Result, error) {
	f := &folding{plan: p, base: a, target: make([]int, len(a.Groups)*len(p.phases)), of: map[string]int{}}
	if err := f.mapGroups(); err != nil {
		return nil, err
	}
	out := *a
	out.Edges, out.By, out.Groups = p.q.Edges, p.q.By, f.sortGroups()
	f.cells = len(out.Groups) * f.bucketCount()
	f.foldCounts(&out)
	f.foldComponents(&out)
	out.People = f.countPeople()
	worths, err := f.worthValues()
	r := &Result{Answer: &out, Worths: worths, Basis: f.energyBasis(), Bases: f.energyBases()}
	if f.q.Counts {
		r.AllRecords, r.AllJobs = f.countWholes(a.Records, a.Begun), f.countWholes(a.Jobs, a.Started)
	}
	return r, err
}

// folding is the work on one answer.
type folding struct {
	*plan

	base *sums.Answer
	// target is the group of each group of the base in each phase; -1 when no
	// condition holds.
	target []int
	list   []sums.Group
	of     map[string]int
	who    []string // of each group of the base in each phase, with people
	parts  [][]valued
	prices [][]price
	cells  int
}

func (f *folding) bucketCount() int { return len(f.q.Edges) - 1 }

// mapGroups finds the targets and the prices of all groups in all phases.
func (f *folding) mapGroups() error {
	f.prices, f.parts = make([][]price, len(f.weights)), make([][]valued, len(f.weights))
	for i := range f.weights {
		f.parts[i] = f.weights[i].pricedParts(f.base)
		f.prices[i] = make([]price, len(f.target)*len(f.parts[i]))
	}
	if f.people >= 0 {
		f.who = make([]string, len(f.target))
	}
	if f.wantedMeters() != nil { // which count without any job
		f.list, f.of[""] = []sums.Group{{Values: []string{}, Lacks: []bool{}}}, 0
	}
	var key []byte
	for g := range f.base.Groups {
		r := reading{plan: f.plan, values: f.base.Groups[g].Values, lacks: f.base.Groups[g].Lacks}
		for phase := range f.phases {
			r.readPhase(phase)
			at := g*len(f.phases) + phase
			f.target[at] = -1
			if !r.meetsConditions() {
				continue
			}
			key = f.setTarget(key[:0], &r, at)
			if f.people >= 0 {
				f.who[at] = r.have[f.people]
			}
			for i := range f.weights {
				f.weights[i].setPrices(f.prices[i][at*len(f.parts[i]):], f.parts[i], &r, phase)
			}
		}
	}
	return f.checkCells()
}

// checkCells returns an error when the question allows fewer cells.
func (f *folding) checkCells() error {
	if most := f.q.MaxCells; most > 0 && len(f.list)*f.bucketCount() > most {
		return sums.ErrTooMany
	}
	return nil
}

// setTarget sets the target of a group in a phase, which is what is read.
func (f *folding) setTarget(key []byte, r *reading, at int) []byte {
	for _, c := range f.by {
		if r.missing[c] {
			key = append(key, '-', ' ')
			continue
		}
		key = strconv.AppendInt(key, int64(len(r.have[c])), 10)
		key = append(append(key, ' '), r.have[c]...)
	}
	n, known := f.of[string(key)]
	if !known {
		n = len(f.list)
		f.of[string(key)] = n
		g := sums.Group{Values: make([]string, len(f.by)), Lacks: make([]bool, len(f.by))}
		for i, c := range f.by {
			g.Values[i], g.Lacks[i] = r.have[c], r.missing[c]
		}
		f.list = append(f.list, g)
	}
	f.target[at] = n
	return key
}

// sortGroups puts the groups in order: those that lack a value first.
func (f *folding) sortGroups() []sums.Group {
	order := make([]int, len(f.list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return sums.CompareValues(f.list[a].Values, f.list[b].Values, f.list[a].Lacks, f.list[b].Lacks)
	})
	place, out := make([]int, len(order)), make([]sums.Group, len(order))
	for at, n := range order {
		place[n], out[at] = at, f.list[n]
	}
	for i, n := range f.target {
		if n >= 0 {
			f.target[i] = place[n]
		}
	}
	return out
}

// eachCell calls do for all cells of the base that have a place in the answer: from is
// the base's, to the answer's, at the number of group and phase. same says that the
// piece before was in the same cell.
func (f *folding) eachCell(do func(from, to, at int, same bool)) {
	pieces := len(f.pieces)
	for g := range f.base.Groups {
		before := -1
		for i, p := range f.pieces {
			at := g*len(f.phases) + p.phase
			to := -1
			if n := f.target[at]; n >= 0 {
				to = n*f.bucketCount() + p.bucket
				do(g*pieces+i, to, at, to == before)
			}
			before = to
		}
	}
}

// foldCounts folds what is counted of out, which is a copy of the base. A run that goes on
// from one piece of a bucket into the next is counted once.
func (f *folding) foldCounts(out *sums.Answer) {
	b := f.base
	out.EachCount(func(list *[]uint64) { *list = nil })
	out.Waited = nil
	out.EachSum(func(list *[]sums.Sum) { *list = f.foldSums(*list) })
	if !f.q.Counts {
		return
	}
	out.EachCount(func(list *[]uint64) { *list = make([]uint64, f.cells) })
	f.eachCell(func(from, to, _ int, same bool) {
		for _, t := range []struct{ to, all, begun []uint64 }{{out.Records, b.Records, b.Begun}, {out.Jobs, b.Jobs, b.Started}} {
			if !same || f.q.Credit == sums.AtStop {
				t.to[to] += t.all[from]
			} else {
				t.to[to] += t.begun[from]
			}
		}
		out.Begun[to] += b.Begun[from]
		out.Started[to] += b.Started[from]
		out.Stopped[to] += b.Stopped[from]
		out.Waiters[to] += b.Waiters[from]
	})
	out.Waited = f.foldSums(b.Waited)
}

// countWholes counts what touches cells of the base, or began in them, in all buckets together:
// a run that goes on from one piece into the next is counted in the first one of those that
// follow each other in a group, and of those that follow each other in any.
func (f *folding) countWholes(touching, begun []uint64) *Whole {
	w := &Whole{Groups: make([]uint64, len(f.list))}
	for g := range f.base.Groups {
		before := -1
		for i, p := range f.pieces {
			n := f.target[g*len(f.phases)+p.phase]
			if n >= 0 {
				all, first := touching[g*len(f.pieces)+i], begun[g*len(f.pieces)+i]
				if f.q.Credit == sums.AtStop {
					first = all
				}
				if n == before {
					w.Groups[n] += first
				} else {
					w.Groups[n] += all
				}
				if before >= 0 {
					w.All += first
				} else {
					w.All += all
				}
			}
			before = n
		}
	}
	return w
}

// foldSums folds a column; nil stays nil.
func (f *folding) foldSums(from []sums.Sum) []sums.Sum {
	if from == nil {
		return nil
	}
	out := make([]sums.Sum, f.cells)
	f.eachCell(func(i, to, _ int, _ bool) { out[to] = out[to].Add(from[i]) })
	return out
}

// foldComponents folds the components that the question asks for.
func (f *folding) foldComponents(out *sums.Answer) {
	out.Components = nil
	for i := range f.base.Components {
		c := f.base.Components[i]
		if f.q.Components != nil && !slices.Contains(f.q.Components, c.Name) {
			continue
		}
		c.Used = f.foldSums(c.Used)
		c.Scores = slices.Clone(c.Scores)
		for k := range c.Scores {
			s := &c.Scores[k]
			real := make([]float64, f.cells)
			f.eachCell(func(from, to, _ int, _ bool) { real[to] += s.Used[from] })
			s.Used, s.Lacking = real, f.foldSums(s.Lacking)
		}
		out.Components = append(out.Components, c)
	}
}

// countPeople counts the distinct values of the question's key.
func (f *folding) countPeople() []uint64 {
	if f.people < 0 {
		return nil
	}
	type person struct {
		cell int
		name string
	}
	out, met := make([]uint64, f.cells), map[person]struct{}{}
	f.eachCell(func(from, to, at int, _ bool) {
		who := person{to, f.who[at]}
		if _, twice := met[who]; who.name != "" && !twice && f.base.Records[from] > 0 {
			met[who] = struct{}{}
			out[to]++
		}
	})
	return out
}
