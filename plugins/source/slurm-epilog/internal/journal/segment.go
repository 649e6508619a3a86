package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

// header begins a segment: a file of lines, an entry each, in which the journal was
// before it was a database. Segments are named after a stamp of 20 digits.
const (
	header   = "bursar-epilog-journal 1\n"
	segments = "[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9].log"
)

// adoptSegments moves the entries of segments into the database.
func (j *Journal) adoptSegments(ctx context.Context) error {
	lock, err := os.OpenFile(filepath.Join(j.opt.Dir, "lock"), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // there are none
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	for syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil { // an older process is about to end
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock %s: another process has it: %w", lock.Name(), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	paths, err := filepath.Glob(filepath.Join(j.opt.Dir, segments))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := j.adoptSegment(path); err != nil {
			return err
		}
	}
	return os.Remove(lock.Name())
}

func (j *Journal) adoptSegment(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, whole := bytes.CutPrefix(text, []byte(header))
	if line, _, found := bytes.Cut(text, []byte("\n")); !whole && found {
		return fmt.Errorf("%s begins with %.40q, which is not the journal's version 1; upgrade the plugin, or move the file away", path, line)
	}
	err = j.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			e, err := parseEntry(line)
			if err != nil { // damage, or the rest of a write that a crash cut off
				j.logCorrupt(path, err)
				continue
			}
			if err := b.Put(keyOf(e.Stamp), line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.Remove(path)
}
