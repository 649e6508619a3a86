package buffer

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/boltfile"
	"github.com/bursar-accounting/bursar/proto/frame"
)

// Epoch names one buffer on one machine.
type Epoch [16]byte

// Source names a source of the agent. The zero Source is for frames of no
// source: what was pushed to the agent.
type Source struct {
	Type  string
	Label string
}

// storageKey is the source's key in the file.
func (s Source) storageKey() []byte { return []byte(s.Type + "\x00" + s.Label) }

// String returns type/label.
func (s Source) String() string { return s.Type + "/" + s.Label }

// Options of [Open]. The zero value of a field means its default.
type Options struct {
	// MaxSize bounds the bytes of the chunks that are kept; default 8 GiB.
	MaxSize int64
	// Retain is for how long acknowledged frames are kept, so that a lost
	// aggregator can be refilled; default 30 days.
	Retain time.Duration
	// Machine identifies the machine; default: /etc/machine-id and the file's
	// inode. A file that was written under another name gets a new epoch.
	Machine string
	// Now is the wall clock; default time.Now.
	Now func() time.Time
	// NoSync leaves out the fsync. It is for benchmarks of the rest and breaks
	// every promise of this package.
	NoSync bool
}

func (o *Options) fillDefaults() {
	if o.MaxSize == 0 {
		o.MaxSize = 8 << 30
	}
	if o.Retain == 0 {
		o.Retain = 30 * 24 * time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Buffer is safe for use by many goroutines.
type Buffer struct {
	db    *bbolt.DB
	opt   Options
	clock *Clock

	mu      sync.Mutex
	damaged *DamageError  // the last that was found; nil: none
	state   state         // as committed
	changed chan struct{} // closed and replaced at every append
}

// state is the file's head: what is not in the chunks.
type state struct {
	epoch  Epoch
	first  uint64 // sequence number of the oldest frame; last+1 when there is none
	last   uint64 // of the newest frame
	digest frame.Digest
	bytes  int64 // of all chunks

	generation uint64 // counts the times that sources were sent back; not in the file
}

// The buckets of the file.
var (
	bucketMeta     = []byte("meta")
	bucketChunks   = []byte("chunks")   // first sequence number → time of the append, chunk
	bucketSources  = []byte("sources")  // source → checkpoint
	bucketRewind   = []byte("rewind")   // source → microseconds to step back, cluster
	bucketQueue    = []byte("queue")    // source, cluster or own → checkpoint to go back to afterwards
	bucketClusters = []byte("clusters") // cluster → acknowledged position, time
	bucketOpen     = []byte("open")     // source, run → note on a running job

	bucketForgotten = []byte("forgotten") // cluster → what it had acknowledged
	bucketBegun     = []byte("begun")     // cluster → the frame behind which it began, where that is not 0
	bucketTold      = []byte("told")      // cluster → the frame with the last gap that it was told, its reason
	bucketAudits    = []byte("audits")    // source, begin of a day → when the day was last counted
	bucketVersions  = []byte("versions")  // cluster → the protocol version that it takes
	bucketFindings  = []byte("findings")  // source → what was found about its records
)

const fileFormat = 1

// The keys of the bucket meta.
var (
	keyFormat  = []byte("format")
	keyEpoch   = []byte("epoch")
	keyMachine = []byte("machine")
	keyHead    = []byte("head")
	keyClock   = []byte("clock")
)

// Open opens or makes the buffer's file. The caller closes it. It fails with
// [ErrFormat] on a file of a later release, with an error that wraps [ErrDamaged] and
// names the remedy on a file whose structure is broken, and when another process
// holds it.
func Open(path string, opt Options) (*Buffer, error) {
	opt.fillDefaults()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	db, err := boltfile.Open(ctx, path, boltfile.Options{NoSync: opt.NoSync})
	if errors.Is(err, boltfile.ErrInUse) {
		return nil, fmt.Errorf("buffer: %w: is another agent running on it?", err)
	}
	if err != nil {
		return nil, unreadableFile(path, err)
	}
	b := &Buffer{db: db, opt: opt, changed: make(chan struct{})}
	if opt.Machine == "" {
		b.opt.Machine = machineOf(path)
	}
	if err := b.readHead(); err != nil {
		return nil, errors.Join(unreadableFile(path, err), db.Close())
	}
	return b, nil
}

// Close closes the file. Calls that wait return.
func (b *Buffer) Close() error {
	b.mu.Lock()
	b.notifyWaiting()
	b.mu.Unlock()
	return b.db.Close()
}

// readHead reads the head and makes what is missing.
func (b *Buffer) readHead() error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketChunks, bucketSources, bucketRewind, bucketQueue, bucketClusters, bucketOpen, bucketForgotten, bucketBegun, bucketTold, bucketAudits, bucketVersions, bucketFindings} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if err := checkFormat(meta); err != nil {
			return err
		}
		if err := b.loadHead(meta); err != nil {
			return err
		}
		if err := checkHead(tx, &b.state); err != nil {
			return err
		}
		last, err := parseClock(meta.Get(keyClock))
		if err != nil {
			return err
		}
		b.clock = &Clock{now: b.opt.Now, last: last}
		return b.loadEpoch(meta)
	})
}

