package store

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Scan gives the rows of q as they lie, for those who add up columns: block is
// called with every block that may have some and the mask of those that match,
// loose with every matching row that is in no block (waiting or open). Blocks come
// in the order of their sequence numbers, then the waiting rows, then the open
// ones. Order, Desc, Resume and Limit of q do not count. What the functions are
// given is theirs until they return. An error of theirs ends the scan and is
// returned.
func (v *View) Scan(ctx context.Context, q Query, block func(*columns.Block, columns.Mask) error, loose func(*columns.Row) error) error {
	return v.ScanBy(ctx, q, []Scanner{{block, loose}})
}

// Scanner is what [View.ScanBy] calls from one goroutine.
type Scanner struct {
	Block func(*columns.Block, columns.Mask) error
	Loose func(*columns.Row) error
}

// ScanBy is [View.Scan] by several goroutines: each block goes to one of the
// scanners, whichever is free, and all loose rows go to the first. It returns when
// all are done. Nothing else may use the view meanwhile.
func (v *View) ScanBy(ctx context.Context, q Query, scanners []Scanner) error {
	p, err := v.planQuery(&q)
	if err != nil {
		return err
	}
	return v.scanPlan(ctx, p, scanners, func(*zone) bool { return false })
}

// Processors is how many goroutines add up what a node has to answer a question.
func Processors() int { return min(runtime.GOMAXPROCS(0), 16) }

// scannerBytes is about what a scanner takes in memory: a decoded block, and what it keeps of
// metas and templates.
const scannerBytes = blockBytes + viewBytes

// scannersFor returns by how many scanners an answer with the lease is found in so many blocks:
// they take no more than a quarter of the memory for answers, unless it is one.
func scannersFor(l *Lease, blocks int) int {
	return max(1, min(blocks, Processors(), int(l.Most()/4/scannerBytes)))
}

// ScanLeased is [View.ScanBy] by as many scanners as there are blocks, processors and memory for:
// what they take is taken from the lease of ctx. newScanner is called once for each before the
// scan begins.
func (v *View) ScanLeased(ctx context.Context, q Query, newScanner func() Scanner) error {
	p, err := v.planQuery(&q)
	if err != nil {
		return err
	}
	lease := LeaseOf(ctx)
	scanners := make([]Scanner, scannersFor(lease, len(p.zones)))
	takes := int64(len(scanners)) * scannerBytes
	if err := lease.Use(ctx, takes); err != nil {
		return err
	}
	defer lease.Free(takes)
	for i := range scanners {
		scanners[i] = newScanner()
	}
	return v.scanPlan(ctx, p, scanners, func(*zone) bool { return false })
}

// scanPlan gives the blocks of a plan to the scanners in their order, up to the one at which
// enough says that it and those behind it are not needed, and the loose rows to the first.
func (v *View) scanPlan(ctx context.Context, p *plan, scanners []Scanner, enough func(*zone) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := &atomic.Int64{}
	errs := make([]error, len(scanners))
	var wait sync.WaitGroup
	for i := 1; i < min(len(scanners), len(p.zones)); i++ {
		wait.Go(func() {
			// Readers and filters belong to one goroutine each.
			own := *p
			own.metas, own.allow = v.metaFilters(p.Query)
			if errs[i] = v.scanBlocks(ctx, &own, columns.NewReader(v.memory.dict), next, enough, scanners[i].Block); errs[i] != nil {
				cancel()
			}
		})
	}
	errs[0] = v.scanBlocks(ctx, p, v.blocks.reader, next, enough, scanners[0].Block)
	if errs[0] == nil && scanners[0].Loose != nil {
		errs[0] = v.scanLoose(ctx, p, scanners[0].Loose)
	}
	if errs[0] != nil {
		cancel()
	}
	wait.Wait()
	return firstCause(errs)
}

// firstCause returns the first error that is not the end of the others.
func firstCause(errs []error) error {
	var canceled error
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		canceled = cmp.Or(canceled, err)
	}
	return canceled
}

// scanBlocks gives the blocks that are left to block, until there are enough.
func (v *View) scanBlocks(ctx context.Context, p *plan, reader *columns.Reader, next *atomic.Int64, enough func(*zone) bool, block func(*columns.Block, columns.Mask) error) error {
	for {
		i := int(next.Add(1)) - 1
		if i >= len(p.zones) || enough(p.zones[i]) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		b, m, err := v.readSelected(p, p.zones[i], reader)
		if err != nil {
			return err
		}
		if m.Empty() {
			continue
		}
		if err := block(b, m); err != nil {
			return err
		}
	}
}

