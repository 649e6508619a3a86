package health

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ErrFull is wrapped by the errors of [DiskGuard.Check] and [Guard.CheckPull].
var ErrFull = errors.New("the disk is nearly full")

// DiskGuard looks at the free space of one file system.
type DiskGuard struct {
	path  string
	marks DiskMarks
	log   *slog.Logger
	space func(path string) (DiskSpace, error)

	mu      sync.Mutex
	checked time.Time
	state   DiskState
}

// DiskState is a file system at one moment.
type DiskState struct {
	DiskSpace
	Level DiskLevel
	// Since is when the level was reached, as far as this process knows.
	Since time.Time
	// Err says why the file system could not be looked at; writes wait then.
	Err error
}

// checkEvery bounds how often the file system is asked.
const checkEvery = 500 * time.Millisecond

// NewDiskGuard makes a guard of the file system of path.
func NewDiskGuard(path string, marks DiskMarks, log *slog.Logger) *DiskGuard {
	return &DiskGuard{path: path, marks: marks, log: log, space: MeasureDisk}
}

// Marks are those that the guard was made with.
func (g *DiskGuard) Marks() DiskMarks { return g.marks }

// State returns how the file system is; it may be half a second old.
func (g *DiskGuard) State() DiskState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.checked) < checkEvery {
		return g.state
	}
	first := g.checked.IsZero()
	g.checked = time.Now()
	before := g.state
	g.state.DiskSpace, g.state.Err = g.space(g.path)
	if g.state.Err == nil {
		g.state.Level = g.marks.Level(g.state.Free)
	}
	if first || before.Level != g.state.Level {
		g.state.Since = g.checked
	}
	g.logChange(before, g.state)
	return g.state
}

// Check returns an error while nothing may be written; it wraps [ErrFull]. It is
// cheap.
func (g *DiskGuard) Check() error { return g.checkLevel(ReadOnly, g.marks.ReadOnly) }

// CheckPull returns an error while this node should not take in more from
// agents, who can keep what they have; it wraps [ErrFull].
func (g *DiskGuard) CheckPull() error { return g.checkLevel(Low, g.marks.Low) }

func (g *DiskGuard) checkLevel(level DiskLevel, mark uint64) error {
	s := g.State()
	switch {
	case s.Err != nil:
		return s.Err
	case s.Level >= level:
		return fmt.Errorf("%w: %s has %d MiB free, and %d MiB are kept for reads and for tidying up", ErrFull, g.path, s.Free>>20, mark>>20)
	}
	return nil
}

// logChange logs what changes for writers.
func (g *DiskGuard) logChange(before, now DiskState) {
	if now.Err != nil {
		if before.Err == nil {
			g.log.Error("writes wait: the disk cannot be looked at", "error", now.Err)
		}
		return
	}
	if before.Level == now.Level && before.Err == nil {
		return
	}
	level, text := slog.LevelWarn, "the disk is filling up"
	switch now.Level {
	case Normal:
		level, text = slog.LevelInfo, "there is space again"
	case Low:
		level, text = slog.LevelError, "the disk is nearly full: nothing is pulled, another node shall lead"
	case ReadOnly:
		level, text = slog.LevelError, "the disk is full: writes wait until there is space"
	case Warn:
	}
	g.log.Log(nil, level, text, "path", g.path, "free_bytes", now.Free, "size_bytes", now.Size) //nolint:staticcheck // there is no context to pass on
}
