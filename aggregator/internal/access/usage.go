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
	return v.view.Odd().Quarantined, nil
}

// keysAmong is among how many records Keys and Values look.
const keysAmong = 20_000

// Keys returns the meta keys of the newest records that the principal sees, sorted:
// not of all, so that it is quick.
func (v *View) Keys(ctx context.Context) ([]string, error) {
	seen := map[string]bool{}
	err := v.newest(ctx, func(row *columns.Row) error {
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
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys, nil
}

// Values returns which of the values under each of the keys the newest records have
// that the principal sees: not all of them, so that it is quick. It is true when there
// are no older ones.
func (v *View) Values(ctx context.Context, keys []string) (values map[string]map[string]bool, whole bool, err error) {
	values = map[string]map[string]bool{}
	for _, key := range keys {
		values[key] = map[string]bool{}
	}
	err = v.newest(ctx, func(row *columns.Row) error {
		for key, seen := range values {
			for _, value := range row.Record.Meta.Get(key) {
				if !seen[value] {
					seen[strings.Clone(value)] = true
				}
			}
		}
		return nil
	})
	return values, v.Seq() <= keysAmong, err
}

// newest calls yield with the newest records, in the order of their changes, until it
// returns errEnough. What it lends is valid until yield returns.
func (v *View) newest(ctx context.Context, yield func(*columns.Row) error) error {
	q := store.Query{Order: store.BySeq, Lent: true}
	if seq := v.Seq(); seq > keysAmong {
		q.After = seq - keysAmong
	}
	err := v.Query(ctx, q, yield)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
