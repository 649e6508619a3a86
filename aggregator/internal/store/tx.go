package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2"
)

// tx is one command while it is applied. It collects everything in memory; only
// finish writes, into one Pebble batch that commit makes visible. A command that
// finds out that it must change nothing calls abort.
type tx struct {
	s     *Store
	r     pebble.Reader // the state before the command
	b     *pebble.Batch
	m     memory // becomes the published one
	index uint64
	now   record.Time

	slots  map[string]*slot // ids that are known already, while their entry changes
	order  []*slot
	parts  []*part // rows whose ids are new
	fresh  freshIDs
	small  map[string]*smallValue
	counts map[record.Origin]*Counts
	masks  map[uint64]columns.Mask // of superseded rows, by block
	hasher rowHasher
	plain  []plainIndex // of new rows
	own    columns.Row  // memory to read rows into
	ahead  []uint64     // hashes of the ids of the next rows
	later  []byte       // memory for an id

	zonesToWrite         []uint64
	ownZones, ownWaiting bool
	quarantined          map[arrival]int64     // jobs that came or went
	hashed               bool                  // remember the hash at this index
	stages               map[Upload]*stageHead // nil value: gone
}

// smallValue is a value of one of the small tables; nil is absent.
type smallValue struct{ old, new []byte }

func (s *Store) beginTx(index uint64) *tx {
	return &tx{s: s, r: s.disk.db, b: s.disk.db.NewBatch(), m: *s.memory, index: index,
		slots: map[string]*slot{}, small: map[string]*smallValue{}, counts: map[record.Origin]*Counts{}, masks: map[uint64]columns.Mask{},
		stages: map[Upload]*stageHead{}}
}

// abort forgets all that the command has done so far.
func (t *tx) abort() {
	t.m = *t.s.memory
	clear(t.slots)
	clear(t.small)
	clear(t.counts)
	clear(t.stages)
	t.order, t.parts, t.fresh, t.quarantined = nil, nil, freshIDs{}, nil
}

// getSmall reads a value of a small table as the command sees it. The caller must not
// change it.
func (t *tx) getSmall(key []byte) ([]byte, error) {
	v, err := t.smallValue(key)
	if err != nil {
		return nil, err
	}
	return v.new, nil
}

func (t *tx) smallValue(key []byte) (*smallValue, error) {
	if v, ok := t.small[string(key)]; ok {
		return v, nil
	}
	old, _, err := getValue(t.r, key)
	if err != nil {
		return nil, err
	}
	v := &smallValue{old: old, new: old}
	t.small[string(key)] = v
	return v, nil
}

// putSmall changes a value of a small table; nil removes it.
func (t *tx) putSmall(key, value []byte) error {
	v, err := t.smallValue(key)
	if err == nil {
		v.new = value
	}
	return err
}

// countsOf returns the counters of a source, for the command's writes to add to.
func (t *tx) countsOf(source record.Origin) *Counts {
	c := t.counts[source]
	if c == nil {
		c = &Counts{}
		t.counts[source] = c
	}
	return c
}

func (t *tx) totalCounts() (sum Counts) {
	for _, c := range t.counts {
		sum.Add(*c)
	}
	return sum
}

// finish writes what the command has changed into the batch.
func (t *tx) finish() error {
	if err := t.finishRows(); err != nil {
		return err
	}
	if err := t.finishCounts(); err != nil {
		return err
	}
	if err := t.finishSmall(); err != nil {
		return err
	}
	if err := t.finishMasks(); err != nil {
		return err
	}
	if err := t.b.Set(sumsKey, t.m.encodeSums(), nil); err != nil {
		return err
	}
	return t.b.Set(stateKey, encodeValue(stateFormat, &t.m.state), nil)
}

func (t *tx) finishCounts() error {
	sources := slices.SortedFunc(maps.Keys(t.counts), record.Origin.Compare)
	for _, source := range sources {
		key := sourceKey(tableCounter, source)
		old, err := t.getSmall(key)
		if err != nil {
			return err
		}
		c, err := decodeCounts(old)
		if err != nil {
			return err
		}
		c.Add(*t.counts[source])
		if err := t.putSmall(key, c.encodeCounts()); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) finishSmall() error {
	for _, key := range slices.Sorted(maps.Keys(t.small)) {
		if err := t.writeSmall([]byte(key), t.small[key]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) writeSmall(key []byte, v *smallValue) error {
	if v.old == nil && v.new == nil || v.old != nil && v.new != nil && bytes.Equal(v.old, v.new) {
		return nil
	}
	t.rehashPair(key, v.old, v.new)
	if err := t.countSmall(key[0], v.old, v.new); err != nil {
		return err
	}
	if v.new == nil {
		return t.b.Delete(key, nil)
	}
	return t.b.Set(key, v.new, nil)
}

// rehashPair takes the old value of a key out of the state hash and the new one in.
func (t *tx) rehashPair(key, before, now []byte) {
	if before != nil {
		t.m.Hash.subtractHash(pairHash(key, before))
	}
	if now != nil {
		t.m.Hash.addHash(pairHash(key, now))
	}
}

// Apply executes the command at index of the log. It is deterministic, and skips
// an index that is not above the last one. The result is what the command's type
// says. An error means that this node must stop; the store then holds what it
// held before, and refuses to apply anything more until it is opened again.
func (s *Store) Apply(index, term uint64, data []byte) (any, error) {
	if s.broken != nil {
		return nil, fmt.Errorf("store: stopped at an earlier command: %w", s.broken)
	}
	if s.disk == nil {
		return nil, ErrClosed
	}
	if index <= s.memory.Index {
		return nil, nil
	}
	c, err := Decode(data)
	var result any
	if err == nil {
		result, err = s.runCommand(index, c, func(m *memory) { m.Index, m.Term = index, term })
	}
	if err != nil {
		s.broken = err
		return nil, fmt.Errorf("apply index %d: %w", index, err)
	}
	return result, nil
}

func (s *Store) runCommand(index uint64, c Command, stamp func(*memory)) (any, error) {
	t := s.beginTx(index)
	defer func() { _ = t.b.Close() }() // what counts is whether it was committed
	result, err := c.applyTo(t)
	if err != nil {
		return nil, err
	}
	stamp(&t.m)
	if err := t.finish(); err != nil {
		return nil, err
	}
	if err := t.commit(); err != nil {
		return nil, err
	}
	if late, ok := result.(func() any); ok {
		return late(), nil
	}
	return result, nil
}

// commit makes the command visible, data and memory at the same moment.
func (t *tx) commit() error {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := t.b.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	m := t.m
	s.memory = &m
	if t.hashed {
		s.rememberHash(t.index, m.Hash)
	}
	s.jobs.countArrivals(t.quarantined)
	for u, head := range t.stages {
		if head == nil {
			delete(s.stages, u)
		} else {
			s.stages[u] = *head
		}
	}
	return nil
}
