package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2"
)

// View is a consistent picture of a store: nothing that is applied later shows
// in it. It belongs to one goroutine at a time and must be closed; a view that
// stays open for long keeps old data on disk.
type View struct {
	store     *Store
	disk      *disk
	snap      *pebble.Snapshot
	memory    *memory
	anomalies Anomalies
	blocks    *blockCache
	// sources have the quarantined jobs.
	sources sourceJobs
}

// viewBlocks is how many decoded blocks a view keeps for lookups.
const viewBlocks = 4

// View returns a picture of now. The error is [ErrClosed] after Close.
func (s *Store) View() (*View, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.disk == nil {
		return nil, ErrClosed
	}
	s.disk.acquire()
	return &View{store: s, disk: s.disk, snap: s.disk.db.NewSnapshot(), memory: s.memory, anomalies: s.memory.anomalies.forView(s.jobs),
		blocks: newBlockCache(s.memory.dict, viewBlocks), sources: s.jobs.sources}, nil
}

// Close ends the view.
func (v *View) Close() error {
	err := v.snap.Close()
	if e := v.disk.release(); err == nil {
		err = e
	}
	return err
}

// resetBlocks lets go of what the view keeps decoded.
func (v *View) resetBlocks() { v.blocks = newBlockCache(v.memory.dict, viewBlocks) }

// Applied returns the index and term up to which the view shows commands.
func (v *View) Applied() (index, term uint64) { return v.memory.Index, v.memory.Term }

// Seq returns the number of the last change in the view; 0 before the first.
func (v *View) Seq() uint64 { return v.memory.Next - 1 }

// Count returns how many records are shown.
func (v *View) Count() uint64 { return v.memory.Shown }

// Hash returns the state hash of the view.
func (v *View) Hash() Hash { return v.memory.Hash }

// Cluster returns the cluster's id and version.
func (v *View) Cluster() (id string, version uint32) { return v.memory.Cluster, v.memory.Version }

// Get returns the row that is shown under the id; false when none is.
func (v *View) Get(id string) (columns.Row, bool, error) {
	x, ok, err := v.readIndex(id)
	if err != nil || !ok || x.Hidden {
		return columns.Row{}, false, err
	}
	row, err := v.rowOf(&x, id)
	if err != nil {
		return columns.Row{}, false, fmt.Errorf("get %q: %w", id, err)
	}
	return *row, true, nil
}

func (v *View) readIndex(id string) (index, bool, error) {
	value, ok, err := getValue(v.snap, textKey(tableIndex, id))
	if err != nil || !ok {
		return index{}, false, err
	}
	x, err := decodeIndex(value)
	return x, err == nil, err
}

// rowOf returns the shown row of an index value. id is its record id; "": the row says it.
func (v *View) rowOf(x *index, id string) (*columns.Row, error) {
	if x.Open {
		return readOpenRow(v.snap, x.Seq)
	}
	row, ok, err := v.closedRow(x.Seq, id)
	if err == nil && !ok {
		err = fmt.Errorf("%w: row %d is nowhere", ErrCorrupt, x.Seq)
	}
	return row, err
}

func (v *View) closedRow(seq uint64, id string) (*columns.Row, bool, error) {
	if i, ok := waitingAt(v.memory.waiting, seq); ok {
		return &v.memory.waiting[i].row, true, nil
	}
	i, ok := findZone(v.memory.zones, seq)
	if !ok {
		return nil, false, nil
	}
	row, err := v.blocks.findRow(v.snap, v.memory.zones[i], seq, id)
	return row, row != nil, err
}

// Entry returns all that is held under the id; an id that is not known has an
// entry that holds nothing.
func (v *View) Entry(id string) (record.Entry, error) {
	e := record.Entry{ID: id}
	x, ok, err := v.readIndex(id)
	if err != nil || !ok {
		return e, err
	}
	e.Deleted, e.DeletedAt = x.Deleted, x.At
	var row *columns.Row
	if !x.Hidden {
		if row, err = v.rowOf(&x, ""); err != nil {
			return e, fmt.Errorf("entry %q: %w", id, err)
		}
		e.Holdings = []record.Holding{row.Holding()}
	}
	if !x.Held {
		return e, nil
	}
	held, _, err := getValue(v.snap, textKey(tableHeld, id))
	if err == nil {
		e.Holdings, err = decodeHeld(id, held, row)
	}
	return e, err
}

