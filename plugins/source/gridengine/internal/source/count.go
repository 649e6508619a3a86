package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/accounting"
)

// Count counts the runs that ended in a window by a plain second reading of the
// files, old ones included: no checkpoint, no filter and nothing of the parser that
// Collect uses. A run that stands in two files, as in a copy, counts once.
func (s *Source) Count(ctx context.Context, w sdk.Window) (int64, error) {
	t := &runCounter{ctx: ctx, window: w, seed: maphash.MakeSeed(), runs: map[uint64]struct{}{}}
	for i := range s.config.cells {
		if len(s.config.imports) > 0 {
			break
		}
		c := &s.config.cells[i]
		paths, err := c.log.Paths(w.From.Add(-skew))
		if err != nil {
			return 0, c.explainMissing(err)
		}
		if err := t.countFiles(c.name, paths); err != nil {
			return 0, err
		}
	}
	if err := t.countFiles(s.config.importCell, s.config.imports); err != nil {
		return 0, err
	}
	return int64(len(t.runs)), nil
}

// runCounter counts runs, each once.
type runCounter struct {
	ctx    context.Context
	window sdk.Window
	seed   maphash.Seed
	runs   map[uint64]struct{} // hashes of their keys
}

func (t *runCounter) countFiles(cell string, paths []string) error {
	for _, path := range paths {
		if err := t.countFile(cell, path); err != nil {
			return fmt.Errorf("count %s: %w", path, err)
		}
	}
	return nil
}

func (t *runCounter) countFile(cell, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var in io.Reader = f
	switch {
	case strings.HasSuffix(path, ".gz"):
		if in, err = gzip.NewReader(f); err != nil {
			return err
		}
	case strings.HasSuffix(path, ".bz2"):
		in = bzip2.NewReader(f)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), 64<<20)
	for n := 0; lines.Scan(); n++ {
		if n%10_000 == 0 {
			sdk.Alive(t.ctx)
			if err := t.ctx.Err(); err != nil {
				return err
			}
		}
		t.countLine(cell, lines.Bytes())
	}
	return lines.Err()
}

// countLine counts a line whose end lies in the window, unless it has no start.
func (t *runCounter) countLine(cell string, line []byte) {
	f := bytes.SplitN(line, []byte(":"), 43)
	if len(f) < 43 || line[0] == '#' {
		return
	}
	start, end := f[9], f[10]
	if string(start) == "0" || string(end) == "0" || !isDigits(start) || !isDigits(end) || !t.window.Holds(parseStamp(end)) {
		return
	}
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, part := range [][]byte{[]byte(cell), f[5], f[35], start, f[41]} { // job, task, slave task
		_, _ = h.Write(part) // it never fails
		_ = h.WriteByte(0)
	}
	t.runs[h.Sum64()] = struct{}{}
}

func isDigits(b []byte) bool {
	return len(b) > 0 && len(b) <= 15 && len(bytes.Trim(b, "0123456789")) == 0
}

// parseStamp reads digits: twelve or more are milliseconds.
func parseStamp(b []byte) time.Time {
	n, _ := strconv.ParseInt(string(b), 10, 64) // digits only
	if len(b) >= 12 {
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
}

// forEachRun calls saw for the lines of a file that tell of a run.
func forEachRun(in io.Reader, saw func(*accounting.Line)) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), follow.MaxLine)
	l := new(accounting.Line)
	for lines.Scan() {
		if l.Parse(lines.Text()) == nil {
			saw(l)
		}
	}
}
