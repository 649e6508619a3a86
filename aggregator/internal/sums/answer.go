package sums

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// ErrQuery is wrapped when a question makes no sense.
var ErrQuery = errors.New("invalid usage query")

// ErrTooMany says that there are more cells than the question allows. It wraps
// [ErrQuery].
var ErrTooMany = fmt.Errorf("%w: there are too many groups", ErrQuery)

// Answer answers a question of the present state of the store. The error wraps
// [ErrQuery], or is that of ctx or of the disk.
func (x *Index) Answer(ctx context.Context, q Query) (*Answer, error) {
	if err := q.checkQuery(); err != nil {
		return nil, err
	}
	if err := leaseBase(ctx); err != nil {
		return nil, err
	}
	q.classes = x.Classes
	for range 3 {
		v, err := x.followView(ctx)
		if err != nil {
			return nil, err
		}
		var a *Answer
		if err = x.findLacking(ctx, v, &q); err == nil {
			a, err = x.answerView(ctx, v, &q)
		}
		err = errors.Join(err, v.Close())
		if err != nil {
			return nil, err
		}
		if a != nil {
			return a, nil
		}
	}
	return x.answerLocked(ctx, &q)
}

// answerLocked answers while it has the lock, so that no one else moves the index.
func (x *Index) answerLocked(ctx context.Context, q *Query) (*Answer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v, err := x.Views.View()
	if err != nil {
		return nil, err
	}
	err = x.advanceTo(ctx, v)
	if err == nil {
		err = x.findLacking(ctx, v, q)
	}
	var a *Answer
	if err == nil {
		a, err = x.answerLockedView(ctx, v, q)
	}
	return a, errors.Join(err, v.Close())
}

func (x *Index) answerLockedView(ctx context.Context, v *store.View, q *Query) (*Answer, error) {
	t, away, err := x.sumInMemory(ctx, v, q)
	if err == nil {
		err = asDamaged(away.addMonths(ctx, t))
	}
	if err != nil {
		return nil, err
	}
	return t.finishAnswer(v)
}

// checkQuery returns an error when the query makes no sense, or is about keys and weights that
// are in no record.
func (q *Query) checkQuery() error {
	if len(q.Weights) > 0 || len(q.Having) > 0 {
		return fmt.Errorf("%w: records have no weights and no derived keys", ErrQuery)
	}
	if len(q.Edges) < 2 {
		return fmt.Errorf("%w: no bucket", ErrQuery)
	}
	for i := range q.Edges[1:] {
		if q.Edges[i+1] <= q.Edges[i] {
			return fmt.Errorf("%w: bucket %d ends before it begins", ErrQuery, i)
		}
	}
	return nil
}

// Rows answers a question without an index, from the rows of the store.
func Rows(ctx context.Context, views Views, q Query) (*Answer, error) {
	if err := q.checkQuery(); err != nil {
		return nil, err
	}
	if err := leaseBase(ctx); err != nil {
		return nil, err
	}
	v, err := views.View()
	if err != nil {
		return nil, err
	}
	var a *Answer
	t, err := sumRows(ctx, v, &q)
	if err == nil {
		a, err = t.finishAnswer(v)
	}
	return a, errors.Join(err, v.Close())
}

func sumRows(ctx context.Context, v *store.View, q *Query) (*accumulator, error) {
	t, err := newAccumulator(q, v)
	if err != nil {
		return nil, err
	}
	t.memory, t.way = memoryOf(ctx), "scan"
	return t, t.scanRows(ctx, v, q.bucketPieces(), nil)
}

// answerView is nil when the index has moved on since the view, or its files have. The index
// may move while files are read.
func (x *Index) answerView(ctx context.Context, v *store.View, q *Query) (*Answer, error) {
	t, away, err := x.sumAtView(ctx, v, q)
	if t == nil || err != nil {
		return nil, err
	}
	if err = away.addMonths(ctx, t); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return t.finishAnswer(v)
}

// sumAtView is sumInMemory, or nil when the index is not at the view.
func (x *Index) sumAtView(ctx context.Context, v *store.View, q *Query) (*accumulator, *diskQuery, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.seq != v.Seq() {
		return nil, nil, nil
	}
	return x.sumInMemory(ctx, v, q)
}

