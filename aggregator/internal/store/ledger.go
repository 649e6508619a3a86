package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
)

// ErrCompacted is returned for a part of the feed that is not complete: rows that its
// changes superseded were dropped, or the store was never there.
var ErrCompacted = errors.New("superseded rows of this part of the feed were dropped")

// LedgerPart is a part of what changed among the closed records from one state of the
// store to a later one: the changes with numbers above After. From and To are the numbers
// of the last changes of the two states; a From of 0 is the empty store.
type LedgerPart struct{ From, To, After uint64 }

// Ledger calls yield with the changes of a part, in the order of their numbers. now is the
// row that is shown at To, a tombstone when none is; former is the one that was shown at
// From, nil when none was. Of each id there is one change, from the former state to the
// later one; what was in between does not show. Whoever has the closed records of From,
// takes away each former and adds each now that is no tombstone, has those of To.
//
// Open records are in no part: a record comes when it has closed, and goes when it opens
// again. Parts of the same From and To are the same whenever they are asked for, but for the
// details that an archive took. The error is [ErrCompacted] when what was dropped since
// would be in the part.
func (v *View) Ledger(ctx context.Context, p LedgerPart, yield func(now, former *columns.Row) error) error {
	if err := v.checkLedgerComplete(p); err != nil {
		return err
	}
	change := func(row *columns.Row) error {
		former, err := v.formerRow(row, p.From)
		if err != nil || row.Tombstone && former == nil {
			return err
		}
		return yield(row, former)
	}
	late, err := v.supersededLater(ctx, p)
	if err != nil {
		return err
	}
	upTo := func(seq uint64) error {
		for ; len(late) > 0 && late[0] < seq; late = late[1:] {
			row, ok, err := v.closedRow(late[0], "")
			if ok { // an open one vanished
				err = change(row)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = v.Query(ctx, Query{Order: BySeq, After: p.After, Tombstones: true, Open: OnlyClosed}, func(row *columns.Row) error {
		if row.Seq > p.To {
			return errEnough
		}
		if err := upTo(row.Seq); err != nil {
			return err
		}
		return change(row)
	})
	if err != nil {
		return err
	}
	return upTo(p.To + 1)
}

// checkLedgerComplete returns an error when a row is missing that the part needs: one that is
// shown at To and was superseded since, or, where there is a From, one between the two.
func (v *View) checkLedgerComplete(p LedgerPart) error {
	needs := p.From
	if needs == 0 {
		needs = p.To
	}
	switch floor := v.FeedFloor(); {
	case p.From > p.To || p.To > v.Seq():
		return fmt.Errorf("%w: it ends at change %d and the feed at %d", ErrCompacted, p.To, v.Seq())
	case floor > needs:
		return fmt.Errorf("%w: they are needed by changes up to %d, and the part begins at %d", ErrCompacted, floor, needs)
	}
	return nil
}

// supersededLater returns the numbers of the rows of a part that were superseded by changes
// behind its end, sorted.
func (v *View) supersededLater(ctx context.Context, p LedgerPart) (list []uint64, err error) {
	if p.To == v.Seq() {
		return nil, nil
	}
	add := func(seq uint64) {
		if seq > p.After && seq <= p.To {
			list = append(list, seq)
		}
	}
	err = v.Changes(ctx, p.To, func(b *columns.Block, rows, _ columns.Mask) error {
		supersedes, err := b.Supersedes()
		if err != nil {
			return err
		}
		for i := range rows.Rows() {
			add(supersedes[i])
		}
		return nil
	}, func(row *columns.Row, _ bool) error {
		add(row.Supersedes)
		return nil
	})
	slices.Sort(list)
	return list, err
}

// formerRow returns the closed row that the id of a row showed after the change from; nil when
// it showed none.
func (v *View) formerRow(row *columns.Row, from uint64) (*columns.Row, error) {
	if from == 0 {
		return nil, nil
	}
	for seq := row.Supersedes; seq != 0; {
		// An open row is gone, and has never superseded a closed one.
		old, ok, err := v.closedRow(seq, "")
		if err != nil || !ok {
			return nil, err
		}
		if seq <= from {
			if old.Tombstone {
				return nil, nil
			}
			former := *old
			return &former, nil
		}
		seq = old.Supersedes
	}
	return nil, nil
}

// FeedFloor is the change from which on the feed is complete: no later change superseded a
// row that was dropped.
func (v *View) FeedFloor() uint64 { return v.memory.FeedFloor }

// raiseFeedFloor is called for each row that is dropped: the change that superseded it is
// not above the number that its id has now, nor above what the command says.
func (t *tx) raiseFeedFloor(id string, of *Superseded) error {
	value, ok, err := getValue(t.r, textKey(tableIndex, id))
	if err != nil {
		return err
	}
	floor := min(t.m.Next-1, of.UpTo)
	if ok {
		x, err := decodeIndex(value)
		if err != nil {
			return err
		}
		floor = min(floor, x.Seq)
	}
	t.m.FeedFloor = max(t.m.FeedFloor, floor)
	return nil
}
