package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/proto/boltfile"
)

// ErrClosed is the error of a journal that was closed.
var ErrClosed = errors.New("the journal is closed")

// ErrFull is the error of a journal that holds as much as it may of what is not
// settled.
var ErrFull = errors.New("the journal is full")

// file is the journal's name in its folder.
const file = "journal.db"

var bucket = []byte("entries") // stamp → entry

// Options of Open.
type Options struct {
	Dir string
	Log *slog.Logger

	// Keep is how long an entry stays after it was settled.
	Keep time.Duration
	// MaxSize limits the bytes of the file that are in use; 0: 1 GiB.
	MaxSize int64

	// Committed is called with entries that are on disk, in their order, before
	// Append returns. It must not call the journal.
	Committed func([]Entry)
}

// Journal is open in one process at a time. Its methods are safe for many goroutines.
type Journal struct {
	opt   Options
	db    *bbolt.DB
	queue chan *write

	closing   chan struct{}
	closeOnce sync.Once
	wrote     sync.WaitGroup

	recent recent // of the writer

	mu   sync.Mutex // guards what follows
	last int64      // the last stamp
}

type write struct {
	event event.Event
	done  chan error
}

// Open opens the journal in a folder, and creates both when they are missing. While
// another process has it open it waits, until ctx ends.
func Open(ctx context.Context, opt Options) (*Journal, error) {
	if opt.MaxSize == 0 {
		opt.MaxSize = 1 << 30
	}
	path := filepath.Join(opt.Dir, file)
	db, err := boltfile.Open(ctx, path, boltfile.Options{})
	if errors.Is(err, boltfile.ErrDamaged) {
		err = fmt.Errorf("%w; move the file away: the jobs of epilogs in it that have no record yet are then known to slurmdbd only", err)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{opt: opt, db: db, queue: make(chan *write), closing: make(chan struct{})}
	if err := errors.Join(refuseSegments(opt.Dir), j.loadState()); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: %w", err), db.Close())
	}
	j.wrote.Go(j.commitLoop)
	return j, nil
}

// refuseSegments returns an error where a version before 1.0 kept the journal.
func refuseSegments(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, strings.Repeat("[0-9]", 20)+".log"))
	if err == nil && len(old) > 0 {
		err = fmt.Errorf("%s is of a version before 1.0, which this one does not read; move it away: the jobs of epilogs in it that have no record yet are then known to slurmdbd only", old[0])
	}
	return err
}

// loadState finds the last stamp and the newest ids.
func (j *Journal) loadState() error {
	return j.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return err
		}
		c := b.Cursor()
		k, line := c.Last()
		if k != nil {
			j.last = stampOf(k)
		}
		for n := 0; k != nil && n < generation; n++ {
			if e, err := parseEntry(line); err == nil {
				j.recent.addID(e.ID)
			}
			k, line = c.Prev()
		}
		return nil
	})
}

func keyOf(stamp int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(stamp)) } //nolint:gosec // stamps are positive

func stampOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key)) } //nolint:gosec // stamps are positive

// Append returns after the event is on disk. An event that came before is taken for
// the same.
func (j *Journal) Append(e event.Event) error {
	w := &write{e, make(chan error, 1)}
	select {
	case j.queue <- w:
		return <-w.done
	case <-j.closing:
		return ErrClosed
	}
}

// AppendAll is Append for many, which share syncs.
func (j *Journal) AppendAll(events []event.Event) error {
	done := make(chan error, 1)
	for _, e := range events {
		go func() { done <- j.Append(e) }()
	}
	var err error
	for range events {
		err = errors.Join(err, <-done)
	}
	return err
}

// maxGroup is how many events share one sync.
const maxGroup = 512

func (j *Journal) commitLoop() {
	for {
		select {
		case w := <-j.queue:
			j.commitGroup(j.gatherGroup(w))
		case <-j.closing:
			return
		}
	}
}

// gatherGroup takes what waits beside w.
func (j *Journal) gatherGroup(w *write) []*write {
	group := []*write{w}
	for len(group) < maxGroup {
		select {
		case w := <-j.queue:
			group = append(group, w)
		default:
			return group
		}
	}
	return group
}

// commitGroup writes a group and answers those who wait.
func (j *Journal) commitGroup(group []*write) {
	entries, err := j.writeGroup(group)
	if err == nil && len(entries) > 0 && j.opt.Committed != nil {
		j.opt.Committed(entries)
	}
	for _, w := range group {
		w.done <- err
	}
}