// Holdings returns all that is held under the id of a row that is shown, without
// reading the row again.
func (v *View) Holdings(row *columns.Row) ([]record.Holding, error) {
	x, ok, err := v.readIndex(row.Record.ID)
	if err != nil || !ok || !x.Held {
		return []record.Holding{row.Holding()}, err
	}
	held, _, err := getValue(v.snap, textKey(tableHeld, row.Record.ID))
	if err != nil {
		return nil, err
	}
	return decodeHeld(row.Record.ID, held, row)
}

// Deletion says who deleted the id, and when; false when it is not deleted.
func (v *View) Deletion(id string) (by string, at record.Time, ok bool, err error) {
	x, found, err := v.readIndex(id)
	if err != nil || !found || !x.Deleted {
		return "", record.None, false, err
	}
	return x.By, x.At, true, nil
}

// RowAt returns the row with that sequence number, also one that is superseded.
// False: there is none, because it was open when it was superseded, or its block
// has been compacted since.
func (v *View) RowAt(seq uint64) (columns.Row, bool, error) {
	row, ok, err := v.closedRow(seq, "")
	if err != nil {
		return columns.Row{}, false, err
	}
	if ok {
		return *row, true, nil
	}
	b, ok, err := getValue(v.snap, seqKey(tableOpen, seq))
	if err != nil || !ok {
		return columns.Row{}, false, err
	}
	if row, err = decodeOpenRow(seq, b); err != nil {
		return columns.Row{}, false, err
	}
	return *row, true, nil
}

// Candidate is a block worth compacting.
type Candidate struct {
	First      uint64 // its name in [CompactBlockCommand]
	Last       uint64 // the last sequence number in it
	Rows, Dead int
}

// Candidates returns the blocks of which at least the given share of rows is
// superseded, in the order of the feed.
func (v *View) Candidates(share float64) (list []Candidate) {
	for _, z := range v.memory.zones {
		if z.Dead > 0 && float64(z.Dead) >= share*float64(z.Rows) {
			list = append(list, Candidate{First: z.First, Last: z.Last, Rows: z.Rows, Dead: z.Dead})
		}
	}
	return list
}

// BlockOf returns the name of the block that the row is in; false when it is in
// none (yet).
func (v *View) BlockOf(seq uint64) (first uint64, ok bool) {
	i, ok := findZone(v.memory.zones, seq)
	if !ok {
		return 0, false
	}
	return v.memory.zones[i].First, true
}

// Cursor returns how far the agent's buffer is in the store; that of an agent
// that was never pulled has only its name.
func (v *View) Cursor(agent string) (Cursor, error) {
	b, ok, err := getValue(v.snap, textKey(tableCursor, agent))
	if err != nil || !ok {
		return Cursor{Agent: agent}, err
	}
	return decodeCursor(agent, b)
}

// Agents returns the cursors of all agents that were ever pulled, by name.
func (v *View) Agents() (list []Cursor, err error) {
	err = scanPrefix(v.snap, []byte{tableCursor}, func(key, value []byte) error {
		c, err := decodeCursor(keyText(key), value)
		list = append(list, c)
		return err
	})
	return list, err
}

// Counters returns what became of the writes of every source.
func (v *View) Counters() (list []SourceCounts, err error) {
	err = scanPrefix(v.snap, []byte{tableCounter}, func(key, value []byte) error {
		o, err := keyOrigin(key[1:])
		if err != nil {
			return err
		}
		c, err := decodeCounts(value)
		list = append(list, SourceCounts{Source: o, Counts: c})
		return err
	})
	return list, err
}

// Quarantine calls yield with every quarantined job, those of one source
// together. It stops at the first error of yield and returns it.
func (v *View) Quarantine(yield func(*Quarantined) error) error {
	return scanPrefix(v.snap, []byte{tableQuarantine}, func(_, value []byte) error {
		q, err := decodeQuarantined(value)
		if err != nil {
			return err
		}
		return yield(&q)
	})
}

