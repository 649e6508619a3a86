package store

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
)

// source is a run of rows in the order of their sequence numbers, of which
// blocks are made: loose rows, or the new rows of a part.
type source struct {
	rows []columns.Row
	dead []bool // of rows
	sums []Hash // of rows
	part *part
	used int
}

func (s *source) rowsLeft() int {
	if s.part != nil {
		return len(s.part.closed) - s.used
	}
	return len(s.rows) - s.used
}

// foldWaiting makes blocks of all waiting rows and, in bulk, of the parts. The waiting
// rows that the command made itself come after its parts: they were numbered
// later.
func (t *tx) foldWaiting(bulk bool) error {
	sources := t.foldSources(bulk)
	total := 0
	for _, s := range sources {
		total += s.rowsLeft()
	}
	blocks := (total + columns.MaxRows - 1) / columns.MaxRows
	for i := range blocks {
		n := total / blocks
		if i < total%blocks {
			n++
		}
		if err := t.foldBlock(sources, n); err != nil {
			return err
		}
	}
	return t.clearWaiting()
}

func (t *tx) foldSources(bulk bool) []*source {
	before := len(t.m.waiting)
	if bulk && len(t.parts) > 0 {
		before, _ = waitingAt(t.m.waiting, t.parts[0].first)
	}
	list := []*source{waitingSource(t.m.waiting[:before])}
	if bulk {
		for _, p := range t.parts {
			list = append(list, &source{part: p})
		}
	}
	return append(list, waitingSource(t.m.waiting[before:]))
}

func waitingSource(ws []*waitingRow) *source {
	s := &source{rows: make([]columns.Row, len(ws)), dead: make([]bool, len(ws)), sums: make([]Hash, len(ws))}
	for i, w := range ws {
		s.rows[i], s.dead[i], s.sums[i] = w.row, w.dead, w.sum
	}
	return s
}

func (t *tx) clearWaiting() error {
	for _, w := range t.m.waiting {
		if err := t.b.Delete(seqKey(tableWaiting, w.row.Seq), nil); err != nil {
			return err
		}
	}
	t.m.waiting, t.ownWaiting = nil, true
	return nil
}

// foldBlock makes a block of the next n rows of the sources.
func (t *tx) foldBlock(sources []*source, n int) error {
	var parts []columns.Part
	var dead []int
	var sum Hash
	at := 0
	for _, s := range sources {
		k := min(n-at, s.rowsLeft())
		if k == 0 {
			continue
		}
		if s.part == nil {
			dead = s.appendDead(dead, k, at)
		}
		s.addSums(&sum, k)
		parts = append(parts, s.nextPart(k, t))
		at += k
	}
	return t.writeBlock(parts, dead, sum)
}

// addSums adds the next k rows to the sum, except the superseded ones.
func (s *source) addSums(sum *Hash, k int) {
	for i := s.used; i < s.used+k; i++ {
		switch {
		case s.part != nil:
			sum.addHash(s.part.sums[i])
		case !s.dead[i]:
			sum.addHash(s.sums[i])
		}
	}
}

func (s *source) appendDead(dead []int, k, at int) []int {
	for i := range k {
		if s.dead[s.used+i] {
			dead = append(dead, at+i)
		}
	}
	return dead
}

// nextPart returns the next k rows, which are used then.
func (s *source) nextPart(k int, t *tx) columns.Part {
	from := s.used
	s.used += k
	if s.part == nil {
		return columns.Part{Rows: s.rows[from:s.used]}
	}
	first := s.part.first + uint64(from)
	if s.part.batch == nil {
		return columns.Part{Rows: s.part.looseRows(from, s.used)}
	}
	return columns.Part{Batch: s.part.batch, Skip: s.part.skippedPositions(from, s.used), FirstSeq: first,
		Received: t.now, Changed: t.now, Observed: s.part.observed}
}

// skippedPositions returns the positions of the batch that are not closed[from:to].
func (p *part) skippedPositions(from, to int) []int {
	n := p.batch.Len()
	if to-from == n {
		return nil
	}
	skip := make([]int, 0, n-(to-from))
	keep := p.closed[from:to]
	for i := range n {
		if len(keep) > 0 && keep[0] == int32(i) {
			keep = keep[1:]
			continue
		}
		skip = append(skip, i)
	}
	return skip
}

// looseRows returns rows that have their numbers already.
func (p *part) looseRows(from, to int) []columns.Row {
	rows := make([]columns.Row, 0, to-from)
	for _, i := range p.closed[from:to] {
		rows = append(rows, p.rows[i])
	}
	return rows
}

// writeBlock encodes a block and puts it, its zone, its postings and what is new
// in the dictionary into the batch. dead are the positions of superseded rows.
func (t *tx) writeBlock(parts []columns.Part, dead []int, sum Hash) error {
	enc, err := columns.EncodeBlock(t.m.dict, parts...)
	if err != nil {
		return fmt.Errorf("block: %w", err)
	}
	z := newZone(enc.Header, len(enc.Data))
	z.Dead, z.Sum = len(dead), sum
	if len(dead) > 0 {
		t.masks[z.First] = newMask(z.Rows, dead)
	}
	t.cloneZones()
	t.m.zones = append(t.m.zones, z)
	return t.storeBlock(z, enc)
}

// storeBlock writes what belongs to a block under z.First, which a block keeps
// for as long as it lives.
func (t *tx) storeBlock(z *zone, enc *columns.Encoded) error {
	if err := t.b.Set(seqKey(tableBlock, z.First), enc.Data, nil); err != nil {
		return err
	}
	t.markZoneDirty(z.First)
	for _, kv := range enc.KVs {
		if err := t.b.Set(postingKey(kv, z.First), nil, nil); err != nil {
			return err
		}
	}
	for i := range enc.Entries {
		if err := t.b.Set(dictKey(&enc.Entries[i]), enc.Entries[i].Data, nil); err != nil {
			return err
		}
	}
	return t.b.Set(dictStateKey, enc.State, nil)
}

func (t *tx) markZoneDirty(first uint64) {
	if !slices.Contains(t.zonesToWrite, first) {
		t.zonesToWrite = append(t.zonesToWrite, first)
	}
}

func newMask(rows int, set []int) columns.Mask {
	m := columns.NewMask(rows)
	for _, i := range set {
		m.Set(i)
	}
	return m
}

// finishMasks writes the bitmaps of superseded rows and the zones that changed.
func (t *tx) finishMasks() error {
	for _, first := range sortedKeys(t.masks) {
		if err := t.writeMask(first, t.masks[first]); err != nil {
			return err
		}
		t.markZoneDirty(first)
	}
	slices.Sort(t.zonesToWrite)
	for _, first := range t.zonesToWrite {
		i, ok := findZone(t.m.zones, first)
		if !ok || t.m.zones[i].First != first {
			continue // compacted away
		}
		if err := t.b.Set(seqKey(tableZone, first), encodeValue(zoneFormat, t.m.zones[i]), nil); err != nil {
			return err
		}
		if err := t.b.Set(seqKey(tableSum, first), encodeValue(sumsFormat, &t.m.zones[i].Sum), nil); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) writeMask(first uint64, m columns.Mask) error {
	if m == nil {
		return t.b.Delete(seqKey(tableDead, first), nil)
	}
	b := make([]byte, 0, 8*len(m))
	for _, w := range m {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return t.b.Set(seqKey(tableDead, first), b, nil)
}
