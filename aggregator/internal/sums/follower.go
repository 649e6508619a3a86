package sums

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// follower brings an index to the state of a view.
type follower struct {
	*sums
	view     *store.View
	makeRoom func() error // makes room in memory
	*batch

	progress func(seq, of uint64) // nil: no one is told
}

// batch is a block whose runs are read: runs are by row, and order has the rows that
// are added in the order in which they are.
type batch struct {
	runs  []run
	order []uint64
}

// followBlock applies what changed in a block.
func (f *follower) followBlock(b *columns.Block, rows, shown columns.Mask) error {
	supersedes, err := b.Supersedes()
	if err != nil {
		return err
	}
	for i := range rows.Rows() {
		if supersedes[i] == 0 {
			continue
		}
		id, err := b.ID(i)
		if err != nil {
			return err
		}
		if err := f.removeSuperseded(id, supersedes[i]); err != nil {
			return err
		}
	}
	if shown.Empty() {
		return nil
	}
	t, err := newTable(b, f.keys, f.layouts)
	if err != nil {
		return err
	}
	if err := f.addRows(t, shown); err != nil {
		return err
	}
	if f.progress != nil {
		f.progress(t.seqs[len(t.seqs)-1], f.view.Seq())
	}
	return f.makeRoom()
}

// addRows adds the rows of a block that are shown, those of a series one after the
// other: its sums are in the processor's cache then.
func (f *follower) addRows(t *table, shown columns.Mask) error {
	f.order = f.order[:0]
	if f.runs == nil {
		f.runs = make([]run, columns.MaxRows)
	}
	for i := range shown.Rows() {
		r := &f.runs[i]
		if err := t.readRun(r, i); err != nil {
			return err
		}
		f.order = append(f.order, uint64(r.tuple)<<tupleShift|uint64(r.layout.id)<<rowBits|uint64(i))
	}
	slices.Sort(f.order)
	for _, key := range f.order {
		if err := f.addRow(t.block, int(key%(1<<rowBits))); err != nil {
			return err
		}
	}
	return nil
}

// What is sorted has the number of a row in its lowest bits, and that of its tuple in the
// highest; a layout whose number takes more bits only spoils the order.
const (
	rowBits    = 12
	tupleShift = 32
)

// addRow adds the run of row i of b. Runs in blocks are closed.
func (f *follower) addRow(b *columns.Block, i int) (err error) {
	r := &f.runs[i]
	f.noteWait(r)
	if r.isNegative() {
		return nil
	}
	if f.grid.holdsRun(r) {
		f.sums.addToSeries(r, 1)
		return nil
	}
	kept := *r
	kept.amounts = slices.Clone(r.amounts)
	kept.id, err = b.ID(i)
	f.long[kept.seq] = &kept
	return err
}

// followRow applies a row that is in no block.
func (f *follower) followRow(row *columns.Row, shown bool) error {
	if row.Supersedes != 0 {
		if err := f.removeSuperseded(row.Record.ID, row.Supersedes); err != nil {
			return err
		}
	}
	if shown {
		f.addShown(runOf(f.keys, f.layouts, row))
	}
	return nil
}

// removeSuperseded takes out what was shown under the id before, as far as it is in the
// index. What came after the index's last change is not: of it only what is shown
// now is added.
func (f *follower) removeSuperseded(id string, seq uint64) error {
	if open, ok := f.open[id]; ok {
		// An open row that was superseded by another open one is gone from the
		// store, so the number may be a later one.
		delete(f.open, id)
		if seq == open.seq {
			return nil
		}
	}
	if seq > f.seq {
		return nil
	}
	row, ok, err := f.view.RowAt(seq)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("row %d of %q: %w", seq, id, errBehind)
	case row.Tombstone:
		return nil
	}
	f.subtractRun(runOf(f.keys, f.layouts, &row))
	return nil
}
