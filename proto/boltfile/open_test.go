package boltfile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/boltfile"
)

func TestOpen_FileInUse_WaitsUntilContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "file.db")
	db, err := boltfile.Open(t.Context(), path, boltfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := boltfile.Open(ctx, path, boltfile.Options{}); !errors.Is(err, boltfile.ErrInUse) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	opened := make(chan error)
	go func() {
		db, err := boltfile.Open(t.Context(), path, boltfile.Options{ReadOnly: true})
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	if err := errors.Join(db.Close(), <-opened); err != nil {
		t.Error(err)
	}
}

func TestOpen_ReadOnlyOfMissingFile_CreatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "file.db")
	if _, err := boltfile.Open(t.Context(), path, boltfile.Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestOpen_DamagedFile_IsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := boltfile.Open(t.Context(), path, boltfile.Options{}); !errors.Is(err, boltfile.ErrDamaged) {
		t.Error(err)
	}
}

func TestTemporary_LeavesNoFileBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	db, err := boltfile.Temporary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("a"))
		if err != nil {
			return err
		}
		return b.Put([]byte("k"), make([]byte, 1<<20)) // the file grows
	})
	if left, err2 := os.ReadDir(dir); err != nil || err2 != nil || len(left) > 0 {
		t.Error(err, err2, left)
	}
}
