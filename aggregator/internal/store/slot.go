package store

import (
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// slot is an id whose entry a command looks at or changes: what the store held
// before, and the entry as it becomes.
type slot struct {
	entry    record.Entry
	index    index
	hasIndex bool         // there is an index value
	row      *columns.Row // the shown row; nil when none is
	held     []byte       // the value under tableHeld; nil for none

	touched                 bool // met before in this command
	same                    bool // changes nothing
	wasConflict, wasWaiting bool
	wasLeft                 bool
	next                    *columns.Row // the row that takes the place of row
	// tombstone is a tombstone before next: an open row takes the place of a closed
	// one. Open rows vanish when they are superseded; so what they supersede must
	// be said by a row that stays.
	tombstone *columns.Row
	behind    uint64 // the tombstone behind next, when that is open; 0 for none
	by        string // who deletes it, and when
	at        record.Time
}

// ensureSlot returns the id's slot, made when the store has never heard of the id.
func (t *tx) ensureSlot(id string) (*slot, error) {
	h := hashText(id)
	sl, err := t.findSlot(h, id)
	if err != nil || sl != nil {
		return sl, err
	}
	t.s.filter.addID(h)
	return t.addSlot(id, &slot{entry: record.Entry{ID: id}}), nil
}

// findSlot returns the slot of an id that the store or the command knows; nil for a
// new one. The answer does not depend on what the filter takes for known: that
// differs from node to node.
func (t *tx) findSlot(hash uint64, id string) (*slot, error) {
	if !t.s.filter.mayContain(hash) {
		return nil, nil
	}
	if sl, ok := t.slots[id]; ok {
		sl.touched, sl.same = true, false
		return sl, nil
	}
	if p, i, ok := t.fresh.findRow(hash, id, t.parts); ok {
		return t.addSlot(id, t.reclaimFresh(p, i)), nil
	}
	sl, err := t.loadSlot(id)
	if err != nil {
		return nil, fmt.Errorf("load %q: %w", id, err)
	}
	if !sl.hasIndex {
		return nil, nil
	}
	return t.addSlot(id, sl), nil
}

// isRepeatedBy reports whether row says to the letter what the store held before the
// command, and nothing else has touched the id: the quick way for what an agent
// sends again. The slot then changes nothing.
func (sl *slot) isRepeatedBy(row *columns.Row) bool {
	r := sl.row
	sl.same = r != nil && sl.held == nil && !sl.touched && row.Origin == r.Origin && row.Rank == r.Rank && row.Version == r.Version &&
		row.Stop == r.Stop && row.StopObserved == r.StopObserved && sameRecord(&row.Record, &r.Record)
	sl.touched = true
	return sl.same
}

func (t *tx) addSlot(id string, sl *slot) *slot {
	t.slots[id] = sl
	t.order = append(t.order, sl)
	return sl
}

// reclaimFresh makes a slot of a row that the same command added: nothing of it has
// been written yet.
func (t *tx) reclaimFresh(p *part, i int) *slot {
	row := p.rowAt(i)
	p.dropRow(i)
	return &slot{entry: record.Entry{ID: row.Record.ID, Holdings: []record.Holding{row.Holding()}}}
}

func (t *tx) loadSlot(id string) (*slot, error) {
	sl := &slot{entry: record.Entry{ID: id}}
	value, ok, err := getValue(t.r, textKey(tableIndex, id))
	if err != nil || !ok {
		return sl, err
	}
	if sl.index, err = decodeIndex(value); err != nil {
		return nil, err
	}
	sl.hasIndex, sl.entry.Deleted, sl.entry.DeletedAt = true, sl.index.Deleted, sl.index.At
	if !sl.index.Hidden {
		if sl.row, err = t.rowAt(&sl.index); err != nil {
			return nil, err
		}
	}
	if err := t.loadHoldings(sl); err != nil {
		return nil, err
	}
	sl.wasConflict, sl.wasWaiting, sl.wasLeft = sl.entry.Conflict(), hasWaitingStop(&sl.entry), hidesArchivedBody(&sl.entry)
	return sl, nil
}

func (t *tx) loadHoldings(sl *slot) (err error) {
	if !sl.index.Held {
		if sl.row != nil {
			sl.entry.Holdings = []record.Holding{sl.row.Holding()}
		}
		return nil
	}
	if sl.held, _, err = getValue(t.r, textKey(tableHeld, sl.entry.ID)); err != nil {
		return err
	}
	sl.entry.Holdings, err = decodeHeld(sl.entry.ID, sl.held, sl.row)
	return err
}

// rowAt reads the shown row of an index value.
func (t *tx) rowAt(x *index) (*columns.Row, error) {
	if x.Open {
		return readOpenRow(t.r, x.Seq)
	}
	if i, ok := waitingAt(t.m.waiting, x.Seq); ok {
		return &t.m.waiting[i].row, nil
	}
	i, ok := findZone(t.m.zones, x.Seq)
	if !ok {
		return nil, fmt.Errorf("%w: row %d is nowhere", ErrCorrupt, x.Seq)
	}
	block, err := t.s.blocks.cachedBlock(t.r, t.m.zones[i])
	if err != nil {
		return nil, err
	}
	row, err := blockRow(block, x.Seq)
	if err == nil && row == nil {
		err = fmt.Errorf("%w: row %d is not in its block", ErrCorrupt, x.Seq)
	}
	return row, err
}

// hasWaitingStop reports whether a stop waits for its body.
func hasWaitingStop(e *record.Entry) bool {
	for i := range e.Holdings {
		if e.Holdings[i].Waiting() {
			return true
		}
	}
	return false
}

// chooseSuccessor finds out which row supersedes the slot's, and retires that.
func (t *tx) chooseSuccessor(sl *slot) error {
	if sl.same {
		return nil
	}
	best := sl.entry.Best()
	switch {
	case best != nil && sl.row != nil && sameShown(best, sl.row):
		return nil
	case best != nil:
		sl.next = t.newRowOf(best, sl.row)
		if sl.row != nil && isOpen(sl.next) && !sl.index.Open {
			sl.tombstone, sl.next.Supersedes = t.newTombstone(sl), 0
		}
	case sl.row != nil:
		sl.next = t.newTombstone(sl)
	default:
		return nil
	}
	t.countShown(best != nil, sl.row != nil)
	if err := t.supersedeTombstone(sl); err != nil || sl.row == nil {
		return err
	}
	return t.retireRow(sl.row, sl.index.Open)
}

// supersedeTombstone has a closed row, or another tombstone, take the place of the tombstone
// that the id has, so that compaction drops it. An open row only remembers it: what
// supersedes an open row cannot be followed back, for the open row vanishes.
func (t *tx) supersedeTombstone(sl *slot) error {
	seq := sl.index.Tombstone
	if sl.index.Hidden {
		seq = sl.index.Seq
	}
	switch {
	case seq == 0 || !t.supersedesTombstones():
		return nil
	case isOpen(sl.next):
		sl.behind = seq
		return nil
	}
	tombstone, err := t.rowAt(&index{Seq: seq})
	if err != nil {
		return err
	}
	sl.next.Supersedes = seq
	return t.retireRow(tombstone, false)
}

func (t *tx) newTombstone(sl *slot) *columns.Row {
	return &columns.Row{Record: record.Record{ID: sl.entry.ID, Start: record.None, Stop: record.None, Submit: record.None},
		Stop: record.None, Received: sl.row.Received, Changed: t.now, Supersedes: sl.row.Seq, Tombstone: true}
}

func sameShown(h *record.Holding, row *columns.Row) bool {
	shown := row.Shown()
	return h.Archived == row.Archived && record.Same(h.Shown(), &shown)
}

func (t *tx) newRowOf(h *record.Holding, old *columns.Row) *columns.Row {
	row := &columns.Row{Record: *h.Record, Origin: h.Origin, Rank: h.Rank, Version: h.Version,
		Stop: h.Stop, StopObserved: h.StopObserved, Received: t.now, Changed: t.now, Archived: h.Archived}
	if old != nil {
		row.Received, row.Supersedes = old.Received, old.Seq
	}
	return row
}

func (t *tx) countShown(now, before bool) {
	if now && !before {
		t.m.Shown++
	}
	if before && !now {
		t.m.Shown--
	}
}

// supersedesTombstones is false until all nodes do it alike.
func (t *tx) supersedesTombstones() bool { return t.m.Version >= supersededTombstones }

// retireRow takes a row out of sight. One in a block or among the waiting stays
// readable by its number until the block is compacted.
func (t *tx) retireRow(row *columns.Row, open bool) error {
	h := t.hasher.hashRow(row)
	t.m.Hash.subtractHash(h)
	t.m.Rows--
	seq := row.Seq
	if open {
		return t.b.Delete(seqKey(tableOpen, seq), nil)
	}
	if i, ok := waitingAt(t.m.waiting, seq); ok {
		return t.retireWaiting(i)
	}
	return t.retireInBlock(seq, h)
}

func (t *tx) retireWaiting(i int) error {
	t.cloneWaiting()
	w := &waitingRow{row: t.m.waiting[i].row, dead: true}
	t.m.waiting[i] = w
	return t.b.Set(seqKey(tableWaiting, w.row.Seq), w.encodeWaiting(), nil)
}

func (t *tx) retireInBlock(seq uint64, h Hash) error {
	i, ok := findZone(t.m.zones, seq)
	if !ok {
		return fmt.Errorf("%w: row %d is nowhere", ErrCorrupt, seq)
	}
	z := t.m.zones[i]
	block, err := t.s.blocks.cachedBlock(t.r, z)
	if err != nil {
		return err
	}
	at, ok, err := block.Find(seq)
	if err != nil {
		return fmt.Errorf("%w: row %d: %w", ErrCorrupt, seq, err)
	}
	if !ok {
		return fmt.Errorf("%w: row %d is not in its block", ErrCorrupt, seq)
	}
	mask, err := t.deadMask(z)
	if err != nil {
		return err
	}
	mask.Set(at)
	t.cloneZones()
	changed := *z
	changed.Dead++
	changed.Sum.subtractHash(h)
	t.m.zones[i] = &changed
	return nil
}

// deadMask returns the block's superseded rows, to be changed.
func (t *tx) deadMask(z *zone) (columns.Mask, error) {
	if m, ok := t.masks[z.First]; ok {
		return m, nil
	}
	m, err := readMask(t.r, z)
	if err != nil {
		return nil, err
	}
	t.masks[z.First] = m
	return m, nil
}

// writeSlot puts the slot's index value and its holdings into the batch.
func (t *tx) writeSlot(sl *slot) error {
	id := sl.entry.ID
	next, shown := sl.index, sl.row
	next.Deleted = sl.entry.Deleted
	if next.Deleted && !sl.index.Deleted {
		next.By, next.At = sl.by, sl.at
	}
	if sl.next != nil {
		next.Seq, next.Open, next.Hidden, next.Tombstone = sl.next.Seq, isOpen(sl.next), sl.next.Tombstone, sl.behind
		if sl.tombstone != nil && t.supersedesTombstones() {
			next.Tombstone = sl.tombstone.Seq
		}
		shown = sl.next
	}
	if shown == nil || shown.Tombstone {
		next.Hidden, shown = true, nil
	}
	var held []byte
	if len(sl.entry.Holdings) > 0 && !rowSaysAll(&sl.entry, shown) {
		held = encodeHeld(&sl.entry, shown)
	}
	next.Held = held != nil
	if err := t.writeHeld(id, sl.held, held); err != nil {
		return err
	}
	if err := t.writeMarks(sl); err != nil {
		return err
	}
	return t.writeIndex(id, sl, &next)
}

func (t *tx) writeHeld(id string, before, now []byte) error {
	return t.writeSmall(textKey(tableHeld, id), &smallValue{old: before, new: now})
}

// writeIndex also takes the mark of a deleted id into the state hash: nothing
// else tells of it.
func (t *tx) writeIndex(id string, sl *slot, next *index) error {
	key := textKey(tableIndex, id)
	var before, now []byte
	if sl.hasIndex {
		before = sl.index.encodeIndex()
	}
	if !next.Hidden || next.Held || next.Deleted || next.Seq != 0 {
		now = next.encodeIndex()
	}
	if sl.hasIndex {
		t.m.removeIndex(&sl.index)
	}
	t.m.addIndex(next)
	if sl.hasIndex && sl.index.Deleted {
		t.m.Hash.subtractHash(pairHash(key, before))
	}
	if next.Deleted {
		t.m.Hash.addHash(pairHash(key, now))
	}
	if string(before) == string(now) && (before == nil) == (now == nil) {
		return nil
	}
	if now == nil {
		return t.b.Delete(key, nil)
	}
	return t.b.Set(key, now, nil)
}

// writeMarks keeps the lists of conflicts, of waiting stops, and of bodies that lost
// details and are not shown.
func (t *tx) writeMarks(sl *slot) error {
	if err := t.updateMark(tableConflict, &t.m.anomalies.conflicts, sl.entry.ID, sl.wasConflict, sl.entry.Conflict()); err != nil {
		return err
	}
	if err := t.updateMark(tableStop, &t.m.anomalies.waiting, sl.entry.ID, sl.wasWaiting, hasWaitingStop(&sl.entry)); err != nil {
		return err
	}
	var n uint64 // they are not counted
	return t.updateMark(tableLeft, &n, sl.entry.ID, sl.wasLeft, hidesArchivedBody(&sl.entry))
}

// updateMark puts an id into a list, of which n is the length, or removes it.
func (t *tx) updateMark(table byte, n *uint64, id string, before, now bool) error {
	if before == now {
		return nil
	}
	key := textKey(table, id)
	if now {
		*n++
		t.m.Marks.addHash(pairHash(key, nil))
		return t.b.Set(key, nil, nil)
	}
	*n--
	t.m.Marks.subtractHash(pairHash(key, nil))
	return t.b.Delete(key, nil)
}

func isOpen(r *columns.Row) bool { return !r.Tombstone && r.ShownStop() == record.None }