// scanLoose gives the rows that are in no block to loose.
func (v *View) scanLoose(ctx context.Context, p *plan, loose func(*columns.Row) error) error {
	for _, w := range v.memory.waiting {
		if p.matchesRow(&w.row, w.dead) {
			row := w.row
			if err := loose(&row); err != nil {
				return err
			}
		}
	}
	return v.eachOpenRow(ctx, p, loose)
}

// OpenRecords calls yield with every record whose run goes on, by sequence
// number. The row is yield's to keep.
func (v *View) OpenRecords(ctx context.Context, yield func(*columns.Row) error) error {
	return v.eachOpenRow(ctx, &plan{Query: &Query{}}, yield)
}

// Latest returns an instant after which no record of the view that has ended starts or stops. It
// may be later than the last of these, since it looks at no row of a block.
func (v *View) Latest() record.Time {
	latest := record.None
	for _, z := range v.memory.zones {
		latest = max(latest, z.MaxStart, z.MaxStop)
	}
	for _, w := range v.memory.waiting {
		latest = max(latest, w.row.Record.Start, w.row.ShownStop())
	}
	return latest
}

// BlocksMayHaveKey reports whether a row of a block can have the meta key: false is certain.
func (v *View) BlocksMayHaveKey(key string) bool { return v.memory.dict.MayHaveKey(key) }

// LacksKey reports that no record has the meta key. It is quick, and false as well where a record
// that is gone had it, or where blocks hold keys that the dictionary does not have. A record that
// an archive has may have had the key: see [View.HasKeys].
func (v *View) LacksKey(ctx context.Context, key string) (bool, error) {
	if v.BlocksMayHaveKey(key) {
		return false, nil
	}
	lacks := true
	err := v.scanLoose(ctx, &plan{Query: &Query{}}, func(row *columns.Row) error {
		if slices.ContainsFunc(row.Record.Meta, func(e record.MetaEntry) bool { return e.Key == key }) {
			lacks = false
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return lacks, err
}

// MetaCounts returns how many shown records have each value of the key. A record
// with two values counts for both. It is a scan of one column: about a tenth of
// a second for ten million records; callers keep the answer for as long as [View.Seq]
// stays the same or their users can wait.
func (v *View) MetaCounts(ctx context.Context, key string) (map[string]uint64, error) {
	if err := v.HasKeys(math.MinInt64, math.MaxInt64, key); err != nil {
		return nil, err
	}
	c := &metaCounter{key: key, counts: map[string]uint64{}, sets: map[uint32][]string{}}
	block := c.countBlock
	if _, inline := v.memory.dict.InlineKV(key); inline || record.IsEndKey(key) {
		block = c.countRows
	}
	err := v.Scan(ctx, Query{}, block, func(row *columns.Row) error {
		values, _ := row.Record.Values(key)
		c.addValues(values, 1)
		return nil
	})
	return c.counts, err
}

// metaCounter counts values of one key.
type metaCounter struct {
	key    string
	counts map[string]uint64
	sets   map[uint32][]string // the values in each meta set
}

func (c *metaCounter) addValues(values []string, n uint64) {
	for _, value := range values {
		c.counts[value] += n
	}
}

// countBlock counts the rows of each meta set, and looks into a set once for all
// blocks: sets are the store's.
func (c *metaCounter) countBlock(b *columns.Block, m columns.Mask) error {
	sets, err := b.Sets()
	if err != nil {
		return err
	}
	rows := map[uint32]uint64{}
	for i := range m.Rows() {
		rows[sets[i]]++
		if _, ok := c.sets[sets[i]]; !ok || sets[i] == 0 {
			if err := c.readSet(b, i, sets[i]); err != nil {
				return err
			}
		}
	}
	for set, n := range rows { // sums: the order does not matter
		for _, value := range c.sets[set] {
			c.counts[value] += n
		}
	}
	return nil
}

// readSet remembers the values of a set; set 0 is none, its rows count by themselves.
func (c *metaCounter) readSet(b *columns.Block, i int, set uint32) error {
	meta, err := b.Meta(i)
	if err != nil {
		return err
	}
	if set == 0 {
		c.addValues(meta.Get(c.key), 1)
		return nil
	}
	c.sets[set] = meta.Get(c.key)
	return nil
}

// countRows counts a key whose values are in the rows themselves.
func (c *metaCounter) countRows(b *columns.Block, m columns.Mask) error {
	for i := range m.Rows() {
		values, _, err := b.Values(i, c.key)
		if err != nil {
			return err
		}
		c.addValues(values, 1)
	}
	return nil
}
