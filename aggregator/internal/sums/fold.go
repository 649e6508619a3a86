package sums

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// places are the groups of an answer in their order, and where those of an accumulator are.
type places struct {
	groups []Group
	of     []int
}

// groupPlaces returns the places of all groups.
func (t *accumulator) groupPlaces() *places {
	tuples := t.groups.tuples
	if t.places != nil && len(t.places.of) == len(tuples) {
		return t.places
	}
	order := make([]uint32, 0, len(tuples))
	for n := range tuples {
		if !t.groups.dropped[n] {
			order = append(order, uint32(n))
		}
	}
	slices.SortFunc(order, func(a, b uint32) int { return compareTuples(&tuples[a], &tuples[b]) })
	p := &places{of: make([]int, len(tuples))}
	for i, n := range order {
		// Tuples that differ in whether there were several values, or whether they are
		// parts of runs, are one group.
		if i == 0 || compareTuples(&tuples[order[i-1]], &tuples[n]) != 0 {
			p.groups = append(p.groups, Group{Values: tuples[n].values, Lacks: tuples[n].lacks})
		}
		p.of[n] = len(p.groups) - 1
	}
	return p
}

// buildAnswer returns the sums as an answer.
func (t *accumulator) buildAnswer() *Answer {
	p := t.groupPlaces()
	place := p.of
	a := &Answer{Edges: t.edges, By: t.q.By, Credit: t.q.Credit, Groups: p.groups, Open: t.open, Several: t.many}
	t.answerCounts(a, place)
	t.answerPeople(a, place)
	t.answerUsed(a, place)
	t.answerRuns(a)
	return a
}

// answerRuns says how many runs have what.
func (t *accumulator) answerRuns(a *Answer) {
	for sh, n := range t.ofLayouts { // counts: the order does not matter
		t.cachedTarget(sh).runs += n
	}
	for _, to := range t.targets { // as above
		a.Runs += to.runs
		for i := range a.Components {
			a.Components[i].addRuns(to)
		}
	}
}

func (o *Component) addRuns(to *target) {
	var have []*part
	for k := range to.layout.parts {
		if p := &to.layout.parts[k]; p.name == o.Name && p.kind == o.Kind {
			have = append(have, p)
		}
	}
	if have == nil {
		return
	}
	o.Runs += to.runs
	for i := range o.Scores {
		s := &o.Scores[i]
		scored := func(p *part) bool {
			return slices.ContainsFunc(p.scores, func(x record.Score) bool { return x.Name == s.Name })
		}
		if slices.ContainsFunc(have, scored) {
			s.Runs += to.runs
		}
	}
}

func (t *accumulator) answerPeople(a *Answer, place []int) {
	if t.q.People == "" {
		return
	}
	a.People = make([]uint64, len(a.Groups)*t.buckets)
	seen := map[person]uint64{}
	for p, records := range t.people { // counts: the order does not matter
		p.cell = uint64(place[p.cell/uint64(t.buckets)]*t.buckets) + p.cell%uint64(t.buckets)
		seen[p] += records
	}
	for p, records := range seen { // as above
		a.People[p.cell] += uint64(oneIf(records > 0))
	}
}

func (t *accumulator) answerCounts(a *Answer, place []int) {
	if !t.q.Counts {
		return
	}
	n := len(a.Groups) * t.buckets
	for _, list := range a.countColumns() {
		*list = make([]uint64, n)
	}
	a.Waited = make([]Sum, n)
	for group, row := range t.cells {
		for b := range row {
			c, at := &row[b], place[group]*t.buckets+b
			a.Records[at] += c.records
			a.Begun[at] += c.started
			if t.groups.tuples[group].part {
				continue
			}
			a.Jobs[at] += c.records
			a.Started[at] += c.started
			a.Stopped[at] += c.stopped
			a.Waiters[at] += c.waiters
			a.Waited[at] = a.Waited[at].Add(c.waited)
		}
	}
}

// answerUsed puts the columns into the answer. It goes through them by name, so that
// sums of floats are the same on all nodes.
func (t *accumulator) answerUsed(a *Answer, place []int) {
	slices.SortFunc(t.columns, func(x, y *column) int {
		return cmp.Or(strings.Compare(x.name, y.name), cmp.Compare(x.kind, y.kind), cmp.Compare(x.of, y.of),
			strings.Compare(x.score, y.score), cmp.Compare(x.value, y.value))
	})
	n := len(a.Groups) * t.buckets
	sums := a.sumColumns()
	for _, of := range t.q.wantedPortions() {
		*sums[of] = make([]Sum, n)
	}
	for _, c := range t.columns {
		switch {
		case c.shared && c.cells == nil:
		case c.of == all:
			a.Components = append(a.Components, Component{Name: c.name, Kind: c.kind, Used: c.cellSums(n, place)})
		case c.of == scored:
			a.Components[len(a.Components)-1].addScore(c, place)
		case c.of == unmodelled:
			a.Energy.Unmodelled = append(a.Energy.Unmodelled, Unvalued{Component: c.name, Kind: c.kind, Used: c.cellSums(n, place)})
		default:
			*sums[c.of] = c.cellSums(n, place)
		}
	}
}

// cellSums are the sums of a column, n in all, as an answer has them.
func (c *column) cellSums(n int, place []int) []Sum {
	if c.cells != nil {
		return c.cells
	}
	to := make([]Sum, n)
	for group, row := range c.rows {
		if row != nil {
			AddSums(to[place[group]*len(row):][:len(row)], row)
		}
	}
	return to
}

// addScore adds what has a score of one value.
func (o *Component) addScore(c *column, place []int) {
	if k := len(o.Scores); k == 0 || o.Scores[k-1].Name != c.score {
		o.Scores = append(o.Scores, Score{Name: c.score, Used: make([]float64, len(o.Used)), Lacking: slices.Clone(o.Used)})
	}
	s := &o.Scores[len(o.Scores)-1]
	for at, sum := range c.cellSums(len(o.Used), place) {
		s.Used[at] += c.value * sum.Float()
		s.Lacking[at] = s.Lacking[at].Sub(sum)
	}
}