// sumInMemory adds up what the index has in memory at a view, and what rows must be read
// for, while the index does not move. The rest is on disk.
func (x *Index) sumInMemory(ctx context.Context, v *store.View, asked *Query) (*accumulator, *diskQuery, error) {
	q := x.wholeLastDay(v, asked)
	edges, can := x.edgePieces(q)
	if !can {
		t, err := sumRows(ctx, v, asked)
		return t, nil, err
	}
	t, err := newAccumulator(q, v)
	if err != nil {
		return nil, nil, err
	}
	t.edges = asked.Edges
	t.memory, t.way = memoryOf(ctx), "index"
	k := &groupedSums{sums: &x.sums, groups: x.groupsOf(t), who: slices.Index(x.dims, t.q.People)}
	x.addInMemory(t, k)
	for i := range edges {
		t.way = "index and scan"
		k.lastingIn(t, edges[i])
		if err := t.scanRows(ctx, v, edges[i:i+1], k); err != nil {
			return nil, nil, err
		}
	}
	return t, x.diskQueryFor(q, k, edges), nil
}

func (t *accumulator) finishAnswer(v *store.View) (*Answer, error) {
	if err := t.checkLimits(); err != nil {
		return nil, err
	}
	if t.tooMuch {
		return nil, fmt.Errorf("%w: energy is more than can be added up", ErrQuery)
	}
	a := t.buildAnswer()
	a.Way, a.Seq = t.way, v.Seq()
	a.Index, _ = v.Applied()
	return a, nil
}

// checkLimits returns an error when there are more groups than the question or the memory
// allows.
func (t *accumulator) checkLimits() error {
	if most := t.q.MaxCells; most > 0 && len(t.groups.tuples)*t.buckets > most {
		return ErrTooMany
	}
	if more := len(t.groups.tuples) - t.known; more > 0 {
		t.known += more
		t.grown += int64(more) * groupBytes
	}
	return t.chargeMemory()
}

// edgePieces returns the pieces at the edges that the index does not have because they are
// no whole days; false when it does not have the other sums that the question asks for.
func (x *Index) edgePieces(q *Query) (edges []piece, can bool) {
	if q.ofRows() || !x.hasKeys(q) {
		return nil, false
	}
	last := len(q.Edges) - 1
	for i, e := range q.Edges {
		if i > 0 && i < last && !x.grid.isStart(e) {
			return nil, false
		}
	}
	from, to := q.Edges[0], q.Edges[last]
	first, end := x.grid.wholeDays(q)
	if first >= end || last > 1 && (q.Edges[1] < x.grid.dayStart(first) || q.Edges[last-1] > x.grid.dayStart(end)) {
		return nil, false
	}
	if from != x.grid.dayStart(first) {
		edges = append(edges, piece{from: from, to: x.grid.dayStart(first), bucket: 0, first: true})
	}
	if to != x.grid.dayStart(end) {
		edges = append(edges, piece{from: x.grid.dayStart(end), to: to, bucket: last - 1, first: q.Edges[last-1] == x.grid.dayStart(end)})
	}
	return edges, true
}

// wholeDays are the days that lie in the window: from first, included, to end.
func (g *grid) wholeDays(q *Query) (first, end day) {
	first = g.dayOf(q.Edges[0])
	if g.dayStart(first) != q.Edges[0] {
		first++
	}
	return first, g.dayOf(q.Edges[len(q.Edges)-1])
}

// canAnswer reports whether the index has the sums of the whole days of a question that makes sense.
func (x *Index) canAnswer(ctx context.Context, q *Query) (can bool, err error) {
	if q.ofRows() {
		return false, nil
	}
	v, err := x.Views.View()
	if err != nil {
		return false, err
	}
	if err = x.findLacking(ctx, v, q); err == nil {
		x.mu.RLock()
		_, can = x.edgePieces(x.wholeLastDay(v, q))
		x.mu.RUnlock()
	}
	return can, errors.Join(err, v.Close())
}

// wholeLastDay returns the question with a whole day at its end where nothing is known of the rest of
// that day. The index does not move meanwhile.
func (x *Index) wholeLastDay(v *store.View, q *Query) *Query {
	last := len(q.Edges) - 1
	if to := q.Edges[last]; to >= q.Now && x.grid.covers(to, to) && !x.grid.isStart(to) && v.Latest() < to && !x.isOpenFrom(to) {
		whole := *q
		whole.Edges = append(slices.Clone(q.Edges[:last]), x.grid.dayStart(x.grid.dayOf(to)+1))
		return &whole
	}
	return q
}

