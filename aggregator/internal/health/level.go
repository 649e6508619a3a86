package health

import (
	"fmt"
	"syscall"
)

// DiskLevel is how full a file system is.
type DiskLevel int

// The levels, from good to bad.
const (
	Normal   DiskLevel = iota
	Warn               // someone should act soon
	Low                // the leader stops pulling and hands over
	ReadOnly           // nothing is written
)

// String returns the level in a word.
func (l DiskLevel) String() string {
	return [...]string{"normal", "warn", "low", "readonly"}[l]
}

// DiskSpace is the room on a file system.
type DiskSpace struct {
	Free uint64 // what this process can still write
	Size uint64 // what files can take in all
}

// MeasureDisk returns the space of the file system of path.
func MeasureDisk(path string) (DiskSpace, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return DiskSpace{}, fmt.Errorf("space of %s: %w", path, err)
	}
	unit := uint64(st.Bsize)
	return DiskSpace{Free: st.Bavail * unit, Size: (st.Blocks - st.Bfree + st.Bavail) * unit}, nil
}

// DiskMarks are the free bytes below which a level begins.
type DiskMarks struct {
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

// DiskMarksOf returns the marks for a file system of size bytes. With less than keep
// nothing is written; 0 is the smaller of 4 GiB and a twentieth. What is said to be enough
// moves the other marks too: low is at most twice keep, and warn three times.
func DiskMarksOf(size, keep uint64) DiskMarks {
	m := DiskMarks{
		Warn:     min(size/100*warnPart, warnMost),
		Low:      max(min(size/100*lowPart, lowMost), min(lowLeast, size/lowLeastPart)),
		ReadOnly: keep,
	}
	if keep == 0 {
		m.ReadOnly = min(size/100*readOnlyPart, readOnlyMost)
	} else {
		m.Low, m.Warn = min(m.Low, 2*keep), min(m.Warn, 3*keep)
	}
	m.Low = max(m.Low, m.ReadOnly)
	m.Warn = max(m.Warn, m.Low+m.Low/10)
	return m
}

// Level returns the level of so many free bytes.
func (m DiskMarks) Level(free uint64) DiskLevel {
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
