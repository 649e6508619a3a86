package store

import (
	"context"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Superseded names the superseded rows that a command drops. The leader chooses them, so
// that all nodes drop the same rows whatever has been superseded since.
type Superseded struct {
	UpTo uint64   // no later change superseded one of them
	Rows []uint64 // their numbers, ascending
}

// supersededVersion is the version of commands that have [Superseded].
const supersededVersion = 10

func (f fields) visitSuperseded(s *Superseded) {
	f.visitUint(&s.UpTo)
	last := uint64(0)
	visitList(f, &s.Rows, func(f fields, seq *uint64) {
		next := *seq - last // most are of one byte
		f.visitUint(&next)
		if last += next; f.d != nil {
			*seq = last
		}
	})
}

// mayDrop reports whether a superseded row may go.
func (s *Superseded) mayDrop(seq uint64) bool {
	_, ok := slices.BinarySearch(s.Rows, seq)
	return ok
}

// droppableMask returns those of a block's superseded rows that may go.
func (s *Superseded) droppableMask(b *columns.Block, dead columns.Mask) (columns.Mask, error) {
	seqs, err := b.Seqs()
	if err != nil {
		return nil, err
	}
	drop := columns.NewMask(b.Len())
	for i := range dead.Rows() {
		if s.mayDrop(seqs[i]) {
			drop.Set(i)
		}
	}
	return drop, nil
}

// Droppable is which superseded rows of a view may be dropped: those that no follower of
// the feed needs who asks again within the time for which they are kept.
type Droppable struct {
	view *View
	upTo uint64   // the last change before that time
	kept []uint64 // the rows that later changes superseded, ascending
}

// Droppable finds what changes after the time t superseded. The view must stay open. It
// reads the blocks with these changes.
func (v *View) Droppable(ctx context.Context, t record.Time) (*Droppable, error) {
	d := &Droppable{view: v}
	err := v.eachNewestRow(ctx, func(seq, supersedes uint64, changed record.Time) bool {
		if changed <= t {
			d.upTo = seq
			return false
		}
		if supersedes != 0 {
			d.kept = append(d.kept, supersedes)
		}
		return true
	})
	slices.Sort(d.kept)
	return d, err
}

// eachNewestRow calls yield with the closed rows and the tombstones, superseded or not, from the
// last one on until it returns false.
func (v *View) eachNewestRow(ctx context.Context, yield func(seq, supersedes uint64, changed record.Time) bool) error {
	for _, w := range slices.Backward(v.memory.waiting) {
		if !yield(w.row.Seq, w.row.Supersedes, w.row.Changed) {
			return nil
		}
	}
	for _, z := range slices.Backward(v.memory.zones) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := readBlock(v.snap, z, v.blocks.reader)
		if err != nil {
			return err
		}
		seqs, err := b.Seqs()
		if err != nil {
			return err
		}
		supersedes, err := b.Supersedes()
		if err != nil {
			return err
		}
		changed, err := b.Changed()
		if err != nil {
			return err
		}
		for i := range slices.Backward(seqs) {
			if !yield(seqs[i], supersedes[i], changed[i]) {
				return nil
			}
		}
	}
	return nil
}

// Candidates returns the blocks of which at least the given share of rows is to be dropped,
// in the order of the feed. Dead is how many these are.
func (d *Droppable) Candidates(share float64) (list []Candidate, err error) {
	for _, k := range d.view.Candidates(share) {
		from, _ := slices.BinarySearch(d.kept, k.First)
		if from < len(d.kept) && d.kept[from] <= k.Last { // of these some were open, and in no block
			s, err := d.Of([]uint64{k.First})
			if err != nil {
				return nil, err
			}
			k.Dead = len(s.Rows)
		}
		if k.Dead > 0 && float64(k.Dead) >= share*float64(k.Rows) {
			list = append(list, k)
		}
	}
	return list, nil
}

// Of returns the rows of blocks to drop.
func (d *Droppable) Of(blocks []uint64) (Superseded, error) {
	s := Superseded{UpTo: d.upTo}
	for _, first := range slices.Sorted(slices.Values(blocks)) {
		i, ok := findZone(d.view.memory.zones, first)
		if !ok || d.view.memory.zones[i].Dead == 0 {
			continue
		}
		z := d.view.memory.zones[i]
		b, err := readBlock(d.view.snap, z, d.view.blocks.reader)
		if err != nil {
			return s, err
		}
		seqs, err := b.Seqs()
		if err != nil {
			return s, err
		}
		dead, err := readMask(d.view.snap, z)
		if err != nil {
			return s, err
		}
		for i := range dead.Rows() {
			d.addUnlessKept(&s, seqs[i])
		}
	}
	return s, nil
}

// Waiting returns the rows to drop that wait for a block.
func (d *Droppable) Waiting() Superseded {
	s := Superseded{UpTo: d.upTo}
	for _, w := range d.view.memory.waiting {
		if w.dead {
			d.addUnlessKept(&s, w.row.Seq)
		}
	}
	return s
}

func (d *Droppable) addUnlessKept(s *Superseded, seq uint64) {
	if _, kept := slices.BinarySearch(d.kept, seq); !kept {
		s.Rows = append(s.Rows, seq)
	}
}
