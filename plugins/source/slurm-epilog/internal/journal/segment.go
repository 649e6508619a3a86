package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const suffix = ".log"

// segment is a file of the journal. Its name is a stamp before all of its entries.
type segment struct {
	path  string
	after int64 // all of its stamps are greater
}

func segmentPath(dir string, after int64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", after, suffix))
}

// list returns the segments of a folder in their order.
func list(dir string) ([]segment, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, f := range names {
		number, ours := strings.CutSuffix(f.Name(), suffix)
		after, err := strconv.ParseInt(number, 10, 64)
		if ours && err == nil && len(number) == 20 {
			all = append(all, segment{filepath.Join(dir, f.Name()), after})
		}
	}
	slices.SortFunc(all, func(a, b segment) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// read calls yield with the entries of a segment, in their order, and returns how
// many bytes of it are whole lines. What is no entry is skipped and told to odd: the
// rest of a write that a crash cut off, and damage.
func (s segment) read(yield func(Entry) error, odd func(error)) (whole int64, err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	first := true
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			if len(line) > 0 {
				odd(fmt.Errorf("%s ends within a line", s.path))
			}
			return whole, nil
		case errors.Is(err, bufio.ErrBufferFull):
			whole += int64(len(line))
			continue // the rest of it is no entry either
		case err != nil:
			return whole, err
		}
		whole += int64(len(line))
		if first {
			if first = false; string(line) != header {
				return whole, fmt.Errorf("%s begins with %.40q: it is no journal of this version; upgrade the plugin, or move the file away", s.path, line)
			}
			continue
		}
		e, err := parseEntry(line[:len(line)-1])
		if err != nil {
			odd(fmt.Errorf("%s: %w", s.path, err))
			continue
		}
		if err := yield(e); err != nil {
			return whole, err
		}
	}
}
