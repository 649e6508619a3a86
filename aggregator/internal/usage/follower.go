package usage

import (
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// follower brings an index to the state of a view.
type follower struct {
	*sums
	view *store.View
	max  int // of bytes
	run  run // of the row that is looked at

	progress func(seq, of uint64) // nil: no one is told
}

// block books what changed in a block.
func (f *follower) block(b *columns.Block, rows, shown columns.Mask) error {
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
		if err := f.supersede(id, supersedes[i]); err != nil {
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
	for i := range shown.Rows() {
		if err := t.read(&f.run, i); err != nil {
			return err
		}
		if err := f.book(b, i); err != nil {
			return err
		}
	}
	if f.progress != nil {
		f.progress(t.seqs[len(t.seqs)-1], f.view.Seq())
	}
	return f.fits()
}

// fits returns [ErrTooLarge] when the sums do not.
func (f *follower) fits() error {
	if f.bytes <= f.max {
		return nil
	}
	return fmt.Errorf("%w: %d series of %d tuples need more than %d MiB; name fewer dimensions, or keys with fewer values",
		ErrTooLarge, len(f.slots), len(f.tuples), f.max>>20)
}

// book adds f.run, which is row i of b. Runs in blocks are closed.
func (f *follower) book(b *columns.Block, i int) (err error) {
	r := &f.run
	f.waited(r)
	if r.negative() {
		return nil
	}
	if f.grid.holds(r) {
		f.sums.book(r, 1)
		return nil
	}
	kept := *r
	kept.amounts = append([]int64(nil), r.amounts...)
	kept.id, err = b.ID(i)
	f.long[kept.seq] = &kept
	return err
}

// loose books a row that is in no block.
func (f *follower) loose(row *columns.Row, shown bool) error {
	if row.Supersedes != 0 {
		if err := f.supersede(row.Record.ID, row.Supersedes); err != nil {
			return err
		}
	}
	if shown {
		f.add(runOf(f.keys, f.layouts, row))
	}
	return nil
}

// supersede takes out what was shown under the id before, as far as it is in the
// index. What came after the index's last change is not: of it only what is shown
// now is added.
func (f *follower) supersede(id string, seq uint64) error {
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
	f.subtract(runOf(f.keys, f.layouts, &row))
	return nil
}
