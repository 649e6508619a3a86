package journal

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/boltfile"
)

// Form says how a source's entries are kept, which a release never changes.
type Form[E any] struct {
	File    string         // the journal's name in the source's folder
	Bucket  string         // where the entries are in it
	Version uint64         // of an entry's written form, which is JSON: it stands before each
	Key     func(E) string // names an entry
	Check   func(E) error  // refuses or mends what was read; nil: all is well
	New     func() E       // an empty entry to read into
	Remedy  string         // what happens when the file is removed, for people
}

// Journal holds entries by their keys.
type Journal[E any] struct {
	form Form[E]
	db   *bbolt.DB
	id   string
}

const settings = "settings"

// Open opens the journal in dir, and creates it with that id when it is missing. While
// another process has it open, Open waits until ctx ends; the error then wraps
// [boltfile.ErrInUse]. With an empty dir the journal is temporary.
func (f Form[E]) Open(ctx context.Context, dir, id string) (*Journal[E], error) {
	db, err := f.openDB(ctx, dir)
	if errors.Is(err, boltfile.ErrDamaged) {
		return nil, fmt.Errorf("journal: %w; remove the file: %s", err, f.Remedy)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal[E]{form: f, db: db, id: id}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(f.Bucket))
		b, err2 := tx.CreateBucketIfNotExists([]byte(settings))
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if known := b.Get([]byte("id")); known != nil {
			j.id = string(known)
			return nil
		}
		return b.Put([]byte("id"), []byte(id))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", db.Path(), err), db.Close())
	}
	return j, nil
}

func (f Form[E]) openDB(ctx context.Context, dir string) (*bbolt.DB, error) {
	if dir == "" {
		return boltfile.Temporary(ctx)
	}
	return boltfile.Open(ctx, filepath.Join(dir, f.File), boltfile.Options{})
}

// Read opens the journal in dir for reading. The error wraps [io/fs.ErrNotExist] when it
// is missing.
func (f Form[E]) Read(ctx context.Context, dir string) (*Journal[E], error) {
	db, err := boltfile.Open(ctx, filepath.Join(dir, f.File), boltfile.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &Journal[E]{form: f, db: db}, nil
}

// ID is what the journal is known by.
func (j *Journal[E]) ID() string { return j.id }

// Close closes the journal.
func (j *Journal[E]) Close() error { return j.db.Close() }

// Put writes entries, all or none, and returns when they are on disk.
func (j *Journal[E]) Put(entries ...E) error {
	if len(entries) == 0 {
		return nil
	}
	return j.updateBucket(j.form.Bucket, func(b *bbolt.Bucket) error {
		for _, e := range entries {
			text, err := j.form.Encode(e)
			if err != nil {
				return err
			}
			if err := b.Put([]byte(j.form.Key(e)), text); err != nil {
				return err
			}
		}
		return nil
	})
}

// Delete removes entries.
func (j *Journal[E]) Delete(keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	return j.updateBucket(j.form.Bucket, func(b *bbolt.Bucket) error {
		for _, key := range keys {
			if err := b.Delete([]byte(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Set stores a value under a name.
func (j *Journal[E]) Set(name string, value []byte) error {
	return j.updateBucket(settings, func(b *bbolt.Bucket) error { return b.Put([]byte(name), value) })
}

func (j *Journal[E]) updateBucket(bucket string, change func(*bbolt.Bucket) error) error {
	err := j.db.Update(func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte(bucket))) })
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Setting returns what was stored under a name; nil when it is missing.
func (j *Journal[E]) Setting(name string) (value []byte) {
	_ = j.db.View(func(tx *bbolt.Tx) error { // only what the function returns
		value = append(value, tx.Bucket([]byte(settings)).Get([]byte(name))...)
		return nil
	})
	return value
}

// Get returns an entry. Found is false when it is missing.
func (j *Journal[E]) Get(key string) (e E, found bool, err error) {
	err = j.db.View(func(tx *bbolt.Tx) error {
		text := tx.Bucket([]byte(j.form.Bucket)).Get([]byte(key))
		if text == nil {
			return nil
		}
		found = true
		e, err = j.form.Decode(text)
		return err
	})
	return e, found && err == nil, err
}

// Each passes all entries to yield, which must not change the journal. It stops at an
// entry that cannot be read.
func (j *Journal[E]) Each(yield func(E) error) error {
	return j.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(j.form.Bucket)).ForEach(func(_, text []byte) error {
			e, err := j.form.Decode(text)
			if err != nil {
				return err
			}
			return yield(e)
		})
	})
}

// Encode writes an entry as the journal keeps it.
func (f Form[E]) Encode(e E) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	return append(binary.AppendUvarint(nil, f.Version), text...), nil
}

// Decode reads what Encode wrote.
func (f Form[E]) Decode(text []byte) (E, error) {
	e := f.New()
	v, n := binary.Uvarint(text)
	if n <= 0 || v != f.Version {
		return e, fmt.Errorf("journal: entry version %d not supported, only %d; upgrade the plugin", v, f.Version)
	}
	err := json.Unmarshal(text[n:], e)
	if err == nil && f.Check != nil {
		err = f.Check(e)
	}
	if err != nil {
		return e, fmt.Errorf("journal: %w", err)
	}
	return e, nil
}
