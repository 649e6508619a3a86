package store

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
)

// smallRows is how many live rows a block has at most that is merged with its
// neighbours.
const smallRows = columns.MaxRows / 4

func (z *zone) liveRows() int { return z.Rows - z.Dead }

func (c *CompactBlockCommand) applyTo(t *tx) (any, error) {
	var result DeleteResult
	blocks := slices.Clone(c.Blocks)
	slices.Sort(blocks)
	for blocks = slices.Compact(blocks); len(blocks) > 0; {
		group, err := t.compactionGroup(blocks, &c.Of)
		dropped := 0
		if err == nil {
			dropped, err = t.compactBlocks(group, &c.Of)
		}
		if err != nil {
			return nil, fmt.Errorf("compact block %d: %w", blocks[0], err)
		}
		result.Changed += dropped
		blocks = blocks[max(1, len(group)):]
	}
	t.recordDrop(result.Changed)
	return result, nil
}

// compactionGroup returns the first of the named blocks, with those that follow it without a
// gap as far as all are small and make one block together; none for a name without
// a block.
func (t *tx) compactionGroup(names []uint64, of *Superseded) (group []*compacted, err error) {
	i, ok := findZone(t.m.zones, names[0])
	if !ok || t.m.zones[i].First != names[0] {
		return nil, nil
	}
	rows := 0
	for n := 0; n < len(names) && i+n < len(t.m.zones) && t.m.zones[i+n].First == names[n]; n++ {
		next, err := t.planCompaction(t.m.zones[i+n], of)
		if err != nil {
			return nil, err
		}
		if n > 0 && (next.left > smallRows || rows+next.left > columns.MaxRows) {
			break
		}
		group, rows = append(group, next), rows+next.left
		if next.left > smallRows {
			break
		}
	}
	return group, nil
}

// compacted is a block and the rows that it loses.
type compacted struct {
	*zone

	dead, drop columns.Mask // of the dead ones drop goes
	left       int
}

func (t *tx) planCompaction(z *zone, of *Superseded) (*compacted, error) {
	c := &compacted{zone: z, left: z.liveRows()}
	if z.Dead == 0 {
		c.dead = columns.NewMask(z.Rows)
		c.drop = c.dead
		return c, nil
	}
	var err error
	if c.dead, err = readMask(t.r, z); err != nil {
		return nil, err
	}
	block, err := t.s.blocks.cachedBlock(t.r, z)
	if err != nil {
		return nil, err
	}
	if c.drop, err = of.droppableMask(block, c.dead); err != nil {
		return nil, err
	}
	c.left = z.Rows - c.drop.Count()
	return c, nil
}

// compactBlocks rewrites blocks without the rows that they lose, as one block that
// has the name of the first, and returns how many rows were dropped. The rows keep
// their numbers.
func (t *tx) compactBlocks(group []*compacted, of *Superseded) (dropped int, err error) {
	if len(group) == 0 || len(group) == 1 && group[0].left == group[0].Rows {
		return 0, nil
	}
	var rows []columns.Row
	var dead []int
	var sum Hash
	for _, z := range group {
		if rows, dead, err = t.dismantleBlock(z, of, rows, dead); err != nil {
			return 0, err
		}
		dropped += z.Rows - z.left
		sum.addHash(z.Sum)
	}
	t.cloneZones()
	first := group[0].First
	i, _ := findZone(t.m.zones, first)
	for _, z := range group {
		t.s.blocks.evict(z.First)
		if err := t.dropBlock(z.First); err != nil {
			return 0, err
		}
	}
	t.m.zones = slices.Delete(t.m.zones, i, i+len(group))
	if len(rows) == 0 {
		return dropped, nil
	}
	enc, err := columns.EncodeBlock(t.m.dict, columns.Part{Rows: rows})
	if err != nil {
		return 0, err
	}
	smaller := newZone(enc.Header, len(enc.Data))
	smaller.First, smaller.Sum, smaller.Dead = first, sum, len(dead)
	if len(dead) > 0 {
		t.masks[first] = newMask(smaller.Rows, dead)
	}
	t.m.zones = slices.Insert(t.m.zones, i, smaller)
	return dropped, t.storeBlock(smaller, enc)
}

// dismantleBlock takes the block's postings and bitmap away and appends the rows that
// are left, and which of them are superseded.
func (t *tx) dismantleBlock(z *compacted, of *Superseded, rows []columns.Row, dead []int) ([]columns.Row, []int, error) {
	block, err := t.s.blocks.cachedBlock(t.r, z.zone)
	if err != nil {
		return nil, nil, err
	}
	last, err := lastDead(block, z.drop)
	if err != nil {
		return nil, nil, err
	}
	t.m.Floor = max(t.m.Floor, last)
	t.masks[z.First] = nil
	for i := range block.Len() {
		row, err := block.Row(i)
		if err != nil {
			return nil, nil, err
		}
		if err := t.dropPostings(z.First, &row); err != nil {
			return nil, nil, err
		}
		if z.drop.Has(i) {
			if err := t.raiseFeedFloor(row.Record.ID, of); err != nil {
				return nil, nil, err
			}
			continue
		}
		if z.dead.Has(i) {
			dead = append(dead, len(rows))
		}
		rows = append(rows, row)
	}
	return rows, dead, nil
}

func (t *tx) dropPostings(first uint64, row *columns.Row) error {
	for _, kv := range rowKVs(t.m.dict, row) {
		if err := t.b.Delete(postingKey(kv, first), nil); err != nil {
			return err
		}
	}
	return nil
}

// rowKVs returns every pair and marker that a posting of the row may have.
func rowKVs(d *columns.Dict, row *columns.Row) (kvs []uint32) {
	for i := range row.Record.Meta {
		m := &row.Record.Meta[i]
		if kv, ok := d.InlineKV(m.Key); ok {
			kvs = append(kvs, kv)
		}
		if kv, ok := d.EmptyKV(m.Key); ok && len(m.Values) == 0 {
			kvs = append(kvs, kv)
		}
		for _, value := range m.Values {
			if kv, ok := d.KV(m.Key, value); ok {
				kvs = append(kvs, kv)
			}
		}
	}
	return kvs
}

func (t *tx) dropBlock(first uint64) error {
	for _, table := range []byte{tableZone, tableSum, tableBlock} {
		if err := t.b.Delete(seqKey(table, first), nil); err != nil {
			return err
		}
	}
	return nil
}

// Small returns the names of the blocks that are small and follow another such
// block, or are followed by one, in the order of the feed: [CompactBlockCommand]
// merges them.
func (v *View) Small() (list []uint64) {
	zones := v.memory.zones
	small := func(i int) bool { return i >= 0 && i < len(zones) && zones[i].liveRows() <= smallRows }
	for i := range zones {
		if small(i) && (small(i-1) || small(i+1)) {
			list = append(list, zones[i].First)
		}
	}
	return list
}
