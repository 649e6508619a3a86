package store

import (
	"context"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
)

// Changes gives what happened after the change with the number after, for those
// who keep sums of what the store shows. block is called with each block that
// has rows of it, the mask of these, and of these the ones that are shown now;
// loose with every row that is in no block. Tombstones are among the rows and
// never shown. Blocks come in the order of their sequence numbers, then waiting
// rows, then open ones, of which there are only those that are shown.
//
// Whoever adds the rows that are shown, and subtracts for every row the one that it
// supersedes if that one's number is not above after, has what the store shows.
func (v *View) Changes(ctx context.Context, after uint64,
	block func(b *columns.Block, rows, shown columns.Mask) error, loose func(row *columns.Row, shown bool) error,
) error {
	p := &plan{Query: &Query{After: after, Superseded: true, Tombstones: true}}
	for _, z := range v.memory.zones {
		if z.Last <= after {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.yieldChanges(z, after, block); err != nil {
			return err
		}
	}
	for _, w := range v.memory.waiting {
		if w.row.Seq <= after {
			continue
		}
		row := w.row
		if err := loose(&row, !w.dead && !row.Tombstone); err != nil {
			return err
		}
	}
	return v.eachOpenRow(ctx, p, func(row *columns.Row) error { return loose(row, true) })
}

func (v *View) yieldChanges(z *zone, after uint64, block func(b *columns.Block, rows, shown columns.Mask) error) error {
	b, err := readBlock(v.snap, z, v.blocks.reader)
	if err != nil {
		return err
	}
	seqs, err := b.Seqs()
	if err != nil {
		return err
	}
	rows := columns.NewMask(b.Len())
	for i, seq := range seqs {
		if seq > after {
			rows.Set(i)
		}
	}
	shown := append(columns.Mask{}, rows...)
	if z.Dead > 0 {
		dead, err := readMask(v.snap, z)
		if err != nil {
			return err
		}
		shown.AndNot(dead)
	}
	if z.Tombstones > 0 {
		none, err := b.Tombstones()
		if err != nil {
			return err
		}
		shown.AndNot(none)
	}
	return block(b, rows, shown)
}
