package store

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// emitBest emits the first rows of the order, as many as the limit. All processors look for
// their keys; rows are read only of these. Of an order by times blocks are read by where they
// begin, until no other can have a row among the first.
func (r *run) emitBest() error {
	best := &bestKeys{plan: r.plan, keys: r.newFirstKeys(r.plan.Limit)}
	if err := r.eachLoose(func(k sortKey, _ func() (columns.Row, error)) error {
		best.offerKeys(k)
		return nil
	}); err != nil {
		return err
	}
	enough := func(*zone) bool { return false }
	if r.plan.Order <= ByRuntime {
		r.plan.zones = slices.DeleteFunc(r.plan.zonesByFirst(), func(z *zone) bool {
			_, last := r.plan.keySpan(z)
			return !r.plan.isAfterResume(last)
		})
		enough = func(z *zone) bool {
			first, _ := r.plan.keySpan(z)
			return best.isBehind(first)
		}
	}
	scanners := make([]Scanner, r.scanners)
	for i := range scanners {
		var keys []sortKey // memory for those of a block
		scanners[i].Block = func(b *columns.Block, m columns.Mask) (err error) {
			keys, err = best.addBlock(b, m, keys)
			return err
		}
	}
	if err := r.view.scanPlan(r.ctx, r.plan, scanners, enough); err != nil {
		return err
	}
	keys := best.keys.Items
	slices.SortFunc(keys, r.plan.compareKeys)
	rows, err := r.readRows(keys)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := r.emit(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// bestKeys finds the first keys of an order in blocks that come from several goroutines.
type bestKeys struct {
	plan *plan
	last atomic.Pointer[sortKey] // the last of keys, once these are as many as the limit

	mu   sync.Mutex
	keys *firstKeys
}

// isBehind reports whether as many rows as the limit come before a key.
func (b *bestKeys) isBehind(k sortKey) bool {
	last := b.last.Load()
	return last != nil && b.plan.compareKeys(k, *last) > 0
}

// offerKeys takes in the keys that may be among the first.
func (b *bestKeys) offerKeys(keys ...sortKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := false
	for _, k := range keys {
		changed = b.keys.offerKey(k) || changed
	}
	if items := b.keys.Items; changed && len(items) == b.keys.most {
		last := items[0]
		b.last.Store(&last)
	}
}

// addBlock takes in the keys of the rows in m that may be among the first. It uses the memory of
// keys, and returns it.
func (b *bestKeys) addBlock(block *columns.Block, m columns.Mask, keys []sortKey) ([]sortKey, error) {
	if err := b.plan.selectUpTo(block, m, b.last.Load()); err != nil || m.Empty() {
		return keys, err
	}
	keys, err := b.plan.blockKeys(block, m, keys[:0])
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(k sortKey) bool { return b.isBehind(k) || !b.plan.isAfterResume(k) })
	if len(keys) > 0 {
		b.offerKeys(keys...)
	}
	return keys, nil
}

// selectUpTo takes rows out of m that are behind last, or before the position to resume from,
// where the column of the order says so by itself. Last may be nil.
func (p *plan) selectUpTo(b *columns.Block, m columns.Mask, last *sortKey) error {
	if p.Tombstones { // their columns hold no values
		return nil
	}
	within := p.numbersUpTo(last)
	if within.isUnbounded() {
		return nil
	}
	from, to := within.bounds()
	switch p.Order {
	case ByStop:
		return b.SelectStop(m, record.Time(from), record.Time(to))
	case ByStart:
		return b.SelectStart(m, record.Time(from), record.Time(to))
	case ByRuntime:
		return b.SelectRuntime(m, from, to)
	case ByAmount:
		nulls := last == nil || last.null
		return b.SelectAmount(m, p.By, func(amount int64, present bool) bool {
			return present && from <= amount && amount <= to || !present && nulls
		})
	case ByID, BySeq, ByMeta, ByUsed:
	}
	return nil
}

// numbersUpTo returns the numbers of the keys from the position to resume from up to last, which
// may be nil.
func (p *plan) numbersUpTo(last *sortKey) (within Range) {
	bound := func(n int64, null, least bool) {
		switch {
		case null && p.By != "": // all numbers come before it
		case least:
			within.GTE(n)
		default:
			within.LTE(n)
		}
	}
	if last != nil {
		bound(last.n, last.null, p.Desc)
	}
	if p.Resume != nil {
		bound(p.Resume.Key, p.Resume.Null, !p.Desc)
	}
	return within
}

// fewRows is how many rows are not worth a further goroutine.
const fewRows = 16

// readRows returns the rows of keys, in their order.
func (r *run) readRows(keys []sortKey) ([]columns.Row, error) {
	places := make([]int, len(keys)) // as the rows lie
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(keys[a].seq, keys[b].seq) })
	rows := make([]columns.Row, len(keys))
	errs := make([]error, r.scanners)
	var wait sync.WaitGroup
	some := max(fewRows, (len(places)+r.scanners-1)/r.scanners)
	for i := 0; i*some < len(places); i++ {
		wait.Go(func() { errs[i] = r.readPart(places[i*some:min(len(places), (i+1)*some)], keys, rows) })
	}
	wait.Wait()
	return rows, firstCause(errs)
}

// readPart reads the rows of keys at some places, which are sorted by where the rows lie.
func (r *run) readPart(places []int, keys []sortKey, rows []columns.Row) error {
	own := *r.view
	own.blocks = newBlockCache(own.memory.dict, 1)
	for i, at := range places {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if i+1 < len(places) {
			own.expectRow(keys[at].seq, keys[places[i+1]].seq)
		}
		row, ok, err := own.RowAt(keys[at].seq)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("%w: row %d is nowhere", ErrCorrupt, keys[at].seq)
		}
		rows[at] = row
	}
	return nil
}

// expectRow has the block of a row decoded for the next one, where that is in it too.
func (v *View) expectRow(seq, next uint64) {
	if i, ok := findZone(v.memory.zones, seq); ok && next <= v.memory.zones[i].Last {
		v.blocks.once = v.memory.zones[i].First
	}
}
