package disk

import (
	"fmt"
	"syscall"
)

// Level is how full a file system is.
type Level int

// The levels, from good to bad.
const (
	Normal   Level = iota
	Warn           // somebody should act soon
	Low            // the leader stops pulling and hands over
	ReadOnly       // nothing is written
)

// String returns the level in a word.
func (l Level) String() string {
	return [...]string{"normal", "warn", "low", "readonly"}[l]
}

// Space is the room on a file system.
type Space struct {
	Free uint64 // what this process can still write
	Size uint64 // what files can take in all
}

// Measure returns the space of the file system of path.
func Measure(path string) (Space, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return Space{}, fmt.Errorf("space of %s: %w", path, err)
	}
	unit := uint64(st.Bsize)
	return Space{Free: st.Bavail * unit, Size: (st.Blocks - st.Bfree + st.Bavail) * unit}, nil
}

// Marks are the free bytes below which a level begins.
type Marks struct {
	Warn, Low, ReadOnly uint64
}

// Parts of a file system at which levels begin, and where a large one need not
// keep so much: what compaction needs does not grow without end. A low mark of
// 2 GiB holds for disks that are large enough for it.
const (
	warnPart, lowPart, readOnlyPart = 15, 10, 5 // percent
	warnMost                        = 64 << 30
	lowMost                         = 32 << 30
	readOnlyMost                    = 4 << 30
	lowLeast                        = 2 << 30
	lowLeastPart                    = 8 // an eighth, on a small disk
)

// MarksOf returns the marks for a file system of size bytes. With less than keep
// nothing is written; 0 is the smaller of 4 GiB and a twentieth.
func MarksOf(size, keep uint64) Marks {
	m := Marks{
		Warn:     min(size/100*warnPart, warnMost),
		Low:      max(min(size/100*lowPart, lowMost), min(lowLeast, size/lowLeastPart)),
		ReadOnly: keep,
	}
	if keep == 0 {
		m.ReadOnly = min(size/100*readOnlyPart, readOnlyMost)
	}
	m.Low = max(m.Low, m.ReadOnly)
	m.Warn = max(m.Warn, m.Low+m.Low/10)
	return m
}

// Level returns the level of so many free bytes.
func (m Marks) Level(free uint64) Level {
	switch {
	case free < m.ReadOnly:
		return ReadOnly
	case free < m.Low:
		return Low
	case free < m.Warn:
		return Warn
	}
	return Normal
}
