package buffer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// Probe reads the structure of a buffer's file and returns an error that wraps
// [ErrDamaged] when it is broken, nil when there is no file or another process
// holds it.
//
// bbolt takes the pages of a damaged file at their word: it panics, in goroutines
// of its own too, or reads beyond the file's end. So Probe may end the process. Call
// it in one made for it, before [Open], and take its end for damage.
func Probe(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("buffer: %w", err)
	case info.Size() == 0: // bbolt makes a new file of it
		return nil
	}
	return probe(path)
}

func probe(path string) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, cause)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		for problem := range tx.Check() {
			return fmt.Errorf("%w: %w", ErrDamaged, problem)
		}
		return probeHead(tx)
	})
	return errors.Join(err, db.Close())
}

// probeHead reads what Open will need. A format of a later release is no damage.
func probeHead(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil || meta.Get(keyHead) == nil {
		return nil // not used yet
	}
	if err := checkFormat(meta); err != nil {
		return nil //nolint:nilerr // Open says it
	}
	if _, err := parseHead(meta.Get(keyHead)); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}
