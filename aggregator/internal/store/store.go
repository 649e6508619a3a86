package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/cockroachdb/pebble/v2"
)

// Store keeps the records of a cluster on one node. One goroutine applies
// commands; any number read, each through a [View].
type Store struct {
	options Options
	filter  *filter // ids; the applier's
	blocks  *blockCache
	stages  map[Upload]stageHead
	broken  error // why nothing more can be applied; the applier's
	overlap int   // blocks that a sweep may hold
	metrics *collector

	mu     sync.RWMutex // guards what follows
	disk   *disk        // nil after Close
	dir    string       // the name of the database
	memory *memory
	jobs   quarantineCounts
	hashes map[uint64]Hash
	order  []uint64 // of the hashes
}

// Open opens the store in o.Dir, made when there is none. It reads what is kept in
// memory – the filter of ids, the zones, the dictionary, rows that wait for a block – and
// compares it with what was written; the error wraps [ErrCorrupt] where they differ.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	dir, err := currentDir(o.FS, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("store in %s: %w", o.Dir, err)
	}
	if err := removeStaleDatabases(o.FS, o.Dir, dir); err != nil {
		return nil, fmt.Errorf("store in %s: %w", o.Dir, err)
	}
	if err := o.clearSpill(); err != nil {
		return nil, fmt.Errorf("store in %s: %w", o.Dir, err)
	}
	s := &Store{options: o, hashes: map[uint64]Hash{}, overlap: maxOverlap}
	if err := s.openDatabase(dir); err != nil {
		return nil, err
	}
	if err := s.registerMetrics(); err != nil {
		return nil, err
	}
	return s, nil
}

// registerMetrics shows the store's metrics until Close.
func (s *Store) registerMetrics() error {
	if s.options.Registerer == nil {
		return nil
	}
	c := newCollector(s)
	if err := s.options.Registerer.Register(c); err != nil {
		return errors.Join(fmt.Errorf("store: metrics: %w", err), s.Close())
	}
	s.metrics = c
	return nil
}

// openDatabase makes the named database the store's. What was open before is let go.
func (s *Store) openDatabase(name string) error {
	d, err := openDisk(&s.options, name)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	l, err := loadDatabase(d.db)
	if err != nil {
		return errors.Join(fmt.Errorf("store in %s: %w", d.path, err), d.release())
	}
	s.install(d, name, l)
	return nil
}

func (s *Store) install(d *disk, name string, l *loaded) {
	s.filter, s.stages, s.broken = l.filter, l.stages, nil
	s.blocks = newBlockCache(l.memory.dict, applierBlocks)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk, s.dir, s.memory, s.jobs = d, name, l.memory, l.quarantine
}

// Close closes the store when the last view is closed. Views that are open stay
// usable. The data of all commands that were applied are made durable.
func (s *Store) Close() error {
	err := s.Flush()
	s.mu.Lock()
	d := s.disk
	s.disk = nil
	s.mu.Unlock()
	if d == nil {
		return nil
	}
	if s.metrics != nil {
		s.options.Registerer.Unregister(s.metrics)
	}
	return errors.Join(err, d.release())
}

// Applied returns the index and term of the last command that was applied; after
// Open, of the last one that survived on disk.
func (s *Store) Applied() (index, term uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.memory.Index, s.memory.Term
}

// Hash returns the state hash and the index that it belongs to.
func (s *Store) Hash() (uint64, Hash) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.memory.Index, s.memory.Hash
}

// HashAt returns the state hash at the index of a [HashCheckCommand]; false when
// the store does not remember it: only the last 16 since the start are kept.
func (s *Store) HashAt(index uint64) (Hash, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h, ok := s.hashes[index]
	return h, ok
}

// LastHash returns the newest state hash that the store remembers of a
// [HashCheckCommand], and its index; false when there is none since the start.
func (s *Store) LastHash() (index uint64, h Hash, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.order) == 0 {
		return 0, Hash{}, false
	}
	index = s.order[len(s.order)-1]
	return index, s.hashes[index], true
}

const rememberedHashes = 16

// rememberHash is called under the lock.
func (s *Store) rememberHash(index uint64, h Hash) {
	s.hashes[index] = h
	s.order = append(s.order, index)
	if len(s.order) > rememberedHashes {
		delete(s.hashes, s.order[0])
		s.order = s.order[1:]
	}
}

// Cluster returns the id that [SetClusterCommand] gave, "" before, and the
// cluster version.
func (s *Store) Cluster() (id string, version uint32) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.memory.Cluster, s.memory.Version
}

// Flush returns when every command that was applied before is durable.
func (s *Store) Flush() error {
	d, err := s.acquireDisk()
	if err != nil {
		return nil //nolint:nilerr // closed: Close has flushed
	}
	return errors.Join(d.db.LogData(nil, pebble.Sync), d.release())
}

// acquireDisk returns the database with a reference that must be released.
func (s *Store) acquireDisk() (*disk, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.disk == nil {
		return nil, ErrClosed
	}
	s.disk.acquire()
	return s.disk, nil
}

