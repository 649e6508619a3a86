package enrol

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Access is what lets people and programs in: the tokens and sessions of a cluster, as they are stored.
type Access map[[2]string][]byte

// accessSpaces have what a restore does not take back. A token or a session that was
// revoked since the snapshot would be valid again.
func accessSpaces() []string {
	return []string{tokenSpace, bearerSpace, usedSpace, sessionSpace, restoredSpace}
}

// restoredSpace and restoredKey have the mark of a cluster whose tokens are those of a snapshot.
const (
	restoredSpace = "access-restored"
	restoredKey   = "snapshot"
)

// restoredMark says of which snapshot the tokens are.
type restoredMark struct {
	Format int       `json:"format"`
	Made   time.Time `json:"made"`
}

// AmendSnapshot returns what changes in a snapshot, made then, before it is restored: its
// sessions end, and it is noted that the tokens are those of the snapshot. [Access.Put]
// takes both back where the cluster of before was there to say what is valid.
func AmendSnapshot(v View, made time.Time) (sets []store.Document, err error) {
	err = v.Documents(sessionSpace, "", func(d store.Document) error {
		sets = append(sets, store.Document{Space: sessionSpace, Key: d.Key})
		return nil
	})
	return append(sets, encodeDocument(restoredSpace, restoredKey, &restoredMark{Format: format, Made: made.UTC()})), err
}

// RestoredTokens counts the tokens that let someone in because a snapshot has them, whether
// or not they were revoked or used since, and returns when it was made.
func RestoredTokens(v View, now time.Time) (count int, made time.Time, err error) {
	mark, _, err := findValue[restoredMark](v, restoredSpace, restoredKey)
	if err != nil || mark == nil {
		return 0, time.Time{}, err
	}
	bearers, err := Bearers(v)
	if err != nil {
		return 0, time.Time{}, err
	}
	joining, err := Tokens(v)
	for i := range bearers {
		if b := &bearers[i]; b.State(now) == "valid" && !b.Made.After(mark.Made) {
			count++
		}
	}
	for i := range joining {
		if t := &joining[i]; t.State(now) == "unused" && !t.Made.After(mark.Made) {
			count++
		}
	}
	return count, mark.Made, err
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
	slices.SortFunc(sets, func(x, y store.Document) int { // the mark last: until then tokens may be those of the snapshot
		return cmp.Or(cmp.Compare(putOrder(x), putOrder(y)), cmp.Compare(x.Space, y.Space), cmp.Compare(x.Key, y.Key))
	})
	for part := range slices.Chunk(sets, setsAtOnce) {
		if err := commitDocuments(ctx, write, &store.DocumentCommand{Sets: part}); err != nil {
			return err
		}
	}
	return nil
}

// putOrder is the place of a document among those that Put sets.
func putOrder(d store.Document) int {
	if d.Space == restoredSpace {
		return 1
	}
	return 0
}
