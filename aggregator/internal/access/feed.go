package access

import (
	"context"
	"errors"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// errEnough ends a feed whose limit is reached.
var errEnough = errors.New("enough")

// feedQuery is a query with tombstones for a principal that sees some of the records:
// its rows, and a tombstone for each record that it saw at q.After and sees no
// more.
func (v *View) feedQuery(ctx context.Context, q store.Query, yield func(*columns.Row) error) error {
	left := q.Limit
	q.Limit, q.ReuseRows = 0, false // rows are looked up between rows
	err := v.view.Query(ctx, q, func(row *columns.Row) error {
		out := row
		if row.Tombstone || !v.who.Rows.hasMeta(row.Record.Meta) {
			gone, err := v.sawBefore(row, q.After)
			if err != nil || !gone {
				return err
			}
			out = &columns.Row{Seq: row.Seq, Tombstone: true, Changed: row.Changed}
			out.Record.ID = row.Record.ID
		}
		if err := yield(out); err != nil {
			return err
		}
		if left--; left == 0 {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// sawBefore reports whether the principal saw a former version of the row at the
// change after. What is not kept any more counts as not seen: an id of another's
// record must not show.
func (v *View) sawBefore(row *columns.Row, after uint64) (bool, error) {
	for seq := row.Supersedes; seq != 0; {
		old, ok, err := v.view.RowAt(seq)
		if err != nil || !ok {
			return false, err
		}
		if seq <= after {
			return !old.Tombstone && v.who.Rows.hasMeta(old.Record.Meta), nil
		}
		seq = old.Supersedes
	}
	return false, nil
}
