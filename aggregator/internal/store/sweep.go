package store

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/heap"
	"github.com/bursar-accounting/bursar/proto/record"
)

// errEnough ends a query whose limit is reached.
var errEnough = errors.New("enough")

// maxOverlap is how many blocks a sweep may hold decoded at a time, about a
// megabyte each. Rows that lie in more disorder are sorted like any others.
const maxOverlap = 128

// maxLong is how many blocks an answer without a limit may hold: it lasts as long as
// its client reads.
const maxLong = 32

// What a query takes in memory, about: a decoded block, a row of a heap, a row while
// rows are sorted, a file of sorted rows, and what a view keeps of metas and
// templates.
const (
	blockBytes = 2 << 20
	rowBytes   = 2 << 10
	sortBytes  = 512
	runBuffer  = 64 << 10
	runBytes   = runBuffer + 16<<10
	viewBytes  = 4 << 20
)

// run is a query under way.
type run struct {
	ctx      context.Context
	view     *View
	plan     *plan
	yield    func(*columns.Row) error
	left     int // rows until the limit
	row      columns.Row
	leased   int64     // of the memory for answers
	keys     []sortKey // of the block that is read, in no order
	scanners int       // by how many goroutines the first rows of an order are found
}

// answerQuery answers the query in the way that suits it, once there is memory for it.
func (r *run) answerQuery() error {
	if q := r.plan.Query; q.ID != "" && !q.Tombstones && !q.Superseded {
		return r.lookUpID()
	}
	way, takes := r.chooseStrategy()
	lease := LeaseOf(r.ctx)
	if err := lease.Use(r.ctx, takes); err != nil {
		return err
	}
	r.leased = takes
	defer func() { lease.Free(r.leased) }()
	return way()
}

// chooseStrategy returns how the query is answered, and about how much memory that takes.
func (r *run) chooseStrategy() (way func() error, takes int64) {
	q := r.plan.Query
	if q.Order == BySeq {
		return r.sweep, viewBytes + blockBytes
	}
	if q.Order <= ByStart {
		most := int(min(int64(r.view.store.overlap), LeaseOf(r.ctx).Most()/2/blockBytes))
		if q.Limit == 0 {
			most = min(most, maxLong)
		}
		if n := r.blockOverlap(); n <= most {
			return r.sweep, viewBytes + int64(n)*blockBytes
		}
	}
	if q.Limit > 0 && q.Limit <= maxHeap {
		way := r.emitBest
		r.scanners = scannersFor(LeaseOf(r.ctx), len(r.plan.zones))
		if r.mayWalkIndex() {
			way, r.scanners = r.walkIndex, 1
		}
		return way, int64(r.scanners)*scannerBytes + int64(min(q.Limit, r.plan.maxRows()))*rowBytes
	}
	// A buffer that grows is there twice.
	return r.emitSorted, viewBytes + blockBytes + int64(r.keyBound())*itemBytes + 2*min(int64(r.view.store.options.SortBytes), int64(r.plan.maxRows())*sortBytes)
}

// shrinkLease gives back what the query took beyond n bytes.
func (r *run) shrinkLease(n int64) {
	if n += viewBytes; n < r.leased {
		LeaseOf(r.ctx).Free(r.leased - n)
		r.leased = n
	}
}

// maxRows is how many rows the plan reads at most, but for those that are in no block.
func (p *plan) maxRows() (n int) {
	for _, z := range p.zones {
		n += z.Rows
	}
	return n + foldRows
}

// lookUpID answers a query for one id by the index.
func (r *run) lookUpID() error {
	row, ok, err := r.view.Get(r.plan.ID)
	if err != nil || !ok || !r.plan.matchesRow(&row, false) || !r.plan.isAfterResume(r.plan.keyOf(&row)) {
		return err
	}
	return r.emit(&row)
}

