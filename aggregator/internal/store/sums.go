package store

import (
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/cockroachdb/pebble/v2"
)

// sums are what the derived tables add up to. Together with the counters of the
// state and the sum of each block they show at the next start whether all that
// was written is there: a database can lose the newest of its tables without
// noticing, when the end of its manifest does not read.
type sums struct {
	Seqs  uint64 // of the numbers that the index gives to ids that are shown
	Marks Hash   // of the lists of conflicts and waiting stops
	// Floor is the greatest number of a row that went with the compaction of its
	// block. It is no sum, and the same on all nodes as the rest is.
	Floor uint64
	// FeedFloor is the greatest number that an id of a dropped row had when the row was
	// dropped: no change behind it superseded a dropped row. No sum, either.
	FeedFloor uint64
}

// sumsKey holds the sums; a block has its own under its number.
var sumsKey = []byte{tableSum}

const sumsFormat = 1

// summed are sums with the index of the state that they belong to.
type summed struct {
	sums
	index uint64
}

func (s *summed) visitFields(f fields) {
	f.visitUint(&s.index)
	f.visitUint(&s.FeedFloor)
	f.visitFixed64(&s.Seqs)
	f.visitHash(&s.Marks)
	f.visitUint(&s.Floor)
}

func (m *memory) encodeSums() []byte { return encodeValue(sumsFormat, &summed{m.sums, m.Index}) }

// visitFields goes over the sum of a block.
func (h *Hash) visitFields(f fields) { f.visitHash(h) }

// addIndex adds an index value to the sums, and removeIndex subtracts one.
func (s *sums) addIndex(x *index) {
	if !x.Hidden {
		s.Seqs += x.Seq
	}
}

func (s *sums) removeIndex(x *index) {
	if !x.Hidden {
		s.Seqs -= x.Seq
	}
}

// loadTotals is what a start counts of what it reads.
type loadTotals struct {
	hasher rowHasher
	hash   Hash
	rows   uint64
	shown  uint64
	sums
}

func (f *loadTotals) addRow(row *columns.Row) Hash {
	h := f.hasher.hashRow(row)
	f.hash.addHash(h)
	f.rows++
	return h
}

// loadSums reads the sums of the state; a store to which no command was applied has none.
func (l *loaded) loadSums(r pebble.Reader) error {
	b, ok, err := getValue(r, sumsKey)
	if err != nil {
		return err
	}
	var s summed
	if ok {
		if err := decodeValue(b, sumsFormat, "sums", &s); err != nil {
			return err
		}
	}
	if s.index != l.memory.Index || s.Floor > 0 && s.FeedFloor == 0 {
		return fmt.Errorf("%w: the sums are of entry %d of the log with the floors %d and %d, the state of entry %d", ErrCorrupt, s.index, s.Floor, s.FeedFloor, l.memory.Index)
	}
	l.memory.sums = s.sums
	return nil
}

// loadBlockSums gives each zone its sum, and looks whether its block is there.
func (l *loaded) loadBlockSums(r pebble.Reader) error {
	next := 0
	err := scanPrefix(r, []byte{tableBlock}, func(key, _ []byte) error {
		if next >= len(l.memory.zones) || l.memory.zones[next].First != keySeq(key) {
			return fmt.Errorf("%w: the zones do not match the blocks at %d", ErrCorrupt, keySeq(key))
		}
		next++
		return nil
	})
	if err != nil {
		return err
	}
	if next != len(l.memory.zones) {
		return fmt.Errorf("%w: block %d is missing", ErrCorrupt, l.memory.zones[next].First)
	}
	for _, z := range l.memory.zones {
		if z.Sum, err = blockSum(r, z.First); err != nil {
			return err
		}
		l.totals.hash.addHash(z.Sum)
		l.totals.rows += uint64(z.Rows - z.Dead)
	}
	return nil
}

func blockSum(r pebble.Reader, first uint64) (sum Hash, err error) {
	b, ok, err := getValue(r, seqKey(tableSum, first))
	if err != nil {
		return sum, err
	}
	if !ok {
		return sum, fmt.Errorf("%w: the sum of block %d is missing", ErrCorrupt, first)
	}
	return sum, decodeValue(b, sumsFormat, "sum of a block", &sum)
}

func (l *loaded) loadOpen(r pebble.Reader) error {
	return scanPrefix(r, []byte{tableOpen}, func(key, value []byte) error {
		row, err := decodeOpenRow(keySeq(key), append([]byte(nil), value...))
		if err == nil {
			l.totals.addRow(row)
		}
		return err
	})
}

func (l *loaded) loadPairs(r pebble.Reader) error {
	for _, table := range hashedTables {
		if err := scanPrefix(r, []byte{table}, func(key, value []byte) error {
			l.totals.hash.addHash(pairHash(key, value))
			return nil
		}); err != nil {
			return err
		}
	}
	for _, table := range []byte{tableConflict, tableStop, tableLeft} {
		if err := scanPrefix(r, []byte{table}, func(key, _ []byte) error {
			l.totals.Marks.addHash(pairHash(key, nil))
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// countIndexed adds a value of the index.
func (f *loadTotals) countIndexed(key, value []byte) error {
	x, err := decodeIndex(value)
	if err != nil {
		return fmt.Errorf("%w: the index of %q: %w", ErrCorrupt, key[1:], err)
	}
	if f.addIndex(&x); !x.Hidden {
		f.shown++
	}
	if x.Deleted {
		f.hash.addHash(pairHash(key, value))
	}
	return nil
}

// compareTotals returns an error when what was read is not what was written.
func (l *loaded) compareTotals(pebble.Reader) error {
	m, f := l.memory, &l.totals
	f.Floor, f.FeedFloor = m.Floor, m.FeedFloor
	if m.Floor > 0 {
		m.drops = 1
	}
	var wrong []string
	for _, c := range []struct {
		what      string
		has, want uint64
	}{{"rows", f.rows, m.Rows}, {"records in the index", f.shown, m.Shown}} {
		if c.has != c.want {
			wrong = append(wrong, fmt.Sprintf("%d %s, the counters say %d", c.has, c.what, c.want))
		}
	}
	if f.hash != m.Hash {
		wrong = append(wrong, fmt.Sprintf("state hash %v, the counters say %v", f.hash, m.Hash))
	}
	if f.sums != m.sums {
		wrong = append(wrong, "the index and the lists are not those of the rows")
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%w: parts of what was written are missing: %s", ErrCorrupt, strings.Join(wrong, "; "))
}
