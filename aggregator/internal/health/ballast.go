package health

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ballastName is the file in a data directory.
const ballastName = "disk.ballast"

// ballastPart is the part of a small file system that a ballast takes.
const ballastPart = 64

// Ballast is a file that holds space for the moment at which there is none.
type Ballast struct {
	path string
	size uint64
}

// NewBallast describes the ballast of a data directory on a file system of size
// bytes: most bytes, or a small part of a small file system.
func NewBallast(dir string, size, most uint64) *Ballast {
	return &Ballast{path: filepath.Join(dir, ballastName), size: min(most, size/ballastPart)}
}

// Size is how much space the ballast holds now; 0 when it was freed.
func (b *Ballast) Size() uint64 {
	info, err := os.Stat(b.path)
	if err != nil {
		return 0
	}
	return uint64(info.Size())
}

// Keep makes the ballast where it is missing, unless less than least bytes would
// be free then.
func (b *Ballast) Keep(free, least uint64) error {
	if b.Size() > 0 || b.size == 0 || free < least+b.size {
		return nil
	}
	fresh := b.path + ".new"
	err := allocateFile(fresh, b.size)
	if err == nil {
		err = os.Rename(fresh, b.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make the ballast: %w", err), removeIfPresent(fresh))
	}
	return nil
}

// allocateFile makes a file that takes size bytes of the disk.
func allocateFile(path string, size uint64) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = syscall.Fallocate(int(f.Fd()), 0, 0, int64(size))
	if !errors.Is(err, syscall.EOPNOTSUPP) {
		return err
	}
	piece := make([]byte, 1<<20)
	for i := range piece {
		piece[i] = byte(i*31>>3 ^ i) // zeros might be stored as a hole
	}
	for size > 0 {
		n := min(size, uint64(len(piece)))
		if _, err := f.Write(piece[:n]); err != nil {
			return err
		}
		size -= n
	}
	return f.Sync()
}

// FreeBallast gives up the ballast of a data directory and returns how many bytes
// that were; 0 when it had been given up. The daemon makes a new one once there
// is space.
func FreeBallast(dir string) (uint64, error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, err
	}
	b := Ballast{path: filepath.Join(dir, ballastName)}
	held := b.Size()
	if err := errors.Join(removeIfPresent(b.path), removeIfPresent(b.path+".new")); err != nil {
		return 0, fmt.Errorf("free the ballast: %w", err)
	}
	return held, nil
}

func removeIfPresent(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
