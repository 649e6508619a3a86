package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Image is a directory that [Store.Checkpoint] wrote, opened to be looked at. It
// belongs to one goroutine at a time and must be closed. Nothing in the
// directory changes.
type Image struct {
	store *Store
	disk  *disk
	state state
}

// Summary says what an image holds.
type Summary struct {
	Cluster string // the cluster's id, "" when it has none yet
	Version uint32 // the cluster version
	Index   uint64 // of the last command in it
	Term    uint64
	Seq     uint64 // of the last change
	Records uint64 // that are shown
	Hash    Hash
}

// OpenImage opens an image. It reads little; damage in what it does not read is
// found by [Image.Check].
func OpenImage(dir string) (*Image, error) {
	dir = filepath.Clean(dir)
	o := Options{Dir: filepath.Dir(dir), readOnly: true}.withDefaults()
	if ok, err := isDatabase(o.FS, dir); err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("%w: %s holds no store", ErrCorrupt, dir), err)
	}
	d, err := openDisk(&o, filepath.Base(dir))
	if err != nil {
		return nil, fmt.Errorf("store image: %w", err)
	}
	m := &Image{store: &Store{options: o, hashes: map[uint64]Hash{}, overlap: maxOverlap}, disk: d}
	if m.state, err = readState(d.db); err != nil {
		return nil, errors.Join(fmt.Errorf("store image in %s: %w", dir, err), m.Close())
	}
	return m, nil
}

// isDatabase keeps Pebble from complaining in its own words, or from making a
// database where there is none.
func isDatabase(fs vfs.FS, dir string) (bool, error) {
	desc, err := pebble.Peek(dir, fs)
	if err != nil || desc == nil {
		return false, err
	}
	return desc.Exists, nil
}

func readState(r pebble.Reader) (state, error) {
	b, ok, err := getValue(r, stateKey)
	if err != nil || !ok {
		return state{Next: 1}, err
	}
	return decodeNew[state](b, stateFormat, "state")
}

// Summary says what the image holds.
func (m *Image) Summary() Summary {
	s := &m.state
	return Summary{Cluster: s.Cluster, Version: s.Version, Index: s.Index, Term: s.Term, Seq: s.Next - 1, Records: s.Shown, Hash: s.Hash}
}

// Document returns a value of [DocumentCommand]; nil and false when there is
// none.
func (m *Image) Document(space, key string) ([]byte, bool, error) {
	return getValue(m.disk.db, documentKey(space, key))
}

// Documents calls yield for the values of [DocumentCommand] in a space whose keys begin with
// prefix, by key.
func (m *Image) Documents(space, prefix string, yield func(Document) error) error {
	return scanDocuments(m.disk.db, space, prefix, yield)
}

// Check reads the whole image and derives everything again that can be derived,
// like [View.Check], the state hash among it.
func (m *Image) Check(ctx context.Context) (wrong []string, err error) {
	l, err := loadDatabase(m.disk.db)
	if err != nil {
		return nil, fmt.Errorf("store image: %w", err)
	}
	m.store.install(m.disk, filepath.Base(m.disk.path), l)
	view, err := m.store.View()
	if err != nil {
		return nil, err
	}
	wrong, err = view.Check(ctx)
	return wrong, errors.Join(err, view.Close())
}

// Close closes the image.
func (m *Image) Close() error {
	err := m.disk.release()
	return errors.Join(err, removeLock(m.disk.fs, m.disk.path))
}

// removeLock removes the file by which Pebble keeps others away.
func removeLock(fs vfs.FS, dir string) error {
	err := fs.Remove(fs.PathJoin(dir, "LOCK"))
	if isNotExist(err) {
		return nil
	}
	return err
}

// ChangeImage applies a command to an image, as if it had been the next one in
// the log. It is for what a restore has to put into the state that it brings
// back. A crash may leave the image with the change or without.
func ChangeImage(dir string, c Command) (result any, err error) {
	dir = filepath.Clean(dir)
	o := Options{Dir: filepath.Dir(dir)}.withDefaults()
	s := &Store{options: o, hashes: map[uint64]Hash{}, overlap: maxOverlap}
	if err := s.openDatabase(filepath.Base(dir)); err != nil {
		return nil, fmt.Errorf("change the image: %w", err)
	}
	index := s.memory.Index + 1
	result, err = s.runCommand(index, c, func(m *memory) { m.Index = index })
	return result, errors.Join(err, s.Close(), removeLock(o.FS, dir))
}