// emit hands a row out.
func (r *run) emit(row *columns.Row) error {
	if err := r.yield(row); err != nil {
		return err
	}
	if r.left--; r.left <= 0 {
		return errEnough
	}
	return nil
}

// keySpan returns the range of a block's keys in the order of the query: nothing in
// it comes before first or after last.
func (p *plan) keySpan(z *zone) (first, last sortKey) {
	least, most := int64(z.MinStop), int64(z.MaxStop)
	switch p.Order {
	case ByStart:
		least, most = int64(z.MinStart), int64(z.MaxStart)
	case ByRuntime:
		least, most = runtimeKey(z.MaxStart, z.MinStop, 0).n, runtimeKey(z.MinStart, z.MaxStop, 0).n
	case BySeq:
		first, last = sortKey{seq: z.First}, sortKey{seq: z.Last}
	}
	if p.Order != BySeq {
		first, last = sortKey{n: least}, sortKey{n: most}
		if p.Tombstones && z.Tombstones > 0 {
			first, last = sortKey{n: math.MinInt64}, nullKey(0)
		}
	}
	if p.Desc {
		first, last = last, first
	}
	if p.Order != BySeq {
		first.seq, last.seq = 0, math.MaxUint64
	}
	return first, last
}

// zonesByFirst returns the zones of the plan sorted by where their blocks begin.
func (p *plan) zonesByFirst() []*zone {
	zones := slices.Clone(p.zones)
	slices.SortStableFunc(zones, func(a, b *zone) int {
		x, _ := p.keySpan(a)
		y, _ := p.keySpan(b)
		return cmp.Or(p.compareKeys(x, y), cmp.Compare(a.First, b.First))
	})
	return zones
}

// blockOverlap returns how many blocks a sweep would hold at most.
func (r *run) blockOverlap() int {
	p, most := r.plan, 0
	ends := heap.Heap[sortKey]{Less: func(a, b sortKey) bool { return p.compareKeys(a, b) < 0 }}
	for _, z := range p.zonesByFirst() {
		first, last := p.keySpan(z)
		for len(ends.Items) > 0 && p.compareKeys(ends.Items[0], first) < 0 {
			ends.Pop()
		}
		ends.Push(last)
		most = max(most, len(ends.Items))
	}
	return most
}

// sweep merges the blocks, each of which it reads when its turn comes, with the
// rows that are in none.
func (r *run) sweep() error {
	h := &cursors{heap.Heap[*cursor]{Less: func(a, b *cursor) bool { return r.plan.compareKeys(a.key, b.key) < 0 }}}
	if err := r.addLoose(h); err != nil {
		return err
	}
	if r.plan.Order != ByStop {
		if err := r.addOpen(h); err != nil {
			return err
		}
		return r.mergeBlocks(h)
	}
	first, second := r.mergeBlocks, r.emitOpen
	if r.plan.Desc {
		first, second = second, first
	}
	if err := first(h); err != nil {
		return err
	}
	return second(h)
}

// emitOpen hands out the open rows. They have no stop, so they stand together,
// in the order in which they lie.
func (r *run) emitOpen(*cursors) error {
	return r.view.eachOpenRow(r.ctx, r.plan, func(row *columns.Row) error {
		if !r.plan.isAfterResume(r.plan.keyOf(row)) {
			return nil
		}
		return r.emit(row)
	})
}

func (r *run) mergeBlocks(h *cursors) error {
	zones := r.plan.zonesByFirst()
	for {
		var err error
		if zones, err = r.admitBlocks(h, zones); err != nil {
			return err
		}
		if len(h.Items) == 0 {
			return nil
		}
		if err := r.emitNext(h); err != nil {
			return err
		}
	}
}

