package access

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// QuarantineCount returns how many jobs are quarantined. The error is as that of
// Figures.
func (v *View) QuarantineCount() (uint64, error) {
	if err := v.figures(); err != nil {
		return 0, err
	}
	return v.view.QuarantineCount()
}

// keysAmong is among how many records Keys looks.
const keysAmong = 20_000

// Keys returns the meta keys of the newest records that the principal sees, sorted:
// not of all, so that it is quick.
func (v *View) Keys(ctx context.Context) ([]string, error) {
	seen := map[string]bool{}
	q := store.Query{Order: store.BySeq, Lent: true}
	if seq := v.Seq(); seq > keysAmong {
		q.After = seq - keysAmong
	}
	err := v.Query(ctx, q, func(row *columns.Row) error {
		for i := range row.Record.Meta {
			if key := row.Record.Meta[i].Key; !seen[key] {
				seen[strings.Clone(key)] = true
			}
		}
		if len(seen) > 1000 {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	keys := make([]string, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys, nil
}
