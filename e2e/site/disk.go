//go:build e2e

package site

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// Disk is a small file system of a test's own.
type Disk struct {
	t   testing.TB
	dir string
}

// SmallDisk mounts a file system of that size, such as 64m, at dir until the test
// ends. It needs root.
func SmallDisk(t testing.TB, dir, size string) Disk {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=755"); err != nil {
		t.Fatalf("mount a small file system (needs root): %v", err)
	}
	t.Cleanup(func() {
		// The daemons end later than this; what they hold open goes away then.
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return Disk{t, dir}
}

// SmallDisk is [SmallDisk] for the test of the site.
func (s *Site) SmallDisk(dir, size string) Disk {
	s.t.Helper()
	return SmallDisk(s.t, dir, size)
}

// filler is a file that takes the space of a disk.
func (d Disk) filler() string { return filepath.Join(d.dir, "filler") }

// Fill takes all space of the disk but about leave bytes.
func (d Disk) Fill(leave uint64) {
	d.t.Helper()
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	piece := make([]byte, 64<<10)
	for {
		var st syscall.Statfs_t
		if err := syscall.Statfs(d.dir, &st); err != nil {
			d.t.Fatal(err)
		}
		if st.Bavail*uint64(st.Bsize) <= leave {
			return
		}
		if _, err := f.Write(piece); err != nil {
			return // it is full to the last byte
		}
	}
}

// Empty gives the space back.
func (d Disk) Empty() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}

// DamageLast turns over a bit in the middle of the last value of a bucket, in a file of
// bbolt that no process has open.
func DamageLast(t testing.TB, path, bucket string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		k, v := b.Cursor().Last()
		v = slices.Clone(v)
		v[len(v)/2] ^= 4
		return b.Put(slices.Clone(k), v)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// Flip turns over a bit of a byte of a file.
func Flip(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	_, err1 := f.ReadAt(b, at)
	b[0] ^= 4
	_, err2 := f.WriteAt(b, at)
	if err := errors.Join(err1, err2, f.Close()); err != nil {
		t.Fatal(err)
	}
}
