package enrol

import (
	"bytes"
	"context"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Access is what lets people and programs in: the tokens and sessions of a cluster, as they are stored.
type Access map[[2]string][]byte

// accessSpaces have what a restore does not take back. A token or a session that was
// revoked since the snapshot would be valid again.
func accessSpaces() []string {
	return []string{tokenSpace, bearerSpace, usedSpace, sessionSpace}
}

// ReadAccess reads what is valid now.
func ReadAccess(v View) (Access, error) {
	a := Access{}
	for _, space := range accessSpaces() {
		err := v.Documents(space, "", func(d store.Document) error {
			a[[2]string{space, d.Key}] = bytes.Clone(d.Value)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// setsAtOnce is how many documents one command sets.
const setsAtOnce = 200

// Put has a restored cluster take what was valid before the restore, and nothing else.
func (a Access) Put(ctx context.Context, v View, write Write) error {
	restored, err := ReadAccess(v)
	if err != nil {
		return err
	}
	var sets []store.Document
	for at, value := range restored {
		if before, there := a[at]; !there || !bytes.Equal(before, value) {
			sets = append(sets, store.Document{Space: at[0], Key: at[1], Value: before})
		}
	}
	for at, value := range a {
		if _, there := restored[at]; !there {
			sets = append(sets, store.Document{Space: at[0], Key: at[1], Value: value})
		}
	}
	for part := range slices.Chunk(sets, setsAtOnce) {
		if err := commit(ctx, write, &store.DocumentCommand{Sets: part}); err != nil {
			return err
		}
	}
	return nil
}
