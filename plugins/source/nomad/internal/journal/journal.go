package journal

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
	"github.com/bursar-accounting/bursar/proto/boltfile"
)

// file is the journal's name in the source's folder.
const file = "allocations.db"

// version of an entry's written form: it stands before each.
const version = 1

// Journal holds entries by the allocation's id. A Journal without a folder holds
// them in memory.
type Journal struct {
	db     *bolt.DB
	id     string
	memory map[string][]byte // in place of db
	kept   map[string][]byte // settings, in place of db
}

var (
	allocations = []byte("allocations")
	settings    = []byte("settings")
)

// ErrInUse says that another process has the journal open.
var ErrInUse = errors.New("another process uses the journal")

// Open opens the journal in dir, and makes it with that id when there is none. With
// an empty dir it is in memory.
func Open(dir, id string, wait time.Duration) (*Journal, error) {
	if dir == "" {
		return &Journal{id: id, memory: map[string][]byte{}, kept: map[string][]byte{}}, nil
	}
	path := filepath.Join(dir, file)
	if err := boltfile.Check(path); err != nil {
		return nil, fmt.Errorf("%w; remove it: the source then looks up in Nomad what ran meanwhile", err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: wait})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	j := &Journal{db: db, id: id}
	err = db.Update(func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists(allocations); err != nil {
			return err
		}
		b, err := tx.CreateBucketIfNotExists(settings)
		if err != nil {
			return err
		}
		if known := b.Get([]byte("id")); known != nil {
			j.id = string(known)
			return nil
		}
		return b.Put([]byte("id"), []byte(id))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return j, nil
}

// Read opens the journal in dir for reading. The error is [fs.ErrNotExist] when there
// is none.
func Read(dir string, wait time.Duration) (*Journal, error) {
	path := filepath.Join(dir, file)
	if _, err := os.Stat(path); dir == "" || err != nil {
		return nil, fmt.Errorf("%s: %w", path, cmp.Or(err, fs.ErrNotExist))
	}
	if err := boltfile.Check(path); err != nil {
		return nil, err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: wait, ReadOnly: true})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Journal{db: db}, nil
}

// ID is what the journal is known by.
func (j *Journal) ID() string { return j.id }

// Close closes the journal.
func (j *Journal) Close() error {
	if j.db == nil {
		return nil
	}
	return j.db.Close()
}

// Put writes entries, all or none, and returns when they are on disk.
func (j *Journal) Put(entries ...*run.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if j.db == nil {
		for _, e := range entries {
			text, err := encode(e)
			if err != nil {
				return err
			}
			j.memory[e.Alloc.ID] = text
		}
		return nil
	}
	return j.update(func(b *bolt.Bucket) error {
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
	for _, id := range ids {
		delete(j.memory, id)
	}
	if j.db == nil {
		return nil
	}
	return j.update(func(b *bolt.Bucket) error {
		for _, id := range ids {
			if err := b.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *Journal) update(change func(*bolt.Bucket) error) error {
	err := j.db.Update(func(tx *bolt.Tx) error { return change(tx.Bucket(allocations)) })
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Get returns an entry, and nil when there is none.
func (j *Journal) Get(id string) (e *run.Entry, err error) {
	if j.db == nil {
		if text := j.memory[id]; text != nil {
			return Decode(text)
		}
		return nil, nil
	}
	err = j.db.View(func(tx *bolt.Tx) error {
		if text := tx.Bucket(allocations).Get([]byte(id)); text != nil {
			e, err = Decode(text)
		}
		return err
	})
	return e, err
}

// Each hands all entries to yield, which must not change the journal. An entry that
// cannot be read ends it.
func (j *Journal) Each(yield func(*run.Entry) error) error {
	each := func(_, text []byte) error {
		e, err := Decode(text)
		if err != nil {
			return err
		}
		return yield(e)
	}
	if j.db == nil {
		for _, text := range j.memory {
			if err := each(nil, text); err != nil {
				return err
			}
		}
		return nil
	}
	return j.db.View(func(tx *bolt.Tx) error { return tx.Bucket(allocations).ForEach(each) })
}

// Setting returns what was kept under a name; nil when there is nothing.
func (j *Journal) Setting(name string) (value []byte) {
	if j.db == nil {
		return j.kept[name]
	}
	_ = j.db.View(func(tx *bolt.Tx) error { // only what the function returns
		value = append(value, tx.Bucket(settings).Get([]byte(name))...)
		return nil
	})
	return value
}

// Set keeps a value under a name.
func (j *Journal) Set(name string, value []byte) error {
	if j.db == nil {
		j.kept[name] = value
		return nil
	}
	return j.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(settings).Put([]byte(name), value) })
}

func encode(e *run.Entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return append(binary.AppendUvarint(nil, version), text...), nil
}

// Decode reads the written form of an entry.
func Decode(text []byte) (*run.Entry, error) {
	v, n := binary.Uvarint(text)
	if n <= 0 || v != version {
		return nil, fmt.Errorf("journal: an entry of version %d, only %d is known", v, version)
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
