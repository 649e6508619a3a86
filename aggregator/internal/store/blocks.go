package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/cockroachdb/pebble/v2"
)

// applierBlocks is how many decoded blocks the applier keeps: agents send what
// they have sent before in order.
const applierBlocks = 16

// blockCache keeps the last few decoded blocks, and the reader of all blocks of
// its owner. It belongs to one goroutine.
type blockCache struct {
	reader *columns.Reader
	max    int
	held   map[uint64]*columns.Block
	order  []uint64 // oldest first
	once   uint64   // the block of which one row was read last, without keeping it
}

func newBlockCache(dict *columns.Dict, max int) *blockCache {
	return &blockCache{reader: columns.NewReader(dict), max: max, held: map[uint64]*columns.Block{}}
}

func (c *blockCache) cachedBlock(r pebble.Reader, z *zone) (*columns.Block, error) {
	if b, ok := c.held[z.First]; ok {
		return b, nil
	}
	b, err := readBlock(r, z, c.reader)
	if err != nil {
		return nil, err
	}
	if len(c.order) >= c.max {
		c.evict(c.order[0])
	}
	c.held[z.First] = b
	c.order = append(c.order, z.First)
	return b, nil
}

// findRow returns the row of that number, nil for none. id is its record id; "": it is not known. A block is kept when it is asked for
// again at once: those who look up one row leave no memory behind.
func (c *blockCache) findRow(r pebble.Reader, z *zone, seq uint64, id string) (*columns.Row, error) {
	if c.held[z.First] != nil || c.once == z.First {
		block, err := c.cachedBlock(r, z)
		if err != nil {
			return nil, err
		}
		return blockRow(block, seq)
	}
	c.once = z.First
	row, found := &columns.Row{}, false
	ok, err := withValue(r, seqKey(tableBlock, z.First), func(data []byte) (err error) {
		found, err = c.reader.Pick(row, data, seq, id)
		return err
	})
	switch {
	case err != nil && ok:
		return nil, fmt.Errorf("%w: block %d: %w", ErrCorrupt, z.First, err)
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%w: block %d is missing", ErrCorrupt, z.First)
	case !found:
		return nil, nil
	}
	return row, nil
}

func (c *blockCache) evict(first uint64) {
	delete(c.held, first)
	c.order = slices.DeleteFunc(c.order, func(v uint64) bool { return v == first })
}

func readBlock(r pebble.Reader, z *zone, reader *columns.Reader) (*columns.Block, error) {
	data, ok, err := getValue(r, seqKey(tableBlock, z.First))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: block %d is missing", ErrCorrupt, z.First)
	}
	b, err := reader.Block(data)
	if err != nil {
		return nil, fmt.Errorf("%w: block %d: %w", ErrCorrupt, z.First, err)
	}
	return b, nil
}

// blockRow returns the row of that number; nil for none.
func blockRow(b *columns.Block, seq uint64) (*columns.Row, error) {
	row := &columns.Row{}
	ok, err := b.PickSeq(row, seq)
	if err != nil {
		return nil, fmt.Errorf("%w: row %d: %w", ErrCorrupt, seq, err)
	}
	if !ok {
		return nil, nil
	}
	return row, nil
}

// readMask returns the superseded rows of a block as a mask of the caller's own.
func readMask(r pebble.Reader, z *zone) (columns.Mask, error) {
	m := newMask(z.Rows, nil)
	b, ok, err := getValue(r, seqKey(tableDead, z.First))
	if err != nil || !ok {
		return m, err
	}
	if len(b) != 8*len(m) {
		return nil, fmt.Errorf("%w: bitmap of block %d", ErrCorrupt, z.First)
	}
	for i := range m {
		m[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return m, nil
}

func readOpenRow(r pebble.Reader, seq uint64) (*columns.Row, error) {
	b, ok, err := getValue(r, seqKey(tableOpen, seq))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: open row %d is missing", ErrCorrupt, seq)
	}
	return decodeOpenRow(seq, b)
}

// decodeOpenRow keeps b.
func decodeOpenRow(seq uint64, b []byte) (*columns.Row, error) {
	row, err := columns.DecodeRow(b)
	if err != nil {
		return nil, fmt.Errorf("%w: open row %d: %w", ErrCorrupt, seq, err)
	}
	row.Seq = seq
	return &row, nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