// Quarantined returns one quarantined job; false when there is none.
func (v *View) Quarantined(source record.Origin, id string) (Quarantined, bool, error) {
	b, ok, err := getValue(v.snap, quarantineKey(source, id))
	if err != nil || !ok {
		return Quarantined{}, false, err
	}
	q, err := decodeQuarantined(b)
	return q, err == nil, err
}

// Gaps returns the gaps of all sources.
func (v *View) Gaps() (list []Gap, err error) {
	err = scanPrefix(v.snap, []byte{tableGap}, func(_, value []byte) error {
		g, err := decodeGap(value)
		list = append(list, g)
		return err
	})
	return list, err
}

// Facts returns the facts of one kind, those of a source in the order of time.
func (v *View) Facts(kind FactKind) (list []Fact, err error) {
	err = scanPrefix(v.snap, []byte{tableFact, byte(kind)}, func(_, value []byte) error {
		f, err := decodeFact(value)
		list = append(list, f)
		return err
	})
	return list, err
}

// Held calls yield with the entries of which more is held than the row that is shown,
// by id.
func (v *View) Held(yield func(*record.Entry) error) error { return v.eachMarked(tableHeld, yield) }

// HeldAfter is Held for the entries with a greater id.
func (v *View) HeldAfter(id string, yield func(*record.Entry) error) error {
	return scanRange(v.snap, append(textKey(tableHeld, id), 0), []byte{tableHeld + 1}, func(key, _ []byte) error {
		e, err := v.Entry(keyText(key))
		if err != nil {
			return err
		}
		return yield(&e)
	})
}

// Conflicts calls yield with the entries whose origins are in conflict, by id.
func (v *View) Conflicts(yield func(*record.Entry) error) error {
	return v.eachMarked(tableConflict, yield)
}

// WaitingStops calls yield with the entries that have a stop without a body.
func (v *View) WaitingStops(yield func(*record.Entry) error) error {
	return v.eachMarked(tableStop, yield)
}

func (v *View) eachMarked(table byte, yield func(*record.Entry) error) error {
	return scanPrefix(v.snap, []byte{table}, func(key, _ []byte) error {
		e, err := v.Entry(keyText(key))
		if err != nil {
			return err
		}
		return yield(&e)
	})
}

// Document returns a value of [DocumentCommand]; nil and false when there is
// none.
func (v *View) Document(space, key string) ([]byte, bool, error) {
	return getValue(v.snap, documentKey(space, key))
}

// Documents calls yield with the values of a space whose keys begin with prefix,
// in the order of the keys. The document is yield's to keep.
func (v *View) Documents(space, prefix string, yield func(Document) error) error {
	return scanDocuments(v.snap, space, prefix, yield)
}

func scanDocuments(r pebble.Reader, space, prefix string, yield func(Document) error) error {
	head := len(documentKey(space, ""))
	return scanPrefix(r, documentKey(space, prefix), func(key, value []byte) error {
		return yield(Document{Space: space, Key: string(key[head:]), Value: append([]byte{}, value...)})
	})
}

// Stages returns how many uploads are not committed yet.
func (v *View) Stages() (n int, err error) {
	err = scanPrefix(v.snap, []byte{tableStageHead}, func(_, _ []byte) error {
		n++
		return nil
	})
	return n, err
}

// keyOrigin reads what appendKeyOrigin wrote.
func keyOrigin(b []byte) (o record.Origin, err error) {
	for _, s := range []*string{&o.Agent, &o.Type, &o.Label} {
		if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) {
			return o, fmt.Errorf("%w: key of a source", ErrCorrupt)
		}
		n := binary.BigEndian.Uint32(b)
		*s, b = string(b[4:4+n]), b[4+n:]
	}
	return o, nil
}

// With calls f with a picture of a store, which is closed then.
func With[T any](from interface{ View() (*View, error) }, f func(*View) (T, error)) (T, error) {
	view, err := from.View()
	if err != nil {
		var none T
		return none, err
	}
	v, err := f(view)
	return v, errors.Join(err, view.Close())
}
