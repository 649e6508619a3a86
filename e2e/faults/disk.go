//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Disk is an ext4 file system of its own for one daemon. It commits its journal
// only when it is told to sync, so a cut loses all that was not synced.
type Disk struct {
	Dir   string // where it is mounted
	image string

	mu     sync.Mutex
	frozen bool
}

// diskSize is more than a site of a test needs, and little enough to be filled
// in no time.
const diskSize = 384 << 20

// NewDisk makes a file system in the file image and mounts it at dir.
func NewDisk(image, dir string) (*Disk, error) {
	d := &Disk{Dir: dir, image: image}
	f, err := os.Create(image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(diskSize), f.Close()); err != nil {
		return nil, err
	}
	if err := command("mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size=8", image); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return d, d.mount()
}

func (d *Disk) mount() error {
	return command("mount", "-o", "loop,noatime,commit=600", d.image, d.Dir)
}

// Unmount takes the file system away.
func (d *Disk) Unmount() error {
	d.Thaw()
	return syscall.Unmount(d.Dir, 0)
}

// Cut is a power cut: what was not synced is gone. No one may have a file open
// below Dir when halted returns; it is called once nothing reaches the disk any
// more.
func (d *Disk) Cut(halted func()) error {
	d.Thaw()
	err := d.ioctl(extShutdown, shutdownNoFlush)
	halted()
	if err != nil {
		return err
	}
	if err := d.Unmount(); err != nil {
		return fmt.Errorf("unmount %s after a power cut: %w", d.Dir, err)
	}
	return d.mount()
}

const (
	extShutdown     = 0x8004587d // EXT4_IOC_SHUTDOWN
	shutdownNoFlush = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
	fsFreeze        = 0xc0045877 // FIFREEZE
	fsThaw          = 0xc0045878 // FITHAW
)

func (d *Disk) ioctl(request uint, argument int) error {
	dir, err := os.Open(d.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.IoctlSetPointerInt(int(dir.Fd()), request, argument); err != nil {
		return fmt.Errorf("ioctl %#x on %s: %w", request, d.Dir, err)
	}
	return nil
}

// Freeze makes every write and every sync hang until [Disk.Thaw].
func (d *Disk) Freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.frozen {
		d.frozen = d.ioctl(fsFreeze, 0) == nil
	}
}

// Thaw ends a freeze; without one it does nothing.
func (d *Disk) Thaw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.frozen {
		d.frozen = d.ioctl(fsThaw, 0) != nil
	}
}

// Slow makes the disk hang and go on by turns, for a time.
func (d *Disk) Slow(hang, work, whole time.Duration) {
	for end := time.Now().Add(whole); time.Now().Before(end); {
		d.Freeze()
		time.Sleep(hang)
		d.Thaw()
		time.Sleep(work)
	}
}

func (d *Disk) filler() string { return filepath.Join(d.Dir, "filler") }

// Fill takes all space but about leave bytes.
func (d *Disk) Fill(leave uint64) error {
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var st syscall.Statfs_t
	if err := syscall.Statfs(d.Dir, &st); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if free := st.Bavail * uint64(st.Bsize); free > leave {
		_ = syscall.Fallocate(int(f.Fd()), 0, info.Size(), int64(free-leave)) // it takes what there is
	}
	for leave == 0 {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return nil //nolint:nilerr // full to the last block
		}
	}
	return nil
}

// Empty gives back what [Disk.Fill] took.
func (d *Disk) Empty() error {
	if err := os.Remove(d.filler()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Wipe removes everything.
func (d *Disk) Wipe() error {
	entries, err := os.ReadDir(d.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(d.Dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}
