package store

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// plan is a query made ready: which blocks it must read and how rows are
// selected.
type plan struct {
	*Query
	zones []*zone
	metas []*columns.MetaFilter   // one for each of Query.Meta
	allow [][]*columns.MetaFilter // as Query.Allowed
	mask  func(z *zone) (columns.Mask, error)
	row   uint64 // the number of the only row in a block that can match; 0: any can
}

func (v *View) planQuery(q *Query) (*plan, error) {
	if !q.Details {
		if err := v.checkKeysKept(q.timeWindow(), q.metaKeys()); err != nil {
			return nil, err
		}
	}
	p := &plan{Query: q, mask: func(z *zone) (columns.Mask, error) { return readMask(v.snap, z) }}
	p.metas, p.allow = v.metaFilters(q)
	if q.ID != "" && !q.Tombstones && !q.Superseded {
		return p, v.planID(p)
	}
	posted, all, err := v.candidateBlocks(q)
	if err != nil {
		return nil, err
	}
	for _, z := range v.memory.zones {
		if !p.mayMatchZone(z) {
			continue
		}
		if _, ok := slices.BinarySearch(posted, z.First); ok || all {
			p.zones = append(p.zones, z)
		}
	}
	return p, nil
}

// planID has the plan read the one block that has the row of its id, if any does.
func (v *View) planID(p *plan) error {
	x, ok, err := v.readIndex(p.ID)
	if err != nil || !ok || x.Hidden || x.Open {
		return err
	}
	if i, ok := findZone(v.memory.zones, x.Seq); ok && p.mayMatchZone(v.memory.zones[i]) {
		p.row, p.zones = x.Seq, []*zone{v.memory.zones[i]}
	}
	return nil
}

// metaFilters are those of a query's conditions on meta.
func (v *View) metaFilters(q *Query) (metas []*columns.MetaFilter, allow [][]*columns.MetaFilter) {
	for _, tests := range q.Allowed {
		may := make([]*columns.MetaFilter, 0, len(tests))
		for i := range tests {
			may = append(may, v.memory.dict.MetaFilter(tests[i].Key, tests[i].matchesValues))
		}
		allow = append(allow, may)
	}
	for i := range q.Meta {
		filter := v.memory.dict.MetaFilter
		if q.Meta[i].ofEnd() {
			filter = v.memory.dict.KeyFilter
		}
		metas = append(metas, filter(q.Meta[i].Key, q.Meta[i].matchesValues))
	}
	return metas, allow
}

// mayMatchZone reports whether a row of the block can match, by its zone.
func (p *plan) mayMatchZone(z *zone) bool {
	if z.Last <= p.After || p.Reads != nil && !p.Reads(z.First, z.Last) {
		return false
	}
	if p.Tombstones && z.Tombstones > 0 {
		return true
	}
	if z.Dead+z.Tombstones >= z.Rows && !p.Superseded || p.Open == OnlyOpen {
		return false
	}
	if !p.Running.overlaps(z.MinStart, z.MaxStop) {
		return false
	}
	return rangeOverlaps(p.Start, z.MinStart, z.MaxStart) && rangeOverlaps(p.Stop, z.MinStop, z.MaxStop)
}

func rangeOverlaps(r Range, least, most record.Time) bool {
	from, to := r.bounds()
	return int64(least) <= to && from <= int64(most)
}

// candidateBlocks returns the blocks that have all the values that the query asks for; all
// is true when it asks for none.
func (v *View) candidateBlocks(q *Query) (blocks []uint64, all bool, err error) {
	if q.Tombstones {
		return nil, true, nil
	}
	tests := slices.DeleteFunc(slices.Clone(q.Meta), func(t MetaTest) bool { return t.ofEnd() }) // ends are not posted
	blocks, all, err = v.blocksMeetingTests(tests)
	if err != nil || q.Allowed == nil {
		return blocks, all, err
	}
	var may []uint64
	for _, tests := range q.Allowed {
		some, every, err := v.blocksMeetingTests(tests)
		if err != nil || every {
			return blocks, all, err
		}
		may = append(may, some...)
	}
	slices.Sort(may)
	if may = slices.Compact(may); all {
		return may, false, nil
	}
	return intersect(blocks, may), false, nil
}

