package store

import (
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/cockroachdb/pebble/v2"
)

// ForgetCommand drops what nothing shows any more and compaction of blocks does
// not reach: superseded rows that wait for a block, and values in the dictionary
// that no block has. What is in use when it is applied stays. The leader proposes
// it with pairs of [View.Unposted]. The result is a [DeleteResult] with the number
// of rows and values.
type ForgetCommand struct {
	UpTo  uint64     // the greatest number of a row to drop
	Pairs []uint32   // of the dictionary
	Of    Superseded // the rows to drop
}

func (*ForgetCommand) commandKind() kind  { return kindForget }
func (*ForgetCommand) minVersion() uint16 { return supersededVersion }

func (c *ForgetCommand) visitFields(f fields) {
	f.visitUint(&c.UpTo)
	visitList(f, &c.Pairs, visitSmallUint)
	f.visitSuperseded(&c.Of)
}

func (c *ForgetCommand) applyTo(t *tx) (any, error) {
	n, err := t.dropWaiting(c.UpTo, &c.Of)
	if err != nil {
		return nil, err
	}
	var free []uint32
	for _, id := range c.Pairs {
		posted, err := isPosted(t.r, id)
		if err != nil {
			return nil, err
		}
		if !posted {
			free = append(free, id)
		}
	}
	for _, e := range t.m.dict.Forget(free) {
		n++
		if err := t.putDictEntry(&e); err != nil {
			return nil, err
		}
	}
	t.recordDrop(n)
	return DeleteResult{Changed: n}, nil
}

// putDictEntry writes an entry of the dictionary, or removes it where there are no data.
func (t *tx) putDictEntry(e *columns.Entry) error {
	if e.Data == nil {
		return t.b.Delete(dictKey(e), nil)
	}
	return t.b.Set(dictKey(e), e.Data, nil)
}

// recordDrop notes that a command dropped something.
func (t *tx) recordDrop(n int) {
	if n > 0 {
		t.m.Floor, t.m.FeedFloor = max(t.m.Floor, 1), max(t.m.FeedFloor, 1) // it is remembered
		t.m.drops++
	}
}

// Drops returns a number that changes when a command drops what nothing shows any
// more. It is in files until [Store.Compact] has rewritten them. After a start it
// is not 0 when something was ever dropped.
func (s *Store) Drops() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.memory.drops
}

// dropWaiting drops the superseded rows that wait, up to a number, and of those named.
func (t *tx) dropWaiting(upTo uint64, of *Superseded) (n int, err error) {
	keep := make([]*waitingRow, 0, len(t.m.waiting))
	for _, w := range t.m.waiting {
		if !w.dead || w.row.Seq > upTo || !of.mayDrop(w.row.Seq) {
			keep = append(keep, w)
			continue
		}
		n++
		t.m.Floor = max(t.m.Floor, w.row.Seq)
		if err := t.raiseFeedFloor(w.row.Record.ID, of); err != nil {
			return n, err
		}
		if err := t.b.Delete(seqKey(tableWaiting, w.row.Seq), nil); err != nil {
			return n, err
		}
	}
	if n > 0 {
		t.m.waiting, t.ownWaiting = keep, true
	}
	return n, nil
}

// isPosted reports whether a block has the pair.
func isPosted(r pebble.Reader, id uint32) (bool, error) {
	prefix := postingKey(id, 0)[:5]
	found := false
	err := scanPrefix(r, prefix, func(_, _ []byte) error {
		found = true
		return errEnough
	})
	if found {
		return true, nil
	}
	return false, err
}

// Unposted returns the pairs of the dictionary that no block has, at most so many.
func (v *View) Unposted(most int) (list []uint32, err error) {
	for _, id := range v.memory.dict.ValuePairs() {
		if len(list) >= most {
			break
		}
		posted, err := isPosted(v.snap, id)
		if err != nil {
			return nil, err
		}
		if !posted {
			list = append(list, id)
		}
	}
	return list, nil
}

// Floor is the greatest number of a row that was dropped: who followed the feed to
// a lower one has to start over, for what is missing in between.
func (v *View) Floor() uint64 { return v.memory.Floor }

// lastDead returns the number of the last superseded row of a block.
func lastDead(b *columns.Block, dead columns.Mask) (uint64, error) {
	seqs, err := b.Seqs()
	if err != nil {
		return 0, err
	}
	for i, seq := range slices.Backward(seqs) {
		if dead.Has(i) {
			return seq, nil
		}
	}
	return 0, nil
}
