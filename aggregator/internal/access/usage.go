package access

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// keysAmong is among how many records Keys and Values look.
const keysAmong = 20_000

// Keys returns the keys, of meta and of how runs ended, of the newest records that the
// principal sees, sorted: not of all, so that it is quick.
func (v *View) Keys(ctx context.Context) ([]string, error) {
	seen := map[string]bool{}
	err := v.newestRecords(ctx, func(row *columns.Row) error {
		for key := range row.Record.Keys() {
			addName(seen, key)
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

// Names are those that the newest records have that the principal sees: not all, so that
// they are found quickly.
type Names struct {
	Records    int                        // how many records were looked at
	Whole      bool                       // there are no older ones
	Keys       map[string]bool            // of meta, and of how runs ended
	Values     map[string]map[string]bool // by key, of the keys that were asked for
	Components map[string]bool
}

// Names finds the names in the newest records, with the values of some keys.
func (v *View) Names(ctx context.Context, keys []string) (*Names, error) {
	n := &Names{Whole: v.Seq() <= keysAmong, Keys: map[string]bool{}, Values: map[string]map[string]bool{}, Components: map[string]bool{}}
	for _, key := range keys {
		n.Values[key] = map[string]bool{}
	}
	return n, v.newestRecords(ctx, func(row *columns.Row) error {
		n.Records++
		for key, list := range row.Record.Keys() {
			addName(n.Keys, key)
			if values := n.Values[key]; values != nil {
				for _, value := range list {
					addName(values, value)
				}
			}
		}
		for i := range row.Record.Components {
			addName(n.Components, row.Record.Components[i].Name)
		}
		return nil
	})
}

// addName keeps a name that is lent.
func addName(set map[string]bool, name string) {
	if !set[name] {
		set[strings.Clone(name)] = true
	}
}

// newestRecords calls yield with the newest records, in the order of their changes, until it
// returns errEnough. What it lends is valid until yield returns.
func (v *View) newestRecords(ctx context.Context, yield func(*columns.Row) error) error {
	q := store.Query{Order: store.BySeq, ReuseRows: true}
	if seq := v.Seq(); seq > keysAmong {
		q.After = seq - keysAmong
	}
	err := v.Query(ctx, q, yield)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
