// Package disk keeps the node from writing into a full disk: long before writes
// fail, it refuses them, so that reads go on and compaction has room.
package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

// ErrFull is wrapped by the error of [Guard.Check].
var ErrFull = errors.New("the disk is nearly full")

// Guard looks at the free space of one file system.
type Guard struct {
	path string
	min  uint64
	log  *slog.Logger
	free func(path string) (uint64, error)

	mu      sync.Mutex
	checked time.Time
	err     error
}

// checkEvery bounds how often the file system is asked.
const checkEvery = 500 * time.Millisecond

// NewGuard makes a guard that wants min bytes free on the file system of path.
func NewGuard(path string, min int64, log *slog.Logger) *Guard {
	return &Guard{path: path, min: uint64(max(min, 0)), log: log, free: Free}
}

// Check returns an error while less than the wanted space is free; it wraps
// [ErrFull]. It is cheap: the answer may be half a second old.
func (g *Guard) Check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.checked) < checkEvery {
		return g.err
	}
	g.checked = time.Now()
	err := g.look()
	if (err == nil) != (g.err == nil) {
		g.say(err)
	}
	g.err = err
	return err
}

func (g *Guard) look() error {
	free, err := g.free(g.path)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", g.path, err)
	}
	if free < g.min {
		return fmt.Errorf("%w: %s has %d MiB free, and %d MiB are kept for reads and for tidying up", ErrFull, g.path, free>>20, g.min>>20)
	}
	return nil
}

func (g *Guard) say(err error) {
	if err != nil {
		g.log.Error("writes wait until there is space", "error", err)
		return
	}
	g.log.Info("there is space again, writes go on")
}

// Size returns how large the file system of path is, in bytes.
func Size(path string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, err
	}
	return st.Blocks * uint64(st.Bsize), nil
}

// Free returns the bytes that an unprivileged process can still write on the
// file system of path.
func Free(path string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}