// admitBlocks opens the blocks that may hold the next row.
func (r *run) admitBlocks(h *cursors, zones []*zone) ([]*zone, error) {
	for len(zones) > 0 {
		first, last := r.plan.keySpan(zones[0])
		if len(h.Items) > 0 && r.plan.compareKeys(h.Items[0].key, first) < 0 {
			break
		}
		if r.plan.isAfterResume(last) {
			if err := r.openBlock(h, zones[0]); err != nil {
				return nil, err
			}
		}
		zones = zones[1:]
	}
	return zones, nil
}

// emitNext emits the next row.
func (r *run) emitNext(h *cursors) error {
	c := h.Items[0]
	if err := c.read(c.at, &r.row); err != nil {
		return err
	}
	if err := r.emit(&r.row); err != nil {
		return err
	}
	if c.at++; c.at >= c.n {
		h.Pop()
		return r.ctx.Err()
	}
	c.key = c.keyAt(c.at)
	if len(h.Items) > 1 {
		h.Fix()
	}
	return nil
}

// cursor is a sorted run of rows.
type cursor struct {
	key   sortKey // of the row at
	at, n int
	keyAt func(i int) sortKey
	read  func(i int, row *columns.Row) error
}

// cursors have the one with the next row on top.
type cursors struct{ heap.Heap[*cursor] }

func (c *cursors) addCursor(keys []sortKey, read func(i int, row *columns.Row) error) {
	if len(keys) > 0 {
		c.Push(&cursor{key: keys[0], n: len(keys), keyAt: func(i int) sortKey { return keys[i] }, read: read})
	}
}

// place is a row of a block.
type place struct {
	key sortKey
	at  int32
}

// openBlock adds the matching rows of a block, sorted.
func (r *run) openBlock(h *cursors, z *zone) error {
	b, m, err := r.view.readSelected(r.plan, z, r.view.blocks.reader)
	if err != nil {
		return err
	}
	keys, err := r.plan.blockKeys(b, m, make([]sortKey, 0, m.Count()))
	if err != nil {
		return err
	}
	places := make([]place, 0, len(keys))
	next := 0
	for i := range m.Rows() {
		if k := keys[next]; r.plan.isAfterResume(k) {
			places = append(places, place{k, int32(i)})
		}
		next++
	}
	if r.plan.Order != BySeq || r.plan.Desc {
		slices.SortFunc(places, func(a, b place) int { return r.plan.compareKeys(a.key, b.key) })
	}
	if len(places) == 0 {
		return nil
	}
	if r.plan.ReuseRows {
		b.ReuseRows()
	}
	h.Push(&cursor{key: places[0].key, n: len(places), keyAt: func(i int) sortKey { return places[i].key },
		read: func(i int, row *columns.Row) error { return b.ReadRow(row, int(places[i].at)) }})
	return nil
}

// blockKeys appends the keys of the selected rows, in the order of the block.
func (p *plan) blockKeys(b *columns.Block, m columns.Mask, keys []sortKey) ([]sortKey, error) {
	seqs, err := b.Seqs()
	if err != nil {
		return nil, err
	}
	switch p.Order {
	case ByMeta:
		for i := range m.Rows() {
			values, _, err := b.Values(i, p.By)
			if err != nil {
				return nil, err
			}
			keys = append(keys, metaKey(values, seqs[i]))
		}
		return keys, nil
	case ByID:
		for i := range m.Rows() {
			id, err := b.ID(i)
			if err != nil {
				return nil, err
			}
			keys = append(keys, sortKey{id: id, seq: seqs[i]})
		}
		return keys, nil
	case BySeq:
		for i := range m.Rows() {
			keys = append(keys, sortKey{seq: seqs[i]})
		}
		return keys, nil
	case ByAmount:
		return p.amountKeys(b, m, keys, seqs, func(i int, amount int64) sortKey { return numberKey(amount, seqs[i]) })
	case ByStop, ByStart, ByRuntime, ByUsed:
	}
	return p.timeKeys(b, m, keys, seqs)
}

