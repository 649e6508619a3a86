package usage

import (
	"slices"
	"strconv"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
)

// foldAnswer makes the answer to the query of the one to its base.
func (p *plan) foldAnswer(base *sums.Answer) (*sums.Answer, error) {
	f := &folding{plan: p, base: base, of: map[string]int{},
		cells: sums.Regrouping{By: p.q.By, Edges: p.q.Edges, Target: make([]int, len(base.Groups)*len(p.phases)), Phases: len(p.phases), Buckets: p.pieces}}
	if err := f.mapGroups(); err != nil {
		return nil, err
	}
	f.cells.Groups = f.sortGroups()
	wanted := *base
	if p.q.Components != nil {
		wanted.Components = slices.DeleteFunc(slices.Clone(base.Components), func(c sums.Component) bool { return !slices.Contains(p.q.Components, c.Name) })
	}
	out := wanted.Regroup(&f.cells)
	if p.q.Counts {
		out.AllRecords, out.AllJobs = f.countWholes(base.Records, base.Begun), f.countWholes(base.Jobs, base.Started)
	} else {
		out.EachCount(func(list *[]uint64) { *list = nil })
		out.Waited = nil
	}
	out.People = f.countPeople()
	err := f.addWorths(out)
	if p.q.Energy == nil {
		out.Energy = sums.EnergySums{}
	}
	return out, err
}

// folding is the work on one answer.
type folding struct {
	*plan

	base *sums.Answer
	// cells says where the cells of base go: the group of each of its groups in each phase,
	// none where no condition holds.
	cells  sums.Regrouping
	list   []sums.Group
	of     map[string]int
	who    []string // of each group of the base in each phase, with people
	parts  [][]valued
	prices [][]price
}

func (f *folding) bucketCount() int { return len(f.q.Edges) - 1 }

// mapGroups finds the targets and the prices of all groups in all phases.
func (f *folding) mapGroups() error {
	target := f.cells.Target
	f.prices, f.parts = make([][]price, len(f.weights)), make([][]valued, len(f.weights))
	for i := range f.weights {
		f.parts[i] = f.weights[i].pricedParts(f.base)
		f.prices[i] = make([]price, len(target)*len(f.parts[i]))
	}
	if f.people >= 0 {
		f.who = make([]string, len(target))
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
			target[at] = -1
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

// checkCells returns an error when the query allows fewer cells.
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
	f.cells.Target[at] = n
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
	for i, n := range f.cells.Target {
		if n >= 0 {
			f.cells.Target[i] = place[n]
		}
	}
	return out
}

// countWholes counts what touches cells of the base, or began in them, in all buckets together:
// a run that goes on from one piece into the next is counted in the first one of those that
// follow each other in a group, and of those that follow each other in any.
func (f *folding) countWholes(touching, begun []uint64) *sums.Whole {
	w := &sums.Whole{Groups: make([]uint64, len(f.list))}
	for g := range f.base.Groups {
		before := -1
		for i, p := range f.pieces {
			n := f.cells.Target[g*len(f.phases)+p.Phase]
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

// countPeople counts the distinct values of the query's key.
func (f *folding) countPeople() []uint64 {
	if f.people < 0 {
		return nil
	}
	type person struct {
		cell int
		name string
	}
	out, met := make([]uint64, f.cells.Cells()), map[person]struct{}{}
	f.cells.EachCell(func(from, to, at int, _ bool) {
		who := person{to, f.who[at]}
		if _, twice := met[who]; who.name != "" && !twice && f.base.Records[from] > 0 {
			met[who] = struct{}{}
			out[to]++
		}
	})
	return out
}
