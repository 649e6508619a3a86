package sums

import (
	"slices"
	"sort"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// accumulator puts an answer together. Everything in it is whole numbers, so that the
// order in which things are added does not matter.
type accumulator struct {
	q       *Query
	edges   []record.Time // of the answer
	buckets int
	groups  *keys
	ends    OpenEnds

	columns      []*column
	columnOf     map[columnName]*column
	targets      map[string]*target // by the key of a layout
	last         *target            // that was asked for
	ofSeriesKeys []seriesKeyColumns // by the number of a series
	ofLayouts    map[*layout]uint64 // runs that the index has of them
	cells        [][]counts         // of each group, by bucket; nil while there is nothing
	scratch      []counts           // a row of zeros
	places       *places            // of the groups in the answer; nil: not known yet
	people       map[person]uint64  // how many records each has; 0 may be there
	known        int                // groups that are counted in grown
	memory       *memory            // nil: nothing bounds it
	grown        int64              // bytes that memory does not know of yet
	open         uint64
	many         uint64 // records with more than one value for a key
	drawn        drawn  // of the run that is added
	tooMuch      bool   // energy that is no Sum
	way          string // as the answer has it
}

// columnName says what a column adds up: a component, that part of it which has a
// score of that value, or what goes into the efficiency.
type columnName struct {
	name  string
	kind  record.Kind
	of    portion
	score string
	value float64
}

// portion is which part of a component.
type portion uint8

const (
	all portion = iota
	scored
	usedCPU   // of records that have both components of the efficiency
	heldCores // as usedCPU
	running   // the time of runs
	queued    // the time of waits

	// of energy, see EnergySums.
	measured
	modelled
	co2Measured
	co2Modelled
	embodied
	ungraded
	defaultPUE
	defaultLoad
	unmodelled // of a rate
)

// column has a row for each group, with a sum for each bucket; nil while there is
// nothing.
type column struct {
	columnName
	rows [][]Sum

	// shared says that several add to it at once, to rows of different groups, and that it
	// is none of the answer's while it has no cells.
	shared bool
	once   sync.Once
	cells  []Sum // of all groups, as the answer has them; nil: each row lies by itself
}

// target says where the parts of a layout go.
type target struct {
	layout *layout
	of     [][]*column
	runs   uint64 // that have the layout
}

// seriesKeyColumns are the columns to which a series is added.
type seriesKeyColumns struct {
	known bool
	list  []*column
}

type counts struct {
	records, started, stopped, waiters uint64
	waited                             Sum
}

// person is someone who had a record in a cell.
type person struct {
	cell uint64
	name string
}

func newAccumulator(q *Query, v *store.View) (*accumulator, error) {
	t := emptyAccumulator(q)
	t.groups = keysOfRows(q.By, q.classes)
	t.groups.keep = q.Keep
	if err := v.HasKeys(q.Edges[0], q.Edges[len(q.Edges)-1], q.metaKeys()...); err != nil {
		return nil, err
	}
	var err error
	t.ends, err = ReadOpenEnds(v)
	return t, err
}

// emptyAccumulator has no groups.
func emptyAccumulator(q *Query) *accumulator {
	return &accumulator{
		q: q, edges: q.Edges, buckets: len(q.Edges) - 1,
		columnOf: map[columnName]*column{}, targets: map[string]*target{}, ofLayouts: map[*layout]uint64{}, people: map[person]uint64{},
	}
}

// cachedTarget returns the target of a layout.
func (t *accumulator) cachedTarget(sh *layout) *target {
	if t.last != nil && t.last.layout == sh {
		return t.last
	}
	t.last = t.targetOf(sh)
	return t.last
}

func (t *accumulator) targetOf(sh *layout) *target {
	if to, ok := t.targets[sh.key]; ok {
		to.layout = sh
		return to
	}
	to := &target{layout: sh, of: make([][]*column, len(sh.parts))}
	for k := range sh.parts {
		to.of[k] = t.columnsOfPart(&sh.parts[k])
	}
	t.addEfficiency(to, sh)
	t.targets[sh.key] = to
	return to
}

// columnsOfPart are the columns of a part, without the efficiency.
func (t *accumulator) columnsOfPart(p *part) (list []*column) {
	if !t.wantsComponent(p.name) {
		return nil
	}
	list = append(list, t.columnFor(columnName{name: p.name, kind: p.kind}))
	if slices.Contains(t.q.Unscored, p.name) {
		return list
	}
	for i, s := range p.scores {
		if !slices.ContainsFunc(p.scores[:i], func(o record.Score) bool { return o.Name == s.Name }) {
			list = append(list, t.columnFor(columnName{name: p.name, kind: p.kind, of: scored, score: s.Name, value: s.Value}))
		}
	}
	return list
}

// columnsOfSeriesKey are the columns of a series.
func (t *accumulator) columnsOfSeriesKey(st *seriesKey) []*column {
	for st.n >= len(t.ofSeriesKeys) {
		t.ofSeriesKeys = append(t.ofSeriesKeys, make([]seriesKeyColumns, st.n+1)...)
	}
	c := &t.ofSeriesKeys[st.n]
	if !c.known {
		c.known, c.list = true, t.columnsOfPart(&st.part)
		if st.countsInEfficiency(t.q.CPU, t.q.Cores) {
			of := usedCPU
			if st.kind == record.Rate {
				of = heldCores
			}
			c.list = append(c.list, t.columnFor(columnName{of: of}))
		}
	}
	return c.list
}

// layoutRuns counts runs of the index.
func (t *accumulator) layoutRuns(sh *layout, n uint64) { t.ofLayouts[sh] += n }

// addEfficiency adds the columns of a layout that has both of the question's components.
func (t *accumulator) addEfficiency(to *target, sh *layout) {
	if t.q.CPU == "" || t.q.Cores == "" {
		return
	}
	cpu := slices.IndexFunc(sh.parts, func(p part) bool { return p.name == t.q.CPU && p.kind == record.Total })
	cores := slices.IndexFunc(sh.parts, func(p part) bool { return p.name == t.q.Cores && p.kind == record.Rate })
	if cpu < 0 || cores < 0 {
		return
	}
	to.addColumn(cpu, t.columnFor(columnName{of: usedCPU}))
	to.addColumn(cores, t.columnFor(columnName{of: heldCores}))
}

func (to *target) addColumn(part int, c *column) { to.of[part] = append(to.of[part], c) }

func (t *accumulator) wantsComponent(name string) bool {
	return t.q.Components == nil || slices.Contains(t.q.Components, name)
}

func (t *accumulator) columnFor(name columnName) *column {
	c, ok := t.columnOf[name]
	if !ok {
		c = &column{columnName: name}
		t.columnOf[name] = c
		t.columns = append(t.columns, c)
	}
	return c
}

// rowOf returns the sums of a group.
func (t *accumulator) rowOf(c *column, group uint32) []Sum {
	for int(group) >= len(c.rows) {
		c.rows = append(c.rows, nil)
	}
	if c.rows[group] == nil {
		c.rows[group] = t.newRow(c, group)
		t.grown += int64(t.buckets) * sumBytes
	}
	return c.rows[group]
}

// newRow makes the sums of a group: where the groups are known, in the place that they
// have in the answer.
func (t *accumulator) newRow(c *column, group uint32) []Sum {
	if !c.shared {
		return make([]Sum, t.buckets)
	}
	c.once.Do(func() { c.cells = make([]Sum, len(t.places.groups)*t.buckets) })
	at := t.places.of[group] * t.buckets
	return c.cells[at : at+t.buckets : at+t.buckets]
}

// shareColumns makes the columns that series of the index can be added to, so that several can
// do so at once. All groups are known, and nothing else is added meanwhile.
func (t *accumulator) shareColumns(list []*seriesKey) {
	if t.q.Levels {
		t.columnFor(columnName{of: running})
		t.columnFor(columnName{of: queued})
	}
	for _, k := range list {
		t.columnsOfSeriesKey(k)
	}
	for _, c := range t.columns {
		c.shared, c.rows = true, make([][]Sum, len(t.groups.tuples))
	}
}

// withSharedColumns returns an accumulator that adds to the same columns, to rows of other
// groups.
func (t *accumulator) withSharedColumns() *accumulator {
	o := emptyAccumulator(t.q)
	o.columns, o.columnOf, o.ofSeriesKeys, o.places = t.columns, t.columnOf, t.ofSeriesKeys, t.places
	return o
}

// countsOf returns the counts of a group.
func (t *accumulator) countsOf(group uint32) []counts {
	if !t.q.Counts {
		return nil
	}
	for int(group) >= len(t.cells) {
		t.cells = append(t.cells, make([][]counts, max(len(t.groups.tuples), int(group)+1)-len(t.cells))...)
	}
	if t.cells[group] == nil {
		t.cells[group] = make([]counts, t.buckets)
		t.grown += int64(t.buckets) * countsBytes
	}
	return t.cells[group]
}

// notePerson notes records of a person; "" is ignored.
func (t *accumulator) notePerson(group uint32, bucket int, name string, records uint64) {
	if name != "" {
		t.grown += personBytes
		t.people[person{uint64(group)*uint64(t.buckets) + uint64(bucket), name}] += records
	}
}

// piece is a part of a bucket, or all of it.
type piece struct {
	from, to record.Time
	bucket   int
	// first says that the bucket begins here: a run that came before it and goes
	// on is counted.
	first bool
}

func (p *piece) hasInstant(at record.Time) bool { return p.from <= at && at < p.to }

// bucketPieces are the whole buckets.
func (q *Query) bucketPieces() []piece {
	list := make([]piece, len(q.Edges)-1)
	for i := range list {
		list[i] = piece{from: q.Edges[i], to: q.Edges[i+1], bucket: i, first: true}
	}
	return list
}

// endOf is the time up to which a run is counted.
func (t *accumulator) endOf(r *run) record.Time {
	if r.stop != record.None {
		return r.stop
	}
	return t.ends.EndOf(r.start, t.q.Now, r.origin)
}

// addRun counts a run in the pieces, which ascend. who is its value of the question's
// key of people.
func (t *accumulator) addRun(r *run, group uint32, who string, pieces []piece) {
	end := t.endOf(r)
	if end < r.start || t.groups.dropped[group] {
		return
	}
	i, _ := slices.BinarySearchFunc(pieces, r.start, func(p piece, start record.Time) int {
		if p.to <= start {
			return -1
		}
		return 1
	})
	if t.levelsOf(group) {
		t.addLevels(r, end, group, pieces)
	}
	touched := false
	t.drawn.known = false
	for ; i < len(pieces) && pieces[i].from <= end; i++ {
		p := &pieces[i]
		touched = t.countRun(r, end, group, who, p) || touched
		if from, to, some := t.timeInPiece(r, end, p); some {
			t.addUse(r, end, group, p.bucket, from, to)
		}
	}
	if touched && r.stop == record.None {
		t.open++
	}
	if touched && slices.Contains(t.groups.tuples[group].several, true) {
		t.many++
	}
}

// levelsOf reports whether the times of a group's runs are asked for. Parts of runs have
// none of their own.
func (t *accumulator) levelsOf(group uint32) bool { return t.q.Levels && !t.groups.tuples[group].part }

// addLevels adds the time that a run takes and the time that it waited, whatever the
// credit.
func (t *accumulator) addLevels(r *run, end record.Time, group uint32, pieces []piece) {
	t.addTime(columnName{of: running}, group, pieces, r.start, end)
	if _, known := r.waitTime(); known {
		t.addTime(columnName{of: queued}, group, pieces, r.submit, r.start)
	}
}

// addTime adds the time from from to to.
func (t *accumulator) addTime(name columnName, group uint32, pieces []piece, from, to record.Time) {
	if from >= to {
		return
	}
	i := sort.Search(len(pieces), func(i int) bool { return pieces[i].to > from })
	row := t.rowOf(t.columnFor(name), group)
	for ; i < len(pieces) && pieces[i].from < to; i++ {
		p := &pieces[i]
		row[p.bucket] = row[p.bucket].Add(SumOf(int64(min(to, p.to) - max(from, p.from))))
	}
}

// timeInPiece is the time of a run that a piece gets; false when it is none.
func (t *accumulator) timeInPiece(r *run, end record.Time, p *piece) (from, to record.Time, some bool) {
	if t.q.Credit == AtStop {
		return r.start, end, r.stop != record.None && p.hasInstant(end)
	}
	from, to = max(r.start, p.from), min(end, p.to)
	return from, to, from < to || from == to && r.start == end && p.hasInstant(r.start)
}

// addUse adds what a run used from from to to.
func (t *accumulator) addUse(r *run, end record.Time, group uint32, bucket int, from, to record.Time) {
	if t.q.Energy != nil {
		t.addEnergy(r, end, group, bucket, from, to)
	}
	for k, columns := range t.cachedTarget(r.layout).of {
		if len(columns) == 0 {
			continue
		}
		used := r.usedBetween(k, end, from, to)
		for _, c := range columns {
			u := &t.rowOf(c, group)[bucket]
			*u = u.Add(used)
		}
	}
}

// countRun counts a run in a piece, and reports whether it is one of its records.
func (t *accumulator) countRun(r *run, end record.Time, group uint32, who string, p *piece) bool {
	started, stopped := p.hasInstant(r.start), r.stop != record.None && p.hasInstant(r.stop)
	is := started || p.first && r.start < p.from && end > p.from
	if t.q.Credit == AtStop {
		is = stopped
	}
	// A run is counted where it starts, or in the first bucket when it came before.
	if is && (started || p.bucket == 0 || t.q.Credit == AtStop) {
		t.cachedTarget(r.layout).runs++
	}
	if is && t.q.People != "" {
		t.notePerson(group, p.bucket, who, 1)
	}
	if !t.q.Counts {
		return is
	}
	c := &t.countsOf(group)[p.bucket]
	if is {
		c.records++
	}
	if stopped {
		c.stopped++
	}
	if started {
		c.started++
		if wait, known := r.waitTime(); known {
			c.waiters++
			c.waited = c.waited.Add(SumOf(wait))
		}
	}
	return is
}

// compareTuples orders tuples by what they show.
func compareTuples(a, b *tuple) int { return CompareValues(a.values, b.values, a.lacks, b.lacks) }
