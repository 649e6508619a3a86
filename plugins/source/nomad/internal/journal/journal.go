package journal

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
	"github.com/bursar-accounting/bursar/proto/boltfile"
)

// file is the journal's name in the source's folder.
const file = "allocations.db"

// version of an entry's written form: it stands before each.
const version = 1

// Journal holds entries by the allocation's id.
type Journal struct {
	db *bbolt.DB
	id string
}

var (
	allocations = []byte("allocations")
	settings    = []byte("settings")
)

// Open opens the journal in dir, and creates it with that id when it is missing. While
// another process has it open, Open waits until ctx ends; the error then wraps
// [boltfile.ErrInUse]. With an empty dir the journal is temporary.
func Open(ctx context.Context, dir, id string) (*Journal, error) {
	db, err := openFile(ctx, dir)
	if errors.Is(err, boltfile.ErrDamaged) {
		return nil, fmt.Errorf("journal: %w; remove the file: the source then asks Nomad for what ran meanwhile", err)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{db: db, id: id}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(allocations)
		b, err2 := tx.CreateBucketIfNotExists(settings)
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

func openFile(ctx context.Context, dir string) (*bbolt.DB, error) {
	if dir == "" {
		return boltfile.Temporary(ctx)
	}
	return boltfile.Open(ctx, filepath.Join(dir, file), boltfile.Options{})
}

// Read opens the journal in dir for reading. The error wraps [io/fs.ErrNotExist] when it
// is missing.
func Read(ctx context.Context, dir string) (*Journal, error) {
	db, err := boltfile.Open(ctx, filepath.Join(dir, file), boltfile.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &Journal{db: db}, nil
}

// ID is what the journal is known by.
func (j *Journal) ID() string { return j.id }

// Close closes the journal.
func (j *Journal) Close() error { return j.db.Close() }

// Put writes entries, all or none, and returns when they are on disk.
func (j *Journal) Put(entries ...*run.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	return j.update(allocations, func(b *bbolt.Bucket) error {
		for _, e := range entries {
			text, err := encode(e)
			if err != nil {
				return err
			}
			if err := b.Put([]byte(e.Alloc.ID), text); err != nil {
				return err
			}
		}
		return nil
	})
}

// Delete removes entries.
func (j *Journal) Delete(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return j.update(allocations, func(b *bbolt.Bucket) error {
		for _, id := range ids {
			if err := b.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Set stores a value under a name.
func (j *Journal) Set(name string, value []byte) error {
	return j.update(settings, func(b *bbolt.Bucket) error { return b.Put([]byte(name), value) })
}

func (j *Journal) update(bucket []byte, change func(*bbolt.Bucket) error) error {
	err := j.db.Update(func(tx *bbolt.Tx) error { return change(tx.Bucket(bucket)) })
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Setting returns what was stored under a name; nil when it is missing.
func (j *Journal) Setting(name string) (value []byte) {
	_ = j.db.View(func(tx *bbolt.Tx) error { // only what the function returns
		value = append(value, tx.Bucket(settings).Get([]byte(name))...)
		return nil
	})
	return value
}

// Get returns an entry, and nil when it is missing.
func (j *Journal) Get(id string) (e *run.Entry, err error) {
	err = j.db.View(func(tx *bbolt.Tx) error {
		if text := tx.Bucket(allocations).Get([]byte(id)); text != nil {
			e, err = Decode(text)
		}
		return err
	})
	return e, err
}

// Each passes all entries to yield, which must not change the journal. It stops at an
// entry that cannot be read.
func (j *Journal) Each(yield func(*run.Entry) error) error {
	return j.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(allocations).ForEach(func(_, text []byte) error {
			e, err := Decode(text)
			if err != nil {
				return err
			}
			return yield(e)
		})
	})
}

func encode(e *run.Entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	return append(binary.AppendUvarint(nil, version), text...), nil
}

// Decode reads the written form of an entry.
func Decode(text []byte) (*run.Entry, error) {
	v, n := binary.Uvarint(text)
	if n <= 0 || v != version {
		return nil, fmt.Errorf("journal: entry version %d not supported, only %d; upgrade the plugin", v, version)
	}
	e := run.New()
	if err := json.Unmarshal(text[n:], e); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	for name, t := range e.Tasks {
		if t == nil {
			delete(e.Tasks, name)
		}
	}
	return e, nil
}
