package seen

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/boltfile"
)

// Options of [Open].
type Options struct {
	// Remember is for how long an id is known at least; months are forgotten whole.
	Remember time.Duration
	Now      func() time.Time
	Log      *slog.Logger
	// NoSync leaves out what makes writes durable, for tests.
	NoSync bool
}

// IDs are the ids that were taken. They are for one goroutine at a time.
type IDs struct {
	opt  Options
	db   *bbolt.DB
	file FileID
	last uint64 // the greatest batch
	dead []span // batches that never came to be, in their order
}

// span is a range of batches, both ends in it.
type span struct{ from, to uint64 }

// The file: meta has the format, the file's id, the last batch and the dead spans;
// one bucket a month has the hashes of its ids, each with its batch.
const (
	fileFormat  = 1
	monthPrefix = "ids-"
	monthLayout = monthPrefix + "2006-01"
	hashSize    = 16
)

var (
	bucketMeta = []byte("meta")
	keyFormat  = []byte("format")
	keyFile    = []byte("file")
	keyLast    = []byte("last")
	keyDead    = []byte("dead")
)

// errFormat says that a file is none of this version.
var errFormat = errors.New("the file has another format")

// lockTimeout is how long Open waits for a process that still has the file.
const lockTimeout = 20 * time.Second

// Open opens the file, or makes one. A file that cannot be read is put aside and a
// new one begun, because nothing is lost with it: a client that pushes again is
// heard again.
func Open(path string, opt Options) (*IDs, error) {
	k, err := openFile(path, opt)
	if err == nil || errors.Is(err, boltfile.ErrInUse) || errors.Is(err, os.ErrPermission) {
		return k, err
	}
	aside := path + ".damaged"
	opt.Log.Error("the file of known ids cannot be read and is put aside; a record that is pushed a second time is taken once more, which changes nothing", "file", aside, "error", err)
	if err := os.Rename(path, aside); err != nil {
		return nil, err
	}
	return openFile(path, opt)
}

func openFile(path string, opt Options) (*IDs, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	db, err := boltfile.Open(ctx, path, boltfile.Options{NoSync: opt.NoSync})
	if err != nil {
		return nil, err
	}
	k := &IDs{opt: opt, db: db}
	if err := db.Update(k.loadMeta); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return k, nil
}

// loadMeta reads meta, and writes it into a new file.
func (k *IDs) loadMeta(tx *bbolt.Tx) error {
	if tx.Bucket(bucketMeta) == nil {
		if _, err := rand.Read(k.file[:]); err != nil {
			return err
		}
		return k.createMeta(tx)
	}
	meta := tx.Bucket(bucketMeta)
	if f := meta.Get(keyFormat); len(f) != 1 || f[0] != fileFormat {
		return errFormat
	}
	last := meta.Get(keyLast)
	if copy(k.file[:], meta.Get(keyFile)) != len(k.file) || len(last) != 8 {
		return errFormat
	}
	k.last = binary.BigEndian.Uint64(last)
	var ok bool
	if k.dead, ok = parseSpans(meta.Get(keyDead)); !ok {
		return errFormat
	}
	return nil
}

func (k *IDs) createMeta(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucket(bucketMeta)
	if err != nil {
		return err
	}
	return errors.Join(meta.Put(keyFormat, []byte{fileFormat}), meta.Put(keyFile, k.file[:]), meta.Put(keyLast, encodeNumber(0)))
}

// Close closes the file.
func (k *IDs) Close() error { return k.db.Close() }

// Checkpoint is that of all that was put.
func (k *IDs) Checkpoint() Checkpoint { return Checkpoint{File: k.file, Batch: k.last} }

// Resume forgets what was put and is not in the buffer, whose checkpoint is given.
// It reports whether the buffer's checkpoint is that of all that was put.
func (k *IDs) Resume(checkpoint []byte) (whole bool, err error) {
	at, ok := ParseCheckpoint(checkpoint)
	if !ok || at.File != k.file {
		at = Checkpoint{} // of another file, or of none
	}
	if at.Batch == k.last {
		return ok && at.File == k.file, nil
	}
	next, dead := max(k.last, at.Batch), k.dead
	if at.Batch < k.last {
		dead = addSpan(slices.Clone(dead), span{at.Batch + 1, k.last})
	}
	err = k.db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		return errors.Join(meta.Put(keyLast, encodeNumber(next)), meta.Put(keyDead, spansBytes(dead)))
	})
	if err != nil {
		return false, fmt.Errorf("known ids: %w", err)
	}
	whole = at.Batch > k.last
	k.last, k.dead = next, dead
	return whole, nil
}

