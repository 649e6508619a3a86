package follow

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Log is a file that grows and rotates. What a rotation has put aside is found
// beside it, by a number or a date behind its name, compressed or not:
// accounting.1, accounting-20260304, accounting.2.gz.
type Log struct {
	Path string
	More []string // patterns of further files that belong to the rotation

	// Fresh begins with the current file where nothing was read yet, and leaves
	// out what was put aside before.
	Fresh bool

	// Banner is what the last line of each entry begins with, in a log whose entries have
	// several lines. A Walk gives entries then: where this says line, it means entry.
	Banner string
}

// suffix is what rotations put behind a file's name.
var suffix = regexp.MustCompile(`^[.-][0-9][0-9.T:_-]*$`)

// rotatedFiles returns the older files, the oldest first, and the names of those that
// are compressed in a way that cannot be read. A file that is there both
// compressed and not counts once.
func (l *Log) rotatedFiles() (files []file, closed []string, err error) {
	paths, err := l.rotationNames()
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		pack := packOf(path)
		if pack != "" && slices.Contains(paths, strings.TrimSuffix(path, pack)) {
			continue
		}
		if slices.Contains(closedPacks(), filepath.Ext(path)) {
			if !slices.Contains(paths, strings.TrimSuffix(path, filepath.Ext(path))) {
				closed = append(closed, path)
			}
			continue
		}
		f, err := statFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if f.path != "" {
			files = append(files, f)
		}
	}
	slices.SortStableFunc(files, compareAge)
	return files, closed, nil
}

// rotationNames lists what may be a file of the rotation, the current one excepted.
func (l *Log) rotationNames() ([]string, error) {
	dir, base := filepath.Split(l.Path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), base)
		for _, pack := range append(packSuffixes(), closedPacks()...) {
			rest = strings.TrimSuffix(rest, pack)
		}
		if ok && suffix.MatchString(rest) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	for _, pattern := range l.More {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if path != l.Path && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}

// statFile returns a file, and the zero one for what is no plain file.
func statFile(path string) (file, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return file{}, err
	}
	return file{path: path, pack: packOf(path), size: info.Size(), inode: inodeOf(info), modified: info.ModTime()}, nil
}

// compareAge orders files by their last change; of two at the same moment the name
// tells: accounting.2 is older than accounting.1, and an earlier date than a later.
func compareAge(a, b file) int {
	if d := a.modified.Compare(b.modified); d != 0 {
		return d
	}
	x, y := rotationNumber(a), rotationNumber(b)
	if x > 0 && y > 0 {
		return cmp.Compare(y, x)
	}
	return strings.Compare(a.path, b.path)
}

const maxRank = 4 // digits of a rank; a date has more

// rotationNumber is the rank that a rotation gives a file; 0 when it has none.
func rotationNumber(f file) int {
	digits := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(f.path, f.pack)), ".")
	n, err := strconv.Atoi(digits)
	if err != nil || len(digits) > maxRank {
		return 0
	}
	return n + 1
}

// changedAfter returns the files that were changed at t or later.
func changedAfter(files []file, t time.Time) []file {
	return slices.DeleteFunc(slices.Clone(files), func(f file) bool { return f.modified.Before(t) })
}

// Paths are the files that were changed at since or later, the current one last.
func (l *Log) Paths(since time.Time) ([]string, error) {
	old, _, err := l.rotatedFiles()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range changedAfter(old, since) {
		paths = append(paths, f.path)
	}
	if _, err := os.Stat(l.Path); err != nil {
		if errors.Is(err, fs.ErrNotExist) && len(old) > 0 {
			return paths, nil
		}
		return nil, err
	}
	return append(paths, l.Path), nil
}