// blocksMeetingTests returns the blocks that have all the values that the tests ask for.
func (v *View) blocksMeetingTests(tests []MetaTest) (blocks []uint64, all bool, err error) {
	all = true
	for i := range tests {
		for _, values := range tests[i].neededValues() {
			some, err := v.blocksWithAny(tests[i].Key, values)
			if err != nil {
				return nil, false, err
			}
			if !all {
				some = intersect(blocks, some)
			}
			blocks, all = some, false
		}
	}
	return blocks, all, nil
}

// neededValues returns lists of values, of each of which the key must have one.
func (m *MetaTest) neededValues() (lists [][]string) {
	for _, v := range m.Contains {
		lists = append(lists, []string{v})
	}
	if len(m.Any) > 0 {
		lists = append(lists, m.Any)
	}
	return lists
}

// blocksWithAny returns the blocks that may have one of the values, ascending.
func (v *View) blocksWithAny(key string, values []string) (blocks []uint64, err error) {
	kvs := make([]uint32, 0, len(values)+1)
	if kv, ok := v.memory.dict.InlineKV(key); ok {
		kvs = append(kvs, kv)
	}
	for _, value := range values {
		if kv, ok := v.memory.dict.KV(key, value); ok {
			kvs = append(kvs, kv)
		}
	}
	for _, kv := range kvs {
		prefix := postingKey(kv, 0)[:5]
		err = scanPrefix(v.snap, prefix, func(k, _ []byte) error {
			blocks = append(blocks, keySeq(k[4:]))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(blocks)
	return slices.Compact(blocks), nil
}

// intersect keeps what is in both; both ascend.
func intersect(a, b []uint64) []uint64 {
	return slices.DeleteFunc(a, func(v uint64) bool {
		_, ok := slices.BinarySearch(b, v)
		return !ok
	})
}

// selectBlock returns the rows of a block that match.
func (p *plan) selectBlock(b *columns.Block, z *zone) (columns.Mask, error) {
	m := b.All()
	if p.row != 0 {
		seqs, err := b.Seqs()
		if err != nil {
			return nil, err
		}
		only := columns.NewMask(b.Len())
		if i, ok := slices.BinarySearch(seqs, p.row); ok {
			only.Set(i)
		}
		m.And(only)
	}
	if z.Dead > 0 && !p.Superseded {
		dead, err := p.mask(z)
		if err != nil {
			return nil, err
		}
		m.AndNot(dead)
	}
	if err := p.selectColumns(b, m); err != nil {
		return nil, err
	}
	if err := p.selectRows(b, m); err != nil {
		return nil, err
	}
	if p.Tombstones {
		return m, p.addTombstones(b, z, m)
	}
	return m, p.dropBefore(b, z, m)
}

func (p *plan) selectColumns(b *columns.Block, m columns.Mask) error {
	if !p.Start.isUnbounded() {
		from, to := p.Start.bounds()
		if err := b.SelectStart(m, record.Time(from), record.Time(to)); err != nil {
			return err
		}
	}
	if !p.Stop.isUnbounded() {
		from, to := p.Stop.bounds()
		if err := b.SelectStop(m, record.Time(from), record.Time(to)); err != nil {
			return err
		}
	}
	if p.Running != nil {
		if err := b.SelectOverlap(m, p.Running.From, p.Running.To); err != nil {
			return err
		}
	}
	if !p.Runtime.isUnbounded() {
		from, to := p.Runtime.bounds()
		if err := b.SelectRuntime(m, from, to); err != nil {
			return err
		}
	}
	if !p.Wait.isUnbounded() {
		from, to := p.Wait.bounds()
		if err := b.SelectWait(m, from, to); err != nil {
			return err
		}
	}
	if err := p.selectMeta(b, m); err != nil {
		return err
	}
	for i := range p.Amounts {
		test := &p.Amounts[i]
		err := b.SelectAmount(m, test.Name, func(amount int64, present bool) bool { return present && test.Amount.contains(amount) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) selectMeta(b *columns.Block, m columns.Mask) error {
	for _, f := range p.metas {
		if err := b.SelectMeta(m, f); err != nil {
			return err
		}
	}
	if p.Allowed == nil {
		return nil
	}
	may := columns.NewMask(b.Len())
	for _, filters := range p.allow {
		some := slices.Clone(m)
		for _, f := range filters {
			if err := b.SelectMeta(some, f); err != nil {
				return err
			}
		}
		may.Or(some)
	}
	m.And(may)
	return nil
}

// selectRows does what has no column of its own.
func (p *plan) selectRows(b *columns.Block, m columns.Mask) error {
	if p.Details {
		archived, err := b.Archived()
		if err != nil {
			return err
		}
		m.AndNot(archived)
	}
	if p.Open == OnlyOpen {
		return b.SelectOpen(m, true)
	}
	if p.ID == "" && p.Origin == nil {
		return nil
	}
	for i := range m.Rows() {
		row, err := b.Row(i)
		if err != nil {
			return err
		}
		if !p.matchesIDAndOrigin(&row) {
			m.Clear(i)
		}
	}
	return nil
}

func (p *plan) matchesIDAndOrigin(row *columns.Row) bool {
	return (p.ID == "" || p.ID == row.Record.ID) && (p.Origin == nil || *p.Origin == row.Origin)
}

// addTombstones adds them to what matches, and takes out what is before After.
func (p *plan) addTombstones(b *columns.Block, z *zone, m columns.Mask) error {
	if z.Tombstones > 0 {
		all := b.All()
		for i := range b.Len() {
			if !all.Has(i) {
				m.Set(i)
			}
		}
	}
	return p.dropBefore(b, z, m)
}

func (p *plan) dropBefore(b *columns.Block, z *zone, m columns.Mask) error {
	if p.After < z.First {
		return nil
	}
	seqs, err := b.Seqs()
	if err != nil {
		return err
	}
	for i, seq := range seqs {
		if seq > p.After {
			break
		}
		m.Clear(i)
	}
	return nil
}

// matchesRow reports whether a row that is in no block matches.
func (p *plan) matchesRow(row *columns.Row, dead bool) bool {
	if row.Seq <= p.After || dead && !p.Superseded || p.Details && row.Archived {
		return false
	}
	if row.Tombstone {
		return p.Tombstones
	}
	return p.matchesIDAndOrigin(row) && p.matchesTimes(row) && p.matchesContent(&row.Record)
}

func (p *plan) matchesTimes(row *columns.Row) bool {
	stop := row.ShownStop()
	if !p.Start.contains(int64(row.Record.Start)) || !p.Running.overlaps(row.Record.Start, stop) {
		return false
	}
	if r := &row.Record; !p.Wait.isUnbounded() && (r.Submit == record.None || r.Submit > r.Start || !p.Wait.contains(int64(r.Start-r.Submit)/int64(record.Second))) {
		return false
	}
	if stop == record.None {
		return p.Open != OnlyClosed && p.Stop.isUnbounded() && p.Runtime.isUnbounded()
	}
	return p.Open != OnlyOpen && p.Stop.contains(int64(stop)) && p.Runtime.contains(int64(stop-row.Record.Start)/int64(record.Second))
}

func (p *plan) matchesContent(r *record.Record) bool {
	if !Match(p.Meta, r) || p.Allowed != nil && !MetaAllowed(p.Allowed, r.Meta) {
		return false
	}
	for i := range p.Amounts {
		c := r.Component(p.Amounts[i].Name)
		if c == nil || !p.Amounts[i].Amount.contains(c.Amount) {
			return false
		}
	}
	return true
}

// MetaAllowed reports whether all tests of at least one of the lists hold for the
// meta, as [Query.Allowed] has it.
func MetaAllowed(allowed [][]MetaTest, m record.Meta) bool {
	return slices.ContainsFunc(allowed, func(tests []MetaTest) bool { return allTestsHold(tests, m) })
}

// Match reports whether all tests hold for the record, as [Query.Meta] has it.
func Match(tests []MetaTest, r *record.Record) bool {
	for i := range tests {
		if tests[i].OfMeta {
			if !allTestsHold(tests[i:i+1], r.Meta) {
				return false
			}
			continue
		}
		if !tests[i].matchesValues(r.Values(tests[i].Key)) {
			return false
		}
	}
	return true
}

// allTestsHold reports whether all tests hold for the meta.
func allTestsHold(tests []MetaTest, m record.Meta) bool {
	for i := range tests {
		at, ok := slices.BinarySearchFunc(m, tests[i].Key, func(e record.MetaEntry, key string) int { return strings.Compare(e.Key, key) })
		if !ok || !tests[i].matchesValues(m[at].Values, true) {
			return false
		}
	}
	return true
}