// Alive reports whether a batch is in the buffer, as far as Resume was told.
func (k *IDs) Alive(batch uint64) bool {
	if batch > k.last {
		return false
	}
	_, found := slices.BinarySearchFunc(k.dead, batch, func(s span, b uint64) int {
		switch {
		case b < s.from:
			return 1
		case b > s.to:
			return -1
		}
		return 0
	})
	return !found
}

// Known returns those of the ids that were taken.
func (k *IDs) Known(ids []string) (map[string]bool, error) {
	known := map[string]bool{}
	err := k.db.View(func(tx *bbolt.Tx) error {
		months := monthsOf(tx)
		for _, id := range ids {
			if k.hasKey(tx, months, hashID(id)) {
				known[id] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("known ids: %w", err)
	}
	return known, nil
}

func (k *IDs) hasKey(tx *bbolt.Tx, months []string, key []byte) bool {
	for _, month := range months {
		if v := tx.Bucket([]byte(month)).Get(key); len(v) == 8 && k.Alive(binary.BigEndian.Uint64(v)) {
			return true
		}
	}
	return false
}

// Put notes a batch of ids durably and returns the checkpoint with which their
// records go into the buffer. The batch counts from then on, unless Resume says
// that it did not come there.
func (k *IDs) Put(ids []string) (Checkpoint, error) {
	next := Checkpoint{File: k.file, Batch: k.last + 1}
	now := k.opt.Now().UTC()
	err := k.db.Update(func(tx *bbolt.Tx) error {
		if err := k.dropMonths(tx, now); err != nil {
			return err
		}
		month, err := tx.CreateBucketIfNotExists([]byte(now.Format(monthLayout)))
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := month.Put(hashID(id), encodeNumber(next.Batch)); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyLast, encodeNumber(next.Batch))
	})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("known ids: %w", err)
	}
	k.last = next.Batch
	return next, nil
}

// dropMonths drops the months that ended before all that is to be remembered.
func (k *IDs) dropMonths(tx *bbolt.Tx, now time.Time) error {
	for _, month := range monthsOf(tx) {
		begin, err := time.Parse(monthLayout, month)
		if err == nil && begin.AddDate(0, 1, 0).Before(now.Add(-k.opt.Remember)) {
			if err := tx.DeleteBucket([]byte(month)); err != nil {
				return err
			}
		}
	}
	return nil
}

// monthsOf lists the buckets of ids, the newest first.
func monthsOf(tx *bbolt.Tx) []string {
	var months []string
	_ = tx.ForEach(func(name []byte, _ *bbolt.Bucket) error { // the function returns no error
		if strings.HasPrefix(string(name), monthPrefix) {
			months = append(months, string(name))
		}
		return nil
	})
	slices.Reverse(months)
	return months
}

// hashID stands for an id. Two ids of one hash would cost a record, so it is long.
func hashID(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:hashSize]
}

func encodeNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// addSpan adds a span that ends at the last batch there is, or later than all.
func addSpan(dead []span, s span) []span {
	for len(dead) > 0 && dead[len(dead)-1].to+1 >= s.from {
		s.from = min(s.from, dead[len(dead)-1].from)
		dead = dead[:len(dead)-1]
	}
	return append(dead, s)
}

func spansBytes(dead []span) []byte {
	var b []byte
	for _, s := range dead {
		b = append(append(b, encodeNumber(s.from)...), encodeNumber(s.to)...)
	}
	return b
}

func parseSpans(b []byte) (dead []span, ok bool) {
	if len(b)%16 != 0 {
		return nil, false
	}
	for ; len(b) > 0; b = b[16:] {
		s := span{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
		if s.from > s.to || len(dead) > 0 && dead[len(dead)-1].to >= s.from {
			return nil, false
		}
		dead = append(dead, s)
	}
	return dead, true
}
