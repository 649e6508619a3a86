package usage

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// tally puts an answer together.
type tally struct {
	q       *Question
	buckets int
	groups  *keys
	shapes  *shapes                       // of the accounts
	ends    map[record.Origin]record.Time // up to when sources are complete

	used   map[uint64]*account // by group and shape
	cells  []counts            // of all groups and buckets, with Question.Counts
	people map[person]struct{}
	open   uint64
	many   uint64 // records with more than one value for a key
}

// account is what a group used with a shape: part k in bucket b is at
// k × buckets + b.
type account struct {
	group uint32
	shape *shape
	used  []Sum
}

type counts struct {
	records, started, stopped, waiters uint64
	waited                             Sum
}

// person is somebody who had a record in a cell.
type person struct {
	cell uint64
	name string
}

func newTally(q *Question, v *store.View) (*tally, error) {
	t := &tally{q: q, buckets: len(q.Edges) - 1, groups: newKeys(q.By), shapes: newShapes(), used: map[uint64]*account{}, people: map[person]struct{}{}}
	agents, err := v.Agents()
	if err != nil {
		return nil, err
	}
	t.ends = map[record.Origin]record.Time{}
	for i := range agents {
		for _, w := range agents[i].Watermarks {
			t.ends[w.Source] = w.CompleteTo
		}
	}
	return t, nil
}

// account returns that of a group and a shape, which may be another tally's.
func (t *tally) account(group uint32, foreign *shape) *account {
	sh, ok := t.shapes.of[foreign.key]
	if !ok {
		own := *foreign
		own.id = uint32(len(t.shapes.list))
		sh = &own
		t.shapes.of[sh.key] = sh
		t.shapes.list = append(t.shapes.list, sh)
	}
	key := uint64(group)<<32 | uint64(sh.id)
	a, ok := t.used[key]
	if !ok {
		a = &account{group: group, shape: sh, used: make([]Sum, t.buckets*len(sh.parts))}
		t.used[key] = a
	}
	return a
}

// cell returns the counts of a group in a bucket, valid until the next call.
func (t *tally) cell(group uint32, bucket int) *counts {
	at := int(group)*t.buckets + bucket
	if at >= len(t.cells) {
		t.cells = append(t.cells, make([]counts, max(len(t.groups.tuples)*t.buckets, at+1)-len(t.cells))...)
	}
	return &t.cells[at]
}

// met notes a person; "" is nobody.
func (t *tally) met(group uint32, bucket int, name string) {
	if name == "" {
		return
	}
	t.people[person{uint64(group)*uint64(t.buckets) + uint64(bucket), name}] = struct{}{}
}

// piece is a part of a bucket, or all of it.
type piece struct {
	from, to record.Time
	bucket   int
	// first says that the bucket begins here: a run that came before it and goes
	// on is counted.
	first bool
}

// pieces are the whole buckets.
func (q *Question) pieces() []piece {
	list := make([]piece, len(q.Edges)-1)
	for i := range list {
		list[i] = piece{from: q.Edges[i], to: q.Edges[i+1], bucket: i, first: true}
	}
	return list
}

// end is up to when a run is counted.
func (t *tally) end(r *run) record.Time {
	if r.stop != record.None {
		return r.stop
	}
	end := t.q.Now
	if w, ok := t.ends[r.origin]; ok {
		end = min(end, w)
	}
	return max(end, r.start)
}

