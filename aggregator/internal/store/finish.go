package store

import (
	"encoding/binary"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

const (
	// foldRows is how many waiting rows make a block.
	foldRows = columns.MaxRows
	// bulkRows is how many closed rows of one command go straight into blocks,
	// together with those that wait.
	bulkRows = 1000
)

// finishRows gives the command's rows their sequence numbers and puts them where
// they belong. What it does depends on numbers of rows alone, so that all nodes
// do the same.
func (t *tx) finishRows() error {
	for _, sl := range t.order {
		if err := t.chooseSuccessor(sl); err != nil {
			return err
		}
	}
	closed := t.countClosedFresh()
	bulk := closed+t.countClosedNext() >= bulkRows
	if err := t.placeFresh(bulk); err != nil {
		return err
	}
	if err := t.placeNext(); err != nil {
		return err
	}
	if bulk || len(t.m.waiting) >= foldRows {
		if err := t.foldWaiting(bulk); err != nil {
			return err
		}
	}
	return t.writeSlots()
}

func (t *tx) writeSlots() error {
	for _, sl := range t.order {
		if sl.same {
			continue
		}
		if err := t.writeSlot(sl); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) countClosedFresh() (n int) {
	for _, p := range t.parts {
		for _, i := range p.taken {
			if !p.isOpenAt(int(i)) {
				n++
			}
		}
	}
	return n
}

func (t *tx) countClosedNext() (n int) {
	for _, sl := range t.order {
		if sl.next != nil && (sl.tombstone != nil || !isOpen(sl.next)) {
			n++
		}
	}
	return n
}

// placeFresh numbers the rows whose ids are new: the closed ones first, in the
// order of their parts, then the open ones. In bulk the closed ones stay where
// they are, for foldWaiting to take them; else they wait as rows.
func (t *tx) placeFresh(bulk bool) error {
	known := newSharedHashes(&t.hasher)
	for _, p := range t.parts {
		p.first = t.m.Next
		p.closed, p.sums = p.closed[:0], p.sums[:0]
		for _, i := range p.taken {
			if p.isOpenAt(int(i)) {
				continue
			}
			p.closed = append(p.closed, i)
			if err := t.placeClosed(p, int(i), bulk, known); err != nil {
				return err
			}
		}
	}
	if err := t.indexFresh(); err != nil {
		return err
	}
	return t.placeFreshOpen()
}

func (t *tx) placeClosed(p *part, i int, bulk bool, known *sharedHashes) error {
	row := &t.own
	if p.batch == nil {
		row = &p.rows[i]
	} else {
		p.batch.ReadOwn(row, i)
		p.setObserved(row, i)
	}
	t.assignSeq(row)
	row.Received, row.Changed = t.now, t.now
	var h Hash
	if p.batch == nil {
		h = known.hashRow(row)
	} else {
		h = p.facts.rowHash(row, i)
	}
	t.m.Hash.addHash(h)
	t.m.Shown++
	p.sums = append(p.sums, h)
	t.plain = append(t.plain, plainIndex{row.Record.ID, row.Seq})
	if bulk {
		return nil
	}
	whole := p.rowAt(i)
	whole.Seq, whole.Received, whole.Changed = row.Seq, row.Received, row.Changed
	return t.addWaiting(&whole, h)
}

// assignSeq gives the row the next sequence number and counts it. Its hash is the
// caller's affair.
func (t *tx) assignSeq(row *columns.Row) {
	row.Seq = t.m.Next
	t.m.Next++
	t.m.Rows++
}

// indexFresh writes the index of the new rows in the order of their ids: the
// memtable takes sorted keys in half the time.
func (t *tx) indexFresh() error {
	sortByID(t.plain)
	var value [binary.MaxVarintLen64]byte
	for _, x := range t.plain {
		t.m.Seqs += x.seq
		v := appendPlainIndex(value[:0], x.seq)
		op := t.b.SetDeferred(1+len(x.id), len(v))
		op.Key[0] = tableIndex
		copy(op.Key[1:], x.id)
		copy(op.Value, v)
		if err := op.Finish(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) placeFreshOpen() error {
	for _, p := range t.parts {
		for _, i := range p.taken {
			if !p.isOpenAt(int(i)) {
				continue
			}
			if err := t.placeOpenRow(p.rowAt(int(i))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tx) placeOpenRow(row columns.Row) error {
	t.assignSeq(&row)
	row.Received, row.Changed = t.now, t.now
	t.m.Hash.addHash(t.hasher.hashRow(&row))
	t.m.Shown++
	x := index{Seq: row.Seq, Open: true}
	t.m.addIndex(&x)
	if err := t.b.Set(textKey(tableIndex, row.Record.ID), x.encodeIndex(), nil); err != nil {
		return err
	}
	return t.writeOpen(&row)
}

func (t *tx) writeOpen(row *columns.Row) error {
	return t.b.Set(seqKey(tableOpen, row.Seq), columns.AppendRow(nil, row), nil)
}

// placeNext numbers the rows that take the place of others.
func (t *tx) placeNext() error {
	for _, sl := range t.order {
		for _, row := range []*columns.Row{sl.tombstone, sl.next} {
			if row == nil {
				continue
			}
			if err := t.placeRow(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tx) placeRow(row *columns.Row) error {
	t.assignSeq(row)
	h := t.hasher.hashRow(row)
	t.m.Hash.addHash(h)
	if isOpen(row) {
		return t.writeOpen(row)
	}
	return t.addWaiting(row, h)
}

// addWaiting puts a closed row among the waiting ones. The row is copied: it may be a
// view of the command.
func (t *tx) addWaiting(row *columns.Row, sum Hash) error {
	w := &waitingRow{row: *row}
	value := w.encodeWaiting()
	copied, err := decodeWaiting(value)
	if err != nil {
		return err
	}
	copied.row.Seq, copied.sum = row.Seq, sum
	t.cloneWaiting()
	t.m.waiting = append(t.m.waiting, copied)
	return t.b.Set(seqKey(tableWaiting, row.Seq), value, nil)
}

// cloneWaiting makes the list of waiting rows the command's own.
func (t *tx) cloneWaiting() {
	if !t.ownWaiting {
		t.m.waiting, t.ownWaiting = slices.Clone(t.m.waiting), true
	}
}

func (t *tx) cloneZones() {
	if !t.ownZones {
		t.m.zones, t.ownZones = slices.Clone(t.m.zones), true
	}
}

// sharedHashes remembers the hashes of what many rows of a batch share, by the
// identity of the slices that a batch gives to all of them.
type sharedHashes struct {
	hasher *rowHasher
	metas  map[*record.MetaEntry]uint64
	origin record.Origin
	last   uint64
	has    bool

	amounts []int64
}

func newSharedHashes(h *rowHasher) *sharedHashes {
	return &sharedHashes{hasher: h, metas: map[*record.MetaEntry]uint64{}}
}

func (s *sharedHashes) hashRow(r *columns.Row) Hash {
	if !s.has || s.origin != r.Origin {
		s.origin, s.last, s.has = r.Origin, s.hasher.hashOrigin(r.Origin), true
	}
	return s.hasher.hashRowWith(r, s.hashMeta(r.Record.Meta), s.hasher.hashTemplate(r.Record.Components), s.last, s.amountsOf(r))
}

func (s *sharedHashes) hashMeta(m record.Meta) uint64 {
	if len(m) == 0 {
		return s.hasher.hashMeta(m)
	}
	if h, ok := s.metas[&m[0]]; ok {
		return h
	}
	h := s.hasher.hashMeta(m)
	s.metas[&m[0]] = h
	return h
}

func (s *sharedHashes) amountsOf(r *columns.Row) []int64 {
	s.amounts = s.amounts[:0]
	for i := range r.Record.Components {
		s.amounts = append(s.amounts, r.Record.Components[i].Amount)
	}
	return s.amounts
}