func checkFormat(meta *bbolt.Bucket) error {
	v := meta.Get(keyFormat)
	if v == nil {
		return meta.Put(keyFormat, []byte{fileFormat})
	}
	if len(v) != 1 || v[0] != fileFormat {
		return fmt.Errorf("%w: % x", ErrFormat, v)
	}
	return nil
}

func (b *Buffer) loadHead(meta *bbolt.Bucket) error {
	v := meta.Get(keyHead)
	if v == nil {
		b.state = state{first: 1}
		return nil
	}
	s, err := parseHead(v)
	b.state = s
	return err
}

// checkHead compares the head with the chunks. Without it a head that was damaged would
// hide frames, or begin to number them again. A chunk that is damaged itself is for
// [Buffer.Read] to name, after what is before it was read.
func checkHead(tx *bbolt.Tx, s *state) error {
	c := tx.Bucket(bucketChunks).Cursor()
	first, _ := c.First()
	if first == nil {
		if s.first != s.last+1 {
			return fmt.Errorf("%w: the frames %d to %d are missing", boltfile.ErrDamaged, s.first, s.last)
		}
		return nil
	}
	if !bytes.Equal(first, sequenceKey(s.first)) {
		return fmt.Errorf("%w: the frames begin at %x, and the head names %d", boltfile.ErrDamaged, first, s.first)
	}
	_, value := c.Last()
	header, err := peekHeader(value)
	if err != nil || frame.Check(value[8:]) != nil {
		return nil //nolint:nilerr // as above
	}
	if header.Last() != s.last || header.After != s.digest {
		return fmt.Errorf("%w: the frames end at %d, and the head names %d, or with another digest", boltfile.ErrDamaged, header.Last(), s.last)
	}
	return nil
}

// loadEpoch takes the file's epoch, or makes one when the file is new or comes
// from another machine.
func (b *Buffer) loadEpoch(meta *bbolt.Bucket) error {
	if v := meta.Get(keyEpoch); len(v) == len(b.state.epoch) && string(meta.Get(keyMachine)) == b.opt.Machine {
		copy(b.state.epoch[:], v)
		return nil
	}
	return b.renewEpoch(meta, &b.state)
}

// renewEpoch gives the buffer a new epoch in s.
func (b *Buffer) renewEpoch(meta *bbolt.Bucket, s *state) error {
	if _, err := rand.Read(s.epoch[:]); err != nil {
		return err
	}
	return errors.Join(meta.Put(keyEpoch, s.epoch[:]), meta.Put(keyMachine, []byte(b.opt.Machine)))
}

// machineOf names the machine and the file on it, so that a copy is told from the
// original.
func machineOf(path string) string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		id = nil // a machine without one is told by its file alone
	}
	return string(id) + inodeOf(path)
}

// notifyWaiting wakes all who wait for an append. b.mu is held.
func (b *Buffer) notifyWaiting() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// updateHead runs fn on a copy of the head in one durable transaction and takes the
// copy over when it is committed.
func (b *Buffer) updateHead(fn func(tx *bbolt.Tx, s *state) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	err := b.db.Update(func(tx *bbolt.Tx) error {
		if err := fn(tx, &s); err != nil {
			return err
		}
		meta := tx.Bucket(bucketMeta)
		return errors.Join(meta.Put(keyHead, s.encodeState()), meta.Put(keyClock, b.clock.clockBytes()))
	})
	if err != nil {
		return err
	}
	if s.last != b.state.last {
		b.notifyWaiting()
	}
	b.state = s
	return nil
}

func (b *Buffer) currentHead() (state, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.changed
}

// Clock returns the buffer's clock, by which frames are stamped.
func (b *Buffer) Clock() *Clock { return b.clock }

// Epoch returns the buffer's present epoch.
func (b *Buffer) Epoch() Epoch {
	s, _ := b.currentHead()
	return s.epoch
}

// Stats says how much the buffer holds.
type Stats struct {
	Epoch    Epoch
	First    uint64 // sequence number of the oldest frame; Last+1 when there is none
	Last     uint64 // of the newest frame
	Bytes    int64  // of the chunks
	MaxBytes int64
	// Clusters that are known, by their ids: those that have resumed or
	// acknowledged and were not forgotten since.
	Clusters map[string]Ack
	// Damage says which frames were found to be there and cannot be read; nil for
	// none.
	Damage *DamageError
}

// Stats returns the present counts.
func (b *Buffer) Stats() (Stats, error) {
	s, _ := b.currentHead()
	st := Stats{Epoch: s.epoch, First: s.first, Last: s.last, Bytes: s.bytes, MaxBytes: b.opt.MaxSize, Damage: b.damageNow(&s)}
	err := b.db.View(func(tx *bbolt.Tx) error {
		var err error
		st.Clusters, err = readAcks(tx)
		return err
	})
	return st, err
}