// add counts a run in the pieces, which ascend. who is its value of the question's
// key of people.
func (t *tally) add(r *run, group uint32, who string, pieces []piece) {
	end := t.end(r)
	if end < r.start {
		return
	}
	i, _ := slices.BinarySearchFunc(pieces, r.start, func(p piece, start record.Time) int {
		if p.to <= start {
			return -1
		}
		return 1
	})
	var a *account
	touched := false
	for ; i < len(pieces) && pieces[i].from <= end; i++ {
		p := &pieces[i]
		touched = t.count(r, end, group, who, p) || touched
		from, to := max(r.start, p.from), min(end, p.to)
		if t.q.Credit == AtStop {
			from, to = r.start, end
			if r.stop == record.None || !p.has(end) {
				continue
			}
		} else if from > to || from == to && (r.start != end || !p.has(r.start)) {
			continue
		}
		if a == nil {
			a = t.account(group, r.shape)
		}
		for k := range r.shape.parts {
			u := &a.used[k*t.buckets+p.bucket]
			*u = u.Add(r.used(k, end, from, to))
		}
	}
	if touched && r.stop == record.None {
		t.open++
	}
	if touched && slices.Contains(t.groups.tuples[group].several, true) {
		t.many++
	}
}

func (p *piece) has(at record.Time) bool { return p.from <= at && at < p.to }

// count counts a run in a piece, and reports whether it is one of its records.
func (t *tally) count(r *run, end record.Time, group uint32, who string, p *piece) bool {
	started, stopped := p.has(r.start), r.stop != record.None && p.has(r.stop)
	is := started || p.first && r.start < p.from && end > p.from
	if t.q.Credit == AtStop {
		is = stopped
	}
	if is && t.q.People != "" {
		t.met(group, p.bucket, who)
	}
	if !t.q.Counts {
		return is
	}
	c := t.cell(group, p.bucket)
	if is {
		c.records++
	}
	if stopped {
		c.stopped++
	}
	if started {
		c.started++
		if wait, known := r.wait(); known {
			c.waiters++
			c.waited = c.waited.Add(SumOf(wait))
		}
	}
	return is
}

// answer is what was counted.
func (t *tally) answer() *Answer {
	order := make([]uint32, 0, len(t.groups.tuples))
	for n := range t.groups.tuples {
		order = append(order, uint32(n))
	}
	slices.SortFunc(order, func(a, b uint32) int { return compareTuples(&t.groups.tuples[a], &t.groups.tuples[b]) })
	a := &Answer{Edges: t.q.Edges, By: t.q.By, Open: t.open, Several: t.many}
	place := make([]int, len(order)) // of each number in the answer
	for i, n := range order {
		// Tuples that differ in whether there were several values are one group.
		if i == 0 || compareTuples(&t.groups.tuples[order[i-1]], &t.groups.tuples[n]) != 0 {
			a.Groups = append(a.Groups, Group{Values: t.groups.tuples[n].values, Lacks: t.groups.tuples[n].lacks})
		}
		place[n] = len(a.Groups) - 1
	}
	t.answerCounts(a, place)
	t.answerUsed(a, place)
	return a
}

func compareTuples(a, b *tuple) int {
	for i := range a.values {
		switch {
		case a.lacks[i] && !b.lacks[i]:
			return -1
		case b.lacks[i] && !a.lacks[i]:
			return 1
		}
		if c := strings.Compare(a.values[i], b.values[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (t *tally) answerCounts(a *Answer, place []int) {
	n := len(a.Groups) * t.buckets
	if t.q.People != "" {
		a.People = make([]uint64, n)
		seen := map[person]struct{}{}
		for p := range t.people {
			p.cell = uint64(place[p.cell/uint64(t.buckets)]*t.buckets) + p.cell%uint64(t.buckets)
			if _, twice := seen[p]; !twice {
				seen[p] = struct{}{}
				a.People[p.cell]++
			}
		}
	}
	if !t.q.Counts {
		return
	}
	a.Records, a.Started, a.Stopped = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	a.Waited, a.Waiters = make([]Sum, n), make([]uint64, n)
	for i := range t.cells {
		c, at := &t.cells[i], place[i/t.buckets]*t.buckets+i%t.buckets
		a.Records[at] += c.records
		a.Started[at] += c.started
		a.Stopped[at] += c.stopped
		a.Waiters[at] += c.waiters
		a.Waited[at] = a.Waited[at].Add(c.waited)
	}
}
