package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// maxDifferences bounds what [View.Check] tells; more of the same does not help.
const maxDifferences = 100

// Check derives everything that can be derived from the rows again and compares
// it with what is stored: the index by id, the postings, the zones, the lists of
// conflicts and waiting stops, the counters and the state hash. It returns what
// differs, in words for an operator, at most a hundred of them; none for a store
// that is sound. It reads the whole store.
func (v *View) Check(ctx context.Context) ([]string, error) {
	c := &checker{ctx: ctx, view: v}
	for _, part := range []func() error{c.checkBlocks, c.checkWaiting, c.checkOpen, c.checkIndex, c.checkOrphans, c.checkSmallTables, c.checkTotals} {
		if err := part(); err != nil {
			return c.found, err
		}
		if len(c.found) >= maxDifferences {
			break
		}
	}
	return c.found, nil
}

type checker struct {
	ctx    context.Context
	view   *View
	hasher rowHasher
	found  []string

	hash             Hash
	rows, shown      uint64
	indexed, held    uint64
	conflicts, stops uint64
	left             uint64
	sums             sums
}

func (c *checker) reportDifference(format string, args ...any) {
	if len(c.found) < maxDifferences {
		c.found = append(c.found, fmt.Sprintf(format, args...))
	}
}

func (c *checker) checkBlocks() error {
	for _, z := range c.view.memory.zones {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.checkBlock(z); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkBlock(z *zone) error {
	b, err := readBlock(c.view.snap, z, c.view.blocks.reader)
	if err != nil {
		c.reportDifference("block %d does not read: %v", z.First, err)
		return nil
	}
	mask, err := readMask(c.view.snap, z)
	if err != nil {
		return err
	}
	want := newZone(b.Header(), z.Bytes)
	want.First, want.Dead, want.Sum = z.First, mask.Count(), z.Sum
	before := c.hash
	if *want != *z {
		c.reportDifference("block %d: its zone is %+v and should be %+v", z.First, *z, *want)
	}
	pairs := map[[2]string]bool{}
	for row, err := range b.Rows() {
		if err != nil {
			c.reportDifference("block %d does not read: %v", z.First, err)
			return nil
		}
		if err := c.checkBlockRow(z, &row, mask, b, pairs); err != nil {
			return err
		}
	}
	sum := c.hash
	if sum.subtractHash(before); sum != z.Sum {
		c.reportDifference("block %d: its rows add up to %v and not to %v", z.First, sum, z.Sum)
	}
	return nil
}

func (c *checker) checkBlockRow(z *zone, row *columns.Row, mask columns.Mask, b *columns.Block, pairs map[[2]string]bool) error {
	at, _, err := b.Find(row.Seq)
	if err != nil {
		return err
	}
	if !row.Tombstone {
		if err := c.checkPostings(z, row, pairs); err != nil {
			return err
		}
	}
	if mask.Has(at) {
		return nil
	}
	return c.checkLiveRow(row, false)
}

// checkPostings looks for one posting of each pair of the block's rows.
func (c *checker) checkPostings(z *zone, row *columns.Row, known map[[2]string]bool) error {
	for i := range row.Record.Meta {
		m := &row.Record.Meta[i]
		for _, value := range m.Values {
			if known[[2]string{m.Key, value}] {
				continue
			}
			known[[2]string{m.Key, value}] = true
			if err := c.checkPosting(z, m.Key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) checkPosting(z *zone, key, value string) error {
	d := c.view.memory.dict
	kv, hasKV := d.KV(key, value)
	inline, hasInline := d.InlineKV(key)
	for id, has := range map[uint32]bool{kv: hasKV, inline: hasInline} {
		if !has {
			continue
		}
		if _, ok, err := getValue(c.view.snap, postingKey(id, z.First)); err != nil || ok {
			return err
		}
	}
	c.reportDifference("block %d is not posted under %s = %q", z.First, key, value)
	return nil
}

// checkLiveRow adds a live row to the sums and looks for it in the index.
func (c *checker) checkLiveRow(row *columns.Row, open bool) error {
	c.rows++
	c.hash.addHash(c.hasher.hashRow(row))
	if row.Tombstone {
		return nil
	}
	c.shown++
	c.sums.Seqs += row.Seq
	if row.Archived && c.view.memory.archiveOf(row) == "" {
		c.reportDifference("row %d of %q has no details, and no archive has them", row.Seq, row.Record.ID)
	}
	x, ok, err := c.view.readIndex(row.Record.ID)
	if err != nil {
		c.reportDifference("the index of %q does not read: %v", row.Record.ID, err)
		return nil
	}
	if !ok || x.Seq != row.Seq || x.Hidden || x.Open != open {
		c.reportDifference("the index of %q says %+v, its row is %d", row.Record.ID, x, row.Seq)
	}
	return nil
}

func (c *checker) checkWaiting() error {
	n := 0
	err := scanPrefix(c.view.snap, []byte{tableWaiting}, func(key, value []byte) error {
		w, err := decodeWaiting(value)
		if err != nil {
			c.reportDifference("the waiting row %d does not read: %v", keySeq(key), err)
			return nil
		}
		n++
		if w.dead {
			return nil
		}
		w.row.Seq = keySeq(key)
		return c.checkLiveRow(&w.row, false)
	})
	if err == nil && n != len(c.view.memory.waiting) {
		c.reportDifference("%d rows wait on disk, %d in memory", n, len(c.view.memory.waiting))
	}
	return err
}

func (c *checker) checkOpen() error {
	return scanPrefix(c.view.snap, []byte{tableOpen}, func(key, value []byte) error {
		row, err := decodeOpenRow(keySeq(key), append([]byte(nil), value...))
		if err != nil {
			c.reportDifference("%v", err)
			return nil
		}
		return c.checkLiveRow(row, true)
	})
}

// checkIndex counts the index and looks into the entries that are more than their row.
func (c *checker) checkIndex() error {
	return scanPrefix(c.view.snap, []byte{tableIndex}, func(key, value []byte) error {
		x, err := decodeIndex(value)
		if err != nil {
			c.reportDifference("the index of %q does not read: %v", key[1:], err)
			return nil
		}
		if !x.Hidden {
			c.indexed++
		}
		if x.Deleted {
			c.hash.addHash(pairHash(key, value))
		}
		if !x.Held {
			return nil
		}
		c.held++
		return c.checkEntry(keyText(key), &x)
	})
}

func (c *checker) checkEntry(id string, x *index) error {
	e, err := c.view.Entry(id)
	if err != nil {
		c.reportDifference("the entry of %q does not read: %v", id, err)
		return nil
	}
	best := e.Best()
	if (best == nil) != x.Hidden {
		c.reportDifference("%q is shown: %v, its entry says %v", id, !x.Hidden, best != nil)
	}
	if best != nil && !x.Hidden {
		row, err := c.view.rowOf(x, "")
		if err != nil {
			return err
		}
		if !sameShown(best, row) {
			c.reportDifference("%q shows row %d, which is not what its entry says", id, x.Seq)
		}
	}
	return c.checkMarks(&e)
}

func (c *checker) checkMarks(e *record.Entry) error {
	for _, m := range []struct {
		table byte
		on    bool
		n     *uint64
	}{{tableConflict, e.Conflict(), &c.conflicts}, {tableStop, hasWaitingStop(e), &c.stops}, {tableLeft, hidesArchivedBody(e), &c.left}} {
		_, ok, err := getValue(c.view.snap, textKey(m.table, e.ID))
		if err != nil {
			return err
		}
		if ok != m.on {
			c.reportDifference("%q is in list %c: %v, its entry says %v", e.ID, m.table, ok, m.on)
		}
		if m.on {
			*m.n++
			c.sums.Marks.addHash(pairHash(textKey(m.table, e.ID), nil))
		}
	}
	return nil
}

// checkOrphans reports values that nothing leads to.
func (c *checker) checkOrphans() error {
	for _, t := range []struct {
		table byte
		want  uint64
		what  string
	}{{tableHeld, c.held, "entries"}, {tableConflict, c.conflicts, "conflicts"}, {tableStop, c.stops, "waiting stops"}, {tableLeft, c.left, "bodies without details"},
		{tableBlock, uint64(len(c.view.memory.zones)), "blocks"}} {
		n, err := c.countKeys(t.table)
		if err != nil {
			return err
		}
		if n != t.want {
			c.reportDifference("%d %s are stored, %d should be", n, t.what, t.want)
		}
	}
	return scanPrefix(c.view.snap, []byte{tablePosting}, func(key, _ []byte) error {
		first := keySeq(key[4:])
		if i, ok := findZone(c.view.memory.zones, first); !ok || c.view.memory.zones[i].First != first {
			c.reportDifference("a posting leads to block %d, which is not there", first)
		}
		return nil
	})
}

func (c *checker) countKeys(table byte) (n uint64, err error) {
	err = scanPrefix(c.view.snap, []byte{table}, func(_, _ []byte) error {
		n++
		return nil
	})
	return n, err
}

// hashedTables are those whose pairs are in the state hash as they are.
var hashedTables = [...]byte{tableHeld, tableCursor, tableQuarantine, tableGap, tableCounter, tableFact, tableDocument}

func (c *checker) checkSmallTables() error {
	for _, table := range hashedTables {
		err := scanPrefix(c.view.snap, []byte{table}, func(key, value []byte) error {
			c.hash.addHash(pairHash(key, value))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkTotals() error {
	m := c.view.memory
	if c.rows != m.Rows || c.shown != m.Shown {
		c.reportDifference("%d rows are there and %d shown, the counters say %d and %d", c.rows, c.shown, m.Rows, m.Shown)
	}
	if c.indexed != c.shown {
		c.reportDifference("the index shows %d ids, the rows are %d", c.indexed, c.shown)
	}
	if c.hash != m.Hash {
		c.reportDifference("the state hash is %v and should be %v", m.Hash, c.hash)
	}
	if c.sums.Floor, c.sums.FeedFloor = m.Floor, m.FeedFloor; c.sums != m.sums {
		c.reportDifference("the sums of the index and the lists are %+v and should be %+v", m.sums, c.sums)
	}
	counted, jobs, err := countAnomalies(c.view.snap)
	if err != nil {
		return err
	}
	if odd := counted.forView(jobs); odd != c.view.anomalies {
		c.reportDifference("odd are %+v, the counters say %+v", odd, c.view.anomalies)
	}
	if !slices.Equal(jobs.sources, c.view.sources) {
		c.reportDifference("quarantined are %+v, the counters say %+v", jobs.sources, c.view.sources)
	}
	sources, err := c.view.Counters()
	for i := range sources {
		if !sources[i].Counts.Conserved() {
			c.reportDifference("the counters of %v do not add up: %+v", sources[i].Source, sources[i].Counts)
		}
	}
	return err
}
