package columns

import (
	"encoding/binary"
	"fmt"
)

// counts is what the rule of admission counts; see DESIGN.md.
type counts struct {
	rows   [numTables]uint64 // uses of the table's entries
	uses   []uint64          // by key: uses of its values
	values []uint64          // by key: values that have a number; not stored
}

func (c *counts) countPair(data string) {
	p, _ := parsePair(data)
	c.growTo(p.key)
	if p.kind == pairValue {
		c.values[p.key]++
	}
}

func (c *counts) growTo(key uint32) {
	for uint32(len(c.values)) <= key {
		c.values = append(c.values, 0)
	}
	for uint32(len(c.uses)) <= key {
		c.uses = append(c.uses, 0)
	}
}

func (c *counts) appendCounts(b []byte) []byte {
	b = append(b, format)
	for _, n := range c.rows {
		b = binary.AppendUvarint(b, n)
	}
	uses := c.uses
	for len(uses) > 0 && uses[len(uses)-1] == 0 {
		uses = uses[:len(uses)-1] // nodes that restarted have fewer
	}
	for _, n := range uses {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func (c *counts) loadCounts(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if data[0] != format {
		return fmt.Errorf("state of the dictionary: %w %d", ErrFormat, data[0])
	}
	r := reader{b: data[1:]}
	for t := range c.rows {
		c.rows[t] = r.readUvarint()
	}
	c.uses = c.uses[:0]
	for r.bytesLeft() > 0 {
		c.uses = append(c.uses, r.readUvarint())
	}
	c.growTo(uint32(max(len(c.values), len(c.uses), 1) - 1))
	if r.bad {
		return corruptError("state of the dictionary")
	}
	return nil
}