// Checkpoint writes a consistent and durable image of the store into dir, which
// must not exist. It may run beside Apply; nothing in dir changes afterwards.
func (s *Store) Checkpoint(dir string) error {
	d, err := s.acquireDisk()
	if err != nil {
		return err
	}
	err = d.db.Checkpoint(dir, pebble.WithFlushedWAL())
	return errors.Join(err, d.release())
}

// BytesOnDisk returns how much the database takes, its log included.
func (s *Store) BytesOnDisk() uint64 {
	d, err := s.acquireDisk()
	if err != nil {
		return 0
	}
	defer func() { _ = d.release() }() // it was only read
	return d.db.Metrics().DiskSpaceUsage()
}

// ErrHeld is what [Store.Compact] returns when something that no new view shows stays in
// the files, since a view that was open meanwhile may read it.
var ErrHeld = errors.New("an open view holds what was dropped")

// Compact rewrites the database so that it takes the least room: for operators
// and measurements. It may take long and runs beside everything else. After
// [ErrHeld] all but what open views hold is rewritten.
func (s *Store) Compact() error {
	d, err := s.acquireDisk()
	if err != nil {
		return err
	}
	return errors.Join(d.compact(), d.release())
}

// loaded is what Open reads from a database.
type loaded struct {
	memory     *memory
	quarantine quarantineCounts
	filter     *filter
	stages     map[Upload]stageHead

	totals loadTotals
}

// loadDatabase reads a database, and returns an error that wraps [ErrCorrupt] when it is
// not all that was written into it.
func loadDatabase(r pebble.Reader) (*loaded, error) {
	l := &loaded{memory: &memory{dict: columns.NewDict()}, stages: map[Upload]stageHead{}}
	for _, part := range []func(pebble.Reader) error{l.loadState, l.loadSums, l.loadDict, l.loadZones, l.loadBlockSums,
		l.loadWaiting, l.loadOpen, l.loadPairs, l.loadArchives, l.loadStages, l.loadAnomalies, l.loadFilter, l.compareTotals} {
		if err := part(r); err != nil {
			return nil, classifyOpenError(err)
		}
	}
	return l, nil
}

func (l *loaded) loadState(r pebble.Reader) error {
	var err error
	l.memory.state, err = readState(r)
	return err
}

func (l *loaded) loadDict(r pebble.Reader) error {
	err := scanPrefix(r, []byte{tableDict}, func(key, value []byte) error {
		table, id := splitDictKey(key)
		return l.memory.dict.Load(columns.Entry{Table: table, ID: id, Data: append([]byte(nil), value...)})
	})
	if err != nil {
		return fmt.Errorf("dictionary: %w", err)
	}
	b, _, err := getValue(r, dictStateKey)
	if err != nil {
		return err
	}
	return l.memory.dict.LoadState(b)
}

func (l *loaded) loadZones(r pebble.Reader) error {
	return scanPrefix(r, []byte{tableZone}, func(key, value []byte) error {
		z, err := decodeZone(keySeq(key), value)
		l.memory.zones = append(l.memory.zones, z)
		return err
	})
}

func (l *loaded) loadWaiting(r pebble.Reader) error {
	return scanPrefix(r, []byte{tableWaiting}, func(key, value []byte) error {
		w, err := decodeWaiting(value)
		if err != nil {
			return fmt.Errorf("waiting row %d: %w", keySeq(key), err)
		}
		if w.row.Seq = keySeq(key); !w.dead {
			w.sum = l.totals.addRow(&w.row)
		}
		l.memory.waiting = append(l.memory.waiting, w)
		return nil
	})
}

func (l *loaded) loadStages(r pebble.Reader) error {
	return scanPrefix(r, []byte{tableStageHead}, func(key, value []byte) error {
		head, err := decodeNew[stageHead](value, smallFormat, "upload")
		l.stages[Upload(key[1:])] = head
		return err
	})
}

// loadFilter reads the ids in one goroutine and adds them in another.
func (l *loaded) loadFilter(r pebble.Reader) error {
	l.filter = newFilter(int(l.memory.Rows))
	chunks, done := make(chan []uint64, 8), make(chan error, 1)
	go func() {
		defer close(chunks)
		done <- l.totals.hashIDs(r, chunks)
	}()
	for chunk := range chunks {
		l.filter.addIDs(chunk)
	}
	return <-done
}

const hashChunk = 2048

// hashIDs sends the hashes of all ids, and counts what they show.
func (f *loadTotals) hashIDs(r pebble.Reader, out chan<- []uint64) error {
	chunk := make([]uint64, 0, hashChunk)
	err := scanPrefix(r, []byte{tableIndex}, func(key, value []byte) error {
		chunk = append(chunk, hashID(key[1:]))
		if len(chunk) == hashChunk {
			out <- chunk
			chunk = make([]uint64, 0, hashChunk)
		}
		return f.countIndexed(key, value)
	})
	out <- chunk
	return err
}
