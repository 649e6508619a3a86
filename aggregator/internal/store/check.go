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
	for _, part := range []func() error{c.blocks, c.waiting, c.open, c.ids, c.orphans, c.smallTables, c.totals} {
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

func (c *checker) differ(format string, args ...any) {
	if len(c.found) < maxDifferences {
		c.found = append(c.found, fmt.Sprintf(format, args...))
	}
}

func (c *checker) blocks() error {
	for _, z := range c.view.memory.zones {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.block(z); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) block(z *zone) error {
	b, err := readBlock(c.view.snap, z, c.view.blocks.reader)
	if err != nil {
		c.differ("block %d does not read: %v", z.First, err)
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
		c.differ("block %d: its zone is %+v and should be %+v", z.First, *z, *want)
	}
	pairs := map[[2]string]bool{}
	for row, err := range b.Rows() {
		if err != nil {
			c.differ("block %d does not read: %v", z.First, err)
			return nil
		}
		if err := c.blockRow(z, &row, mask, b, pairs); err != nil {
			return err
		}
	}
	sum := c.hash
	if sum.sub(before); sum != z.Sum {
		c.differ("block %d: its rows add up to %v and not to %v", z.First, sum, z.Sum)
	}
	return nil
}

func (c *checker) blockRow(z *zone, row *columns.Row, mask columns.Mask, b *columns.Block, pairs map[[2]string]bool) error {
	at, _, err := b.Find(row.Seq)
	if err != nil {
		return err
	}
	if !row.Tombstone {
		if err := c.postings(z, row, pairs); err != nil {
			return err
		}
	}
	if mask.Has(at) {
		return nil
	}
	return c.row(row, false)
}

// postings looks for one posting of each pair of the block's rows.
func (c *checker) postings(z *zone, row *columns.Row, known map[[2]string]bool) error {
	for i := range row.Record.Meta {
		m := &row.Record.Meta[i]
		for _, value := range m.Values {
			if known[[2]string{m.Key, value}] {
				continue
			}
			known[[2]string{m.Key, value}] = true
			if err := c.posting(z, m.Key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) posting(z *zone, key, value string) error {
	d := c.view.memory.dict
	kv, hasKV := d.KV(key, value)
	inline, hasInline := d.InlineKV(key)
	for id, has := range map[uint32]bool{kv: hasKV, inline: hasInline} {
		if !has {
			continue
		}
		if _, ok, err := get(c.view.snap, postingKey(id, z.First)); err != nil || ok {
			return err
		}
	}
	c.differ("block %d is not posted under %s = %q", z.First, key, value)
	return nil
}

// row takes a live row into the sums and looks for it in the index.
func (c *checker) row(row *columns.Row, open bool) error {
	c.rows++
	c.hash.add(c.hasher.row(row))
	if row.Tombstone {
		return nil
	}
	c.shown++
	c.sums.Seqs += row.Seq
	if row.Archived && c.view.memory.archiveOf(row) == "" {
		c.differ("row %d of %q has no details, and no archive has them", row.Seq, row.Record.ID)
	}
	x, ok, err := c.view.index(row.Record.ID)
	if err != nil {
		c.differ("the index of %q does not read: %v", row.Record.ID, err)
		return nil
	}
	if !ok || x.Seq != row.Seq || x.Hidden || x.Open != open {
		c.differ("the index of %q says %+v, its row is %d", row.Record.ID, x, row.Seq)
	}
	return nil
}

func (c *checker) waiting() error {
	n := 0
	err := scan(c.view.snap, []byte{tableWaiting}, func(key, value []byte) error {
		w, err := decodeWaiting(value)
		if err != nil {
			c.differ("the waiting row %d does not read: %v", keySeq(key), err)
			return nil
		}
		n++
		if w.dead {
			return nil
		}
		w.row.Seq = keySeq(key)
		return c.row(&w.row, false)
	})
	if err == nil && n != len(c.view.memory.waiting) {
		c.differ("%d rows wait on disk, %d in memory", n, len(c.view.memory.waiting))
	}
	return err
}

func (c *checker) open() error {
	return scan(c.view.snap, []byte{tableOpen}, func(key, value []byte) error {
		row, err := decodeOpen(keySeq(key), append([]byte(nil), value...))
		if err != nil {
			c.differ("%v", err)
			return nil
		}
		return c.row(row, true)
	})
}

// ids counts the index and looks into the entries that are more than their row.
func (c *checker) ids() error {
	return scan(c.view.snap, []byte{tableIndex}, func(key, value []byte) error {
		x, err := decodeIndex(value)
		if err != nil {
			c.differ("the index of %q does not read: %v", key[1:], err)
			return nil
		}
		if !x.Hidden {
			c.indexed++
		}
		if x.Deleted {
			c.hash.add(pairHash(key, value))
		}
		if !x.Held {
			return nil
		}
		c.held++
		return c.entry(keyText(key), &x)
	})
}

func (c *checker) entry(id string, x *index) error {
	e, err := c.view.Entry(id)
	if err != nil {
		c.differ("the entry of %q does not read: %v", id, err)
		return nil
	}
	best := e.Best()
	if (best == nil) != x.Hidden {
		c.differ("%q is shown: %v, its entry says %v", id, !x.Hidden, best != nil)
	}
	if best != nil && !x.Hidden {
		row, err := c.view.rowOf(x, "")
		if err != nil {
			return err
		}
		if !sameShown(best, row) {
			c.differ("%q shows row %d, which is not what its entry says", id, x.Seq)
		}
	}
	return c.marks(&e)
}

func (c *checker) marks(e *record.Entry) error {
	for _, m := range []struct {
		table byte
		on    bool
		n     *uint64
	}{{tableConflict, e.Conflict(), &c.conflicts}, {tableStop, waits(e), &c.stops}, {tableLeft, leavesBehind(e), &c.left}} {
		_, ok, err := get(c.view.snap, textKey(m.table, e.ID))
		if err != nil {
			return err
		}
		if ok != m.on {
			c.differ("%q is in list %c: %v, its entry says %v", e.ID, m.table, ok, m.on)
		}
		if m.on {
			*m.n++
			c.sums.Marks.add(pairHash(textKey(m.table, e.ID), nil))
		}
	}
	return nil
}

// orphans finds values that nothing leads to.
func (c *checker) orphans() error {
	for _, t := range []struct {
		table byte
		want  uint64
		what  string
	}{{tableHeld, c.held, "entries"}, {tableConflict, c.conflicts, "conflicts"}, {tableStop, c.stops, "waiting stops"}, {tableLeft, c.left, "bodies without details"},
		{tableBlock, uint64(len(c.view.memory.zones)), "blocks"}} {
		n, err := c.count(t.table)
		if err != nil {
			return err
		}
		if n != t.want {
			c.differ("%d %s are stored, %d should be", n, t.what, t.want)
		}
	}
	return scan(c.view.snap, []byte{tablePosting}, func(key, _ []byte) error {
		first := keySeq(key[4:])
		if i, ok := findZone(c.view.memory.zones, first); !ok || c.view.memory.zones[i].First != first {
			c.differ("a posting leads to block %d, which is not there", first)
		}
		return nil
	})
}

func (c *checker) count(table byte) (n uint64, err error) {
	err = scan(c.view.snap, []byte{table}, func(_, _ []byte) error {
		n++
		return nil
	})
	return n, err
}

// hashedTables are those whose pairs are in the state hash as they are.
var hashedTables = [...]byte{tableHeld, tableCursor, tableQuarantine, tableGap, tableCounter, tableFact, tableDocument}

func (c *checker) smallTables() error {
	for _, table := range hashedTables {
		err := scan(c.view.snap, []byte{table}, func(key, value []byte) error {
			c.hash.add(pairHash(key, value))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) totals() error {
	m := c.view.memory
	if c.rows != m.Rows || c.shown != m.Shown {
		c.differ("%d rows are there and %d shown, the counters say %d and %d", c.rows, c.shown, m.Rows, m.Shown)
	}
	if c.indexed != c.shown {
		c.differ("the index shows %d ids, the rows are %d", c.indexed, c.shown)
	}
	if c.hash != m.Hash {
		c.differ("the state hash is %v and should be %v", m.Hash, c.hash)
	}
	if c.sums.Floor, c.sums.FeedFloor = m.Floor, m.FeedFloor; c.sums != m.sums {
		c.differ("the sums of the index and the lists are %+v and should be %+v", m.sums, c.sums)
	}
	counted, jobs, err := countOdd(c.view.snap)
	if err != nil {
		return err
	}
	if odd := counted.shown(jobs); odd != c.view.odd {
		c.differ("odd are %+v, the counters say %+v", odd, c.view.odd)
	}
	if !slices.Equal(jobs.sources, c.view.sources) {
		c.differ("quarantined are %+v, the counters say %+v", jobs.sources, c.view.sources)
	}
	sources, err := c.view.Counters()
	for i := range sources {
		if !sources[i].Counts.Conserved() {
			c.differ("the counters of %v do not add up: %+v", sources[i].Source, sources[i].Counts)
		}
	}
	return err
}