// timeKeys appends the keys of an order of which times decide.
func (p *plan) timeKeys(b *columns.Block, m columns.Mask, keys []sortKey, seqs []uint64) ([]sortKey, error) {
	starts, err := b.Starts()
	if err != nil {
		return nil, err
	}
	stops, err := b.Stops()
	if err != nil {
		return nil, err
	}
	if p.Order == ByUsed {
		return p.amountKeys(b, m, keys, seqs, func(i int, amount int64) sortKey { return usedKey(amount, starts[i], stops[i], seqs[i]) })
	}
	for i := range m.Rows() {
		switch {
		case p.Order == ByStart:
			keys = append(keys, numberKey(int64(starts[i]), seqs[i]))
		case p.Order == ByRuntime:
			keys = append(keys, runtimeKey(starts[i], stops[i], seqs[i]))
		case stops[i] == record.None:
			keys = append(keys, nullKey(seqs[i]))
		default:
			keys = append(keys, numberKey(int64(stops[i]), seqs[i]))
		}
	}
	return keys, nil
}

// amountKeys appends the keys of an order by an amount; of has the key of an amount that is
// there.
func (p *plan) amountKeys(b *columns.Block, m columns.Mask, keys []sortKey, seqs []uint64, of func(i int, amount int64) sortKey) ([]sortKey, error) {
	err := b.AmountsOf(m, p.By, func(i int, amount int64, present bool) {
		k := nullKey(seqs[i])
		if present {
			k = of(i, amount)
		}
		keys = append(keys, k)
	})
	return keys, err
}

// addLoose adds the waiting rows.
func (r *run) addLoose(h *cursors) error {
	var rows []*columns.Row
	for _, w := range r.view.memory.waiting {
		if r.plan.matchesRow(&w.row, w.dead) && r.plan.isAfterResume(r.plan.keyOf(&w.row)) {
			rows = append(rows, &w.row)
		}
	}
	slices.SortFunc(rows, func(a, b *columns.Row) int { return r.plan.compareKeys(r.plan.keyOf(a), r.plan.keyOf(b)) })
	keys := make([]sortKey, len(rows))
	for i := range rows {
		keys[i] = r.plan.keyOf(rows[i])
	}
	h.addCursor(keys, func(i int, row *columns.Row) error {
		*row = *rows[i]
		return nil
	})
	return nil
}

// addOpen remembers only the keys of open rows; a site can have many.
func (r *run) addOpen(h *cursors) error {
	var keys []sortKey
	err := r.view.eachOpenRow(r.ctx, r.plan, func(row *columns.Row) error {
		if k := r.plan.keyOf(row); r.plan.isAfterResume(k) {
			keys = append(keys, k)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(keys, r.plan.compareKeys)
	h.addCursor(keys, func(i int, row *columns.Row) error {
		open, err := readOpenRow(r.view.snap, keys[i].seq)
		if err == nil {
			*row = *open
		}
		return err
	})
	return nil
}

// eachOpenRow calls yield with the open rows that match. The row is yield's to keep.
func (v *View) eachOpenRow(ctx context.Context, p *plan, yield func(*columns.Row) error) error {
	if p.Open == OnlyClosed || !p.Stop.isUnbounded() || !p.Runtime.isUnbounded() {
		return nil
	}
	n := 0
	return scanRange(v.snap, seqKey(tableOpen, p.After+1), []byte{tableOpen + 1}, func(key, value []byte) error {
		if n++; n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := decodeOpenRow(keySeq(key), append([]byte(nil), value...))
		if err != nil || !p.matchesRow(row, false) {
			return err
		}
		return yield(row)
	})
}

// readSelected reads a block and selects its rows.
func (v *View) readSelected(p *plan, z *zone, reader *columns.Reader) (*columns.Block, columns.Mask, error) {
	b, err := readBlock(v.snap, z, reader)
	if err != nil {
		return nil, nil, err
	}
	m, err := p.selectBlock(b, z)
	if err != nil {
		return nil, nil, err
	}
	return b, m, nil
}
