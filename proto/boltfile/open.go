package boltfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// ErrInUse is wrapped by the error of [Open] when another process has the file open.
var ErrInUse = errors.New("another process has the file open")

// Options of [Open].
type Options struct {
	// ReadOnly opens a file that exists, beside other readers.
	ReadOnly bool
	// NoSync omits what makes writes durable, for tests and temporary files.
	NoSync bool
}

// attempt is how long one attempt to lock a file takes.
const attempt = 100 * time.Millisecond

// Open checks and opens the bbolt file at path, and creates it with its folder when it
// is missing. While another process has the file open, Open waits until ctx ends; the
// error then wraps [ErrInUse]. A damaged file is an error that wraps [ErrDamaged]. With
// ReadOnly a missing file is an error that wraps [fs.ErrNotExist].
func Open(ctx context.Context, path string, opt Options) (*bbolt.DB, error) {
	_, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && !opt.ReadOnly {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err != nil {
		return nil, err
	}
	for {
		if err := Check(path); err != nil {
			return nil, err
		}
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: attempt, ReadOnly: opt.ReadOnly, NoSync: opt.NoSync,
			FreelistType: bbolt.FreelistMapType, NoFreelistSync: true,
		})
		switch {
		case errors.Is(err, bolterrors.ErrTimeout) && ctx.Err() == nil:
			continue
		case errors.Is(err, bolterrors.ErrTimeout):
			return nil, fmt.Errorf("open %s: %w: %w", path, ErrInUse, ctx.Err())
		case err != nil:
			return nil, fmt.Errorf("open %s: %w", path, err)
		case missing && !opt.NoSync:
			if err := durable.SyncDir(filepath.Dir(path)); err != nil {
				return nil, errors.Join(err, db.Close())
			}
		}
		return db, nil
	}
}

// Temporary opens an empty file that is deleted when it is closed.
func Temporary(ctx context.Context) (*bbolt.DB, error) {
	dir, err := os.MkdirTemp("", "bursar-")
	if err != nil {
		return nil, err
	}
	db, err := Open(ctx, filepath.Join(dir, "temporary.db"), Options{NoSync: true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.RemoveAll(dir); err != nil { // the open file stays usable
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
