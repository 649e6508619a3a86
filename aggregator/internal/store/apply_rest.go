package store

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
)

func (c *QuarantineDropCommand) apply(t *tx) (any, error) {
	var result DeleteResult
	for i := range c.Keys {
		key := quarantineKey(c.Keys[i].Source, c.Keys[i].ID)
		old, err := t.get(key)
		if err != nil {
			return nil, err
		}
		if old == nil {
			continue
		}
		result.Changed++
		if err := t.put(key, nil); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (c *SetClusterCommand) apply(t *tx) (any, error) {
	if t.m.Cluster == "" {
		t.m.Cluster = c.ID
	}
	return t.m.Cluster, nil
}

func (c *SetVersionCommand) apply(t *tx) (any, error) {
	t.m.Version = max(t.m.Version, c.Version)
	return t.m.Version, nil
}

func (c *HashCheckCommand) apply(t *tx) (any, error) {
	if c.quiet {
		return nil, nil
	}
	t.hashed = true
	return func() any { return HashResult{Index: t.index, Hash: t.m.Hash} }, nil
}

// apply of a group is never called: the store takes its parts one by one.
func (c *GroupCommand) apply(*tx) (any, error) {
	return nil, fmt.Errorf("%w: a group within a group", ErrCommand)
}

func (c *DocumentCommand) apply(t *tx) (any, error) {
	result := DocumentResult{Index: t.index}
	for i := range c.If {
		v, err := t.get(documentKey(c.If[i].Space, c.If[i].Key))
		if err != nil {
			return nil, err
		}
		if (v == nil) != (c.If[i].Value == nil) || !bytes.Equal(v, c.If[i].Value) {
			return result, nil
		}
	}
	for i := range c.Sets {
		if err := t.put(documentKey(c.Sets[i].Space, c.Sets[i].Key), c.Sets[i].Value); err != nil {
			return nil, err
		}
	}
	result.Done = true
	return result, nil
}

func (c *CompactBlockCommand) apply(t *tx) (any, error) {
	var result DeleteResult
	blocks := slices.Clone(c.Blocks)
	slices.Sort(blocks)
	for _, first := range slices.Compact(blocks) {
		dropped, err := t.compactBlock(first)
		if err != nil {
			return nil, fmt.Errorf("compact block %d: %w", first, err)
		}
		result.Changed += dropped
	}
	return result, nil
}

// compactBlock rewrites a block without its superseded rows and returns how many
// they were. The rows keep their numbers and the block its key.
func (t *tx) compactBlock(first uint64) (int, error) {
	i, ok := findZone(t.m.zones, first)
	if !ok || t.m.zones[i].First != first || t.m.zones[i].Dead == 0 {
		return 0, nil
	}
	z := t.m.zones[i]
	live, err := t.emptyBlock(z)
	if err != nil {
		return 0, err
	}
	t.s.blocks.drop(first)
	t.cloneZones()
	if len(live) == 0 {
		t.m.zones = slices.Delete(t.m.zones, i, i+1)
		return z.Dead, t.dropBlock(first)
	}
	enc, err := columns.EncodeBlock(t.m.dict, columns.Part{Rows: live})
	if err != nil {
		return 0, err
	}
	smaller := newZone(enc.Header, len(enc.Data))
	smaller.First, smaller.Sum = first, z.Sum
	t.m.zones[i] = smaller
	return z.Dead, t.storeBlock(smaller, enc)
}

// emptyBlock takes the block's postings and bitmap away and returns its rows
// that are not superseded.
func (t *tx) emptyBlock(z *zone) ([]columns.Row, error) {
	block, err := t.s.blocks.get(t.r, z)
	if err != nil {
		return nil, err
	}
	mask, err := readMask(t.r, z)
	if err != nil {
		return nil, err
	}
	t.masks[z.First] = nil
	var live []columns.Row
	for i := range block.Len() {
		row, err := block.Row(i)
		if err != nil {
			return nil, err
		}
		if !mask.Has(i) {
			live = append(live, row)
		}
		if err := t.dropPostings(z.First, &row); err != nil {
			return nil, err
		}
	}
	return live, nil
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
