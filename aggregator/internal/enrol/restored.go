package enrol

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Access is what lets people, programs and machines in: the tokens, sessions and joined machines
// of a cluster, as they are stored.
type Access map[[2]string][]byte

// accessSpaces have what a restore does not take back. A token or a session that was
// revoked since the snapshot would be valid again, an agent that was removed would be pulled
// again, and one whose token was used since could not join again with it.
func accessSpaces() []string {
	return []string{tokenSpace, bearerSpace, usedSpace, sessionSpace, agentSpace, nodeSpace, restoredSpace}
}

// restoredSpace and restoredKey have the mark of a cluster whose tokens and agents are those of a
// snapshot.
const (
	restoredSpace = "access-restored"
	restoredKey   = "snapshot"
)

// restoredMark says of which snapshot the tokens and agents are.
type restoredMark struct {
	Format int       `json:"format"`
	Made   time.Time `json:"made"`
}

// AmendSnapshot returns what changes in a snapshot, made then, before it is restored: its
// sessions end, and it is noted that the tokens and agents are those of the snapshot. [Access.Put]
// takes all of it back where the cluster of before was there to say what is valid.
func AmendSnapshot(v View, made time.Time) (sets []store.Document, err error) {
	err = v.Documents(sessionSpace, "", func(d store.Document) error {
		sets = append(sets, store.Document{Space: sessionSpace, Key: d.Key})
		return nil
	})
	return append(sets, encodeDocument(restoredSpace, restoredKey, &restoredMark{Format: format, Made: made.UTC()})), err
}

// Restored is what a cluster has because the snapshot that it was restored from has it. Whether it
// was revoked, used or removed since the snapshot is not known.
type Restored struct {
	Made   time.Time // when the snapshot was made; zero: the cluster knows all that it needs
	Tokens int       // tokens that let someone in
	Agents []string  // agents that have joined, by name
}

// FindRestored finds what lets someone in, or is pulled from, because a snapshot has it.
func FindRestored(v View, now time.Time) (r Restored, err error) {
	mark, _, err := findValue[restoredMark](v, restoredSpace, restoredKey)
	if err != nil || mark == nil {
		return Restored{}, err
	}
	r.Made = mark.Made
	bearers, err := Bearers(v)
	if err != nil {
		return r, err
	}
	for i := range bearers {
		if b := &bearers[i]; b.State(now) == "valid" && !b.Made.After(mark.Made) {
			r.Tokens++
		}
	}
	joining, err := Tokens(v)
	if err != nil {
		return r, err
	}
	for i := range joining {
		if t := &joining[i]; t.State(now) == "unused" && !t.Made.After(mark.Made) {
			r.Tokens++
		}
	}
	agents, err := Agents(v)
	for i := range agents {
		if m := &agents[i]; !m.At.After(mark.Made) {
			r.Agents = append(r.Agents, m.Name)
		}
	}
	return r, err
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

// Put has a restored cluster take what was valid before the restore, and nothing else. It returns
// the agents of the snapshot that were removed since, and are removed again.
func (a Access) Put(ctx context.Context, v View, write Write) (removed []string, err error) {
	restored, err := ReadAccess(v)
	if err != nil {
		return nil, err
	}
	var sets []store.Document
	for at, value := range restored {
		before, there := a[at]
		if !there || !bytes.Equal(before, value) {
			sets = append(sets, store.Document{Space: at[0], Key: at[1], Value: before})
		}
		if at[0] == agentSpace && !there {
			removed = append(removed, at[1])
		}
	}
	slices.Sort(removed)
	for at, value := range a {
		if _, there := restored[at]; !there {
			sets = append(sets, store.Document{Space: at[0], Key: at[1], Value: value})
		}
	}
	slices.SortFunc(sets, func(x, y store.Document) int { // the mark last: until then tokens and agents may be those of the snapshot
		return cmp.Or(cmp.Compare(putOrder(x), putOrder(y)), cmp.Compare(x.Space, y.Space), cmp.Compare(x.Key, y.Key))
	})
	for part := range slices.Chunk(sets, setsAtOnce) {
		if err := commitDocuments(ctx, write, &store.DocumentCommand{Sets: part}); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// putOrder is the place of a document among those that Put sets.
func putOrder(d store.Document) int {
	if d.Space == restoredSpace {
		return 1
	}
	return 0
}