// isOpenFrom reports whether a run that goes on starts at an instant or later.
func (x *Index) isOpenFrom(t record.Time) bool {
	for _, r := range x.open {
		if r.start >= t {
			return true
		}
	}
	return false
}

// isOther reports whether a key of the question is a meta key and not a dimension. The index can
// be from before a change of the classes.
func (x *Index) isOther(q *Query, key string) bool {
	return !slices.Contains(x.dims, key) && !isClass(x.Classes, key) && !isClass(q.classes, key) && !record.IsEndKey(key)
}

// findLacking finds the keys by which the question groups and that no record of the view has.
func (x *Index) findLacking(ctx context.Context, v *store.View, q *Query) error {
	q.lacking = nil
	for _, key := range q.By {
		if !x.isOther(q, key) || v.HasKeys(q.Edges[0], q.Edges[len(q.Edges)-1], key) != nil {
			continue
		}
		lacks, err := v.LacksKey(ctx, key)
		if err != nil {
			return err
		}
		if lacks {
			q.lacking = append(q.lacking, key)
		}
	}
	return nil
}

// hasKeys reports whether the dimensions have all keys of the question that some record has, and
// no record has more than one value for one of them.
func (x *Index) hasKeys(q *Query) bool {
	names := slices.DeleteFunc(slices.Clone(q.By), func(key string) bool { return slices.Contains(q.lacking, key) })
	if q.People != "" {
		names = append(names, q.People)
	}
	for _, tests := range append([][]store.MetaTest{q.Where.Meta}, q.Where.Allowed...) {
		for i := range tests {
			if isClass(x.Classes, tests[i].Key) {
				return false // the test is about the meta key of that name
			}
			names = append(names, tests[i].Key)
		}
	}
	for _, name := range names {
		if i := slices.Index(x.dims, name); i < 0 || x.several[i] {
			return false
		}
	}
	return true
}

// addInMemory adds what the index has in memory.
func (x *Index) addInMemory(t *accumulator, k *groupedSums) {
	list := make([]member, 0, len(x.series))
	t.grown += int64(len(x.series))*24 + int64(len(x.tuples))*8
	for _, s := range x.series {
		if s != nil && k.groups[s.tuple] >= 0 {
			list = append(list, member{s, uint32(k.groups[s.tuple])})
		}
	}
	if t.checkLimits() != nil {
		return // finishAnswer returns the error
	}
	x.addMembers(t, list, k)
	x.addSingleRuns(t, k)
}

// addSingleRuns adds the runs that are kept one by one.
func (x *Index) addSingleRuns(t *accumulator, k *groupedSums) {
	pieces := t.q.bucketPieces()
	for _, r := range x.open { // sums: the order does not matter
		k.addToGroup(t, r, pieces)
	}
	for _, r := range x.long {
		k.addToGroup(t, r, pieces)
	}
}

// addToGroup adds a run of the index to its group.
func (k *groupedSums) addToGroup(t *accumulator, r *run, pieces []piece) {
	if g := k.groups[r.tuple]; g >= 0 {
		t.addRun(r, uint32(g), k.personOf(r.tuple), pieces)
	}
}

// groupsOf returns the number of the group of each tuple of the index, or -1 when the
// question's conditions leave it out.
func (x *Index) groupsOf(t *accumulator) []int64 {
	at := make([]int, len(t.q.By))
	for i, name := range t.q.By {
		at[i] = slices.Index(x.dims, name)
	}
	groups := make([]int64, len(x.tuples))
	for i := range groups {
		groups[i] = x.groupOf(t, &x.tuples[i], at)
	}
	return groups
}

func (x *Index) groupOf(t *accumulator, from *tuple, at []int) int64 {
	var m record.Meta
	for i, name := range x.dims {
		if !from.lacks[i] {
			m = append(m, record.MetaEntry{Key: name, Values: from.values[i : i+1]})
		}
	}
	m = m.Sorted()
	w := &t.q.Where
	if !store.MetaAllowed([][]store.MetaTest{w.Meta}, m) || w.Allowed != nil && !store.MetaAllowed(w.Allowed, m) {
		return -1
	}
	to := emptyTuple(len(at))
	to.part = from.part
	for i, k := range at {
		if to.lacks[i] = k < 0; k >= 0 { // else no record has the key
			to.values[i], to.lacks[i] = from.values[k], from.lacks[k]
		}
	}
	n := t.groups.addTuple(to)
	if t.groups.dropped[n] {
		return -1
	}
	return int64(n)
}
