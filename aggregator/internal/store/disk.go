package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/proto/poison"
)

// The directory of a store holds one Pebble database and CURRENT, which names
// it. Restore puts a second database beside it and then renames a new CURRENT
// over the old one; whatever CURRENT does not name is left over and removed.
const (
	currentFile = "CURRENT"
	firstDir    = "db-000001"
	dirPrefix   = "db-"
)

// disk is a database that is closed, and removed when it was replaced, as soon
// as no one reads it any more.
type disk struct {
	db      *pebble.DB
	fs      vfs.FS
	path    string
	refs    atomic.Int64
	retired atomic.Bool
}

func openDisk(o *Options, name string) (*disk, error) {
	path := o.FS.PathJoin(o.Dir, name)
	opts, done := o.pebbleOptions()
	defer done()
	db, err := pebble.Open(path, opts)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, classifyOpenError(err))
	}
	d := &disk{db: db, fs: o.FS, path: path}
	d.refs.Store(1)
	return d, nil
}

// acquire is called under the store's lock, so that the last reference cannot
// go meanwhile.
func (d *disk) acquire() { d.refs.Add(1) }

func (d *disk) release() error {
	if d.refs.Add(-1) > 0 {
		return nil
	}
	err := d.db.Close()
	if d.retired.Load() {
		err = errors.Join(err, d.fs.RemoveAll(d.path))
	}
	return err
}

// getValue returns a copy of the value; nil and false when there is none.
func getValue(r pebble.Reader, key []byte) (value []byte, ok bool, err error) {
	ok, err = withValue(r, key, func(v []byte) error {
		value = append([]byte{}, v...)
		return nil
	})
	return value, ok, err
}

// withValue calls use with the value of a key, which is lent until use returns; false when there
// is none.
func withValue(r pebble.Reader, key []byte, use func(value []byte) error) (bool, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %q: %w", key[:1], markCorrupt(err))
	}
	err = yieldBorrowed(key, v, func(_, v []byte) error { return use(v) })
	return true, errors.Join(err, closer.Close())
}

// scanPrefix calls yield with every key that begins with prefix, in order. key and
// value are lent until yield returns.
func scanPrefix(r pebble.Reader, prefix []byte, yield func(key, value []byte) error) error {
	return scanRange(r, prefix, prefixEnd(prefix), yield)
}

func scanRange(r pebble.Reader, from, to []byte, yield func(key, value []byte) error) error {
	return scanOrdered(r, from, to, false, yield)
}

// scanOrdered is scanRange, from the end to the beginning where desc says so.
func scanOrdered(r pebble.Reader, from, to []byte, desc bool, yield func(key, value []byte) error) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return fmt.Errorf("scan %q: %w", from[:1], markCorrupt(err))
	}
	defer func() {
		if e := it.Close(); err == nil {
			err = e
		}
	}()
	first, next := it.First, it.Next
	if desc {
		first, next = it.Last, it.Prev
	}
	for first(); it.Valid(); next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("scan %q: %w", from[:1], markCorrupt(err))
		}
		if err := yieldBorrowed(it.Key(), v, yield); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("scan %q: %w", from[:1], markCorrupt(err))
	}
	return nil
}

// yieldBorrowed calls yield with a key and a value, and takes back copies of them where what is
// taken back is overwritten: their memory is Pebble's.
func yieldBorrowed(key, value []byte, yield func(key, value []byte) error) error {
	if poison.Enabled {
		key, value = bytes.Clone(key), bytes.Clone(value)
		defer poison.Bytes(key)
		defer poison.Bytes(value)
	}
	return yield(key, value)
}

// currentDir returns the name of the database in dir, made known there when
// there is none.
func currentDir(fs vfs.FS, dir string) (string, error) {
	if err := makeDir(fs, dir); err != nil {
		return "", err
	}
	f, err := fs.Open(fs.PathJoin(dir, currentFile))
	if isNotExist(err) {
		return newCurrent(fs, dir)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return "", err
	}
	name, err := parseCurrent(string(b))
	if err != nil {
		return "", err
	}
	return name, checkDatabaseExists(fs, dir, name)
}

// newCurrent begins a new store, where no database is that CURRENT could have
// named.
func newCurrent(fs vfs.FS, dir string) (string, error) {
	names, err := fs.List(dir)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if strings.HasPrefix(name, dirPrefix) {
			return "", fmt.Errorf("%w: %s is missing beside %s", ErrCorrupt, currentFile, name)
		}
	}
	return firstDir, writeCurrent(fs, dir, firstDir)
}

// checkDatabaseExists checks that the database is there. The first one may not yet be: CURRENT is
// written before it is made.
func checkDatabaseExists(fs vfs.FS, dir, name string) error {
	if _, err := fs.Stat(fs.PathJoin(dir, name)); name == firstDir || err == nil {
		return nil
	} else if !isNotExist(err) {
		return err
	}
	return fmt.Errorf("%w: %s names %s, which is not there", ErrCorrupt, currentFile, name)
}

// formatCurrent is what CURRENT holds: the name and the CRC32C of it.
func formatCurrent(name string) string {
	return fmt.Sprintf("%s %08x\n", name, castagnoli([]byte(name)))
}

func parseCurrent(text string) (string, error) {
	name, _, _ := strings.Cut(text, " ")
	switch {
	case !strings.HasPrefix(name, dirPrefix) || strings.ContainsAny(name, "/\\"):
		return "", fmt.Errorf("%w: %s names no database: %q", ErrCorrupt, currentFile, text)
	case text != formatCurrent(name):
		return "", fmt.Errorf("%w: %s does not have its checksum: %q", ErrCorrupt, currentFile, text)
	}
	return name, nil
}

// makeDir makes dir, durably.
func makeDir(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return syncDir(fs, fs.PathDir(dir))
}

func isNotExist(err error) bool { return err != nil && vfsNotExist(err) }

// writeCurrent makes name the database, atomically and durably.
func writeCurrent(fs vfs.FS, dir, name string) error {
	tmp := fs.PathJoin(dir, currentFile+".tmp")
	if err := writeSynced(fs, tmp, formatCurrent(name)); err != nil {
		return fmt.Errorf("write %s: %w", tmp, err)
	}
	if err := fs.Rename(tmp, fs.PathJoin(dir, currentFile)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func writeSynced(fs vfs.FS, path, text string) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeStaleDatabases removes databases that CURRENT does not name.
func removeStaleDatabases(fs vfs.FS, dir, current string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, dirPrefix) && name != current {
			err = errors.Join(err, fs.RemoveAll(fs.PathJoin(dir, name)))
		}
	}
	return err
}

// nextDir is the name of the database that replaces name.
func nextDir(name string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, dirPrefix)) // another name than those of this function begins anew
	return fmt.Sprintf("%s%06d", dirPrefix, n+1)
}

// compact rewrites all files, and returns [ErrHeld] where a view needs something in them that
// was deleted. Pebble leaves files of the lowest level as they are where nothing above them
// overlaps, with what a view of then held: the deletion of range keys, of which there are
// none, overlaps with everything.
func (d *disk) compact() error {
	first, last := []byte{0}, []byte{0xff}
	if err := d.db.RangeKeyDelete(first, last, pebble.NoSync); err != nil {
		return err
	}
	held := d.db.Metrics().Snapshots.PinnedKeys
	if err := d.db.Flush(); err != nil {
		return err
	}
	if err := d.db.Compact(context.Background(), first, last, true); err != nil {
		return err
	}
	if d.db.Metrics().Snapshots.PinnedKeys > held {
		return ErrHeld
	}
	return nil
}