// writeGroup puts the events of a group that are new into the file, in one transaction.
func (j *Journal) writeGroup(group []*write) ([]Entry, error) {
	var entries []Entry
	fresh := map[string]bool{}
	for _, w := range group {
		if !j.recent.hasID(w.event.ID) && !fresh[w.event.ID] {
			fresh[w.event.ID] = true
			entries = append(entries, Entry{j.nextStamp(), w.event})
		}
	}
	if len(entries) == 0 {
		return nil, nil
	}
	if used := j.usedBytes(); used > j.opt.MaxSize {
		return nil, fmt.Errorf("%w: %d bytes in %s wait for slurmdbd, or are kept for a recollection", ErrFull, used, j.db.Path())
	}
	err := j.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		b.FillPercent = 1 // keys only grow
		for i := range entries {
			line, err := encodeEntry(&entries[i])
			if err != nil {
				return err
			}
			if err := b.Put(keyOf(entries[i].Stamp), line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	for id := range fresh {
		j.recent.addID(id)
	}
	return entries, nil
}

// usedBytes is how many bytes of the file hold something.
func (j *Journal) usedBytes() (bytes int64) {
	_ = j.db.View(func(tx *bbolt.Tx) error { // only what the function returns
		bytes = tx.Size()
		return nil
	})
	free := j.db.Stats()
	return bytes - int64(free.FreePageN+free.PendingPageN)*int64(j.db.Info().PageSize)
}

// nextStamp returns the next one.
func (j *Journal) nextStamp() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = max(j.last+1, time.Now().UnixMicro())
	return j.last
}

// Raise makes all later stamps greater than one that was seen elsewhere.
func (j *Journal) Raise(stamp int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = max(j.last, stamp)
}

// Last is the stamp of the last entry, or a greater one.
func (j *Journal) Last() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// page is how many entries one transaction reads or deletes.
const page = 1000

// After calls yield with the entries behind a stamp, in their order. Those that are
// appended meanwhile may be among them. Corrupt entries are logged and skipped.
func (j *Journal) After(stamp int64, yield func(Entry) error) error {
	stamp = max(stamp, 0)
	for {
		from := stamp
		var entries []Entry
		err := j.db.View(func(tx *bbolt.Tx) error {
			c := tx.Bucket(bucket).Cursor()
			k, line := c.Seek(keyOf(from + 1))
			for n := 0; k != nil && n < page; n++ {
				stamp = stampOf(k)
				if e, err := parseEntry(line); err != nil {
					j.logCorrupt(j.db.Path(), err)
				} else {
					entries = append(entries, e)
				}
				k, line = c.Next()
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		if stamp == from {
			return nil
		}
		for _, e := range entries { // outside of the transaction: it may take long
			if err := yield(e); err != nil {
				return err
			}
		}
	}
}

func (j *Journal) logCorrupt(path string, err error) {
	j.opt.Log.Warn("skipping corrupt entry of the journal", "file", path, "error", err)
}

// Settled reports that the entries up to a stamp are needed only for a recollection.
// Those that are older than [Options].Keep are deleted, and younger ones too while the
// journal uses more than half of its size. The last entry stays: it has the last stamp.
func (j *Journal) Settled(stamp int64) {
	limit := stamp
	if j.usedBytes() < j.opt.MaxSize/2 {
		limit = min(stamp, time.Now().Add(-j.opt.Keep).UnixMicro())
	}
	for more := true; more; {
		keys, err := j.firstKeys(limit)
		if err == nil && len(keys) > 0 {
			err = j.db.Update(func(tx *bbolt.Tx) error {
				for _, k := range keys {
					if err := tx.Bucket(bucket).Delete(k); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			j.opt.Log.Warn("old entries of the journal cannot be deleted", "error", err)
		}
		more = err == nil && len(keys) == page
	}
}

// firstKeys returns the keys of the first entries up to a stamp, but not that of the last
// entry.
func (j *Journal) firstKeys(limit int64) (keys [][]byte, err error) {
	err = j.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucket).Cursor()
		last, _ := c.Last()
		for k, _ := c.First(); k != nil && len(keys) < page && stampOf(k) <= limit && stampOf(k) < stampOf(last); k, _ = c.Next() {
			keys = append(keys, append([]byte(nil), k...))
		}
		return nil
	})
	return keys, err
}

// Close closes the journal. What is being appended is finished or refused.
func (j *Journal) Close() error {
	j.closeOnce.Do(func() { close(j.closing) })
	j.wrote.Wait()
	return j.db.Close()
}

// recent remembers the ids of the events that came last.
type recent struct{ young, old map[string]bool }

// generation is how many are remembered at least.
const generation = 1 << 14

func (r *recent) hasID(id string) bool { return r.young[id] || r.old[id] }

func (r *recent) addID(id string) {
	if r.young == nil || len(r.young) >= generation {
		r.young, r.old = map[string]bool{}, r.young
	}
	r.young[id] = true
}
