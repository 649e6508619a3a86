package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Restore replaces all that the store holds by an image that Checkpoint wrote.
// dir is moved. A crash leaves the old state or the new one. Views that are open
// keep the old one. Apply must not run meanwhile.
func (s *Store) Restore(dir string) error { return s.restoreImage(dir, nil) }

// RestoreAt is Restore as the command at index: Applied then returns index and
// term, whatever the image says of itself.
func (s *Store) RestoreAt(dir string, index, term uint64) error {
	return s.restoreImage(dir, func(st *state) { st.Index, st.Term = index, term })
}

// CheckImage returns an error when Restore would not take the image in dir. It
// opens the image where it is, which changes files in it.
func (s *Store) CheckImage(dir string) error {
	o := s.options
	o.Dir = o.FS.PathDir(dir)
	d, err := openDisk(&o, o.FS.PathBase(dir))
	if err != nil {
		return fmt.Errorf("check the image: %w", err)
	}
	if _, err := loadDatabase(d.db); err != nil {
		return errors.Join(fmt.Errorf("check the image: %w", err), d.release())
	}
	return d.release()
}

func (s *Store) restoreImage(dir string, change func(*state)) error {
	if s.disk == nil {
		return ErrClosed
	}
	fs, name := s.options.FS, nextDir(s.dir)
	path := fs.PathJoin(s.options.Dir, name)
	if err := fs.RemoveAll(path); err != nil {
		return err
	}
	if err := fs.Rename(dir, path); err != nil {
		return fmt.Errorf("restore from %s: %w", dir, err)
	}
	if err := syncDir(fs, s.options.Dir); err != nil {
		return err
	}
	return s.replaceDatabase(name, change)
}

// replaceDatabase opens the named database and only then makes it the store's.
func (s *Store) replaceDatabase(name string, change func(*state)) error {
	d, err := openDisk(&s.options, name)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	l, err := loadDatabase(d.db)
	if err == nil && change != nil {
		change(&l.memory.state)
		err = errors.Join(d.db.Set(sumsKey, l.memory.encodeSums(), pebble.NoSync), d.db.Set(stateKey, encodeValue(stateFormat, &l.memory.state), pebble.Sync))
	}
	if err == nil {
		err = writeCurrent(s.options.FS, s.options.Dir, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), d.release())
	}
	old := s.disk
	s.install(d, name, l)
	old.retired.Store(true)
	return old.release()
}
