package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Count counts the runs that ended in a window by a plain second reading: no checkpoint,
// no filter and nothing of the parser that Collect uses. Files are read line by line;
// condor_history is asked for a few columns. What the history tells of a run counts, its
// epoch only where the history has none. A compressed file of a folder that cannot be read to
// its end, which Collect puts in quarantine, counts as one run that ended when it was changed,
// unless epochs tell of that job: the day lacks it then.
func (s *Source) Count(ctx context.Context, w sdk.Window) (int64, error) {
	t := &runCounter{ctx: ctx, log: s.log, window: w, said: newRuns(), runs: newRuns(), broken: map[string]bool{}}
	lacking := 0
	for i := range s.config.schedds {
		at := &s.config.schedds[i]
		if len(s.config.imports) > 0 {
			break
		}
		for _, of := range []kind{history, epochs} {
			if err := t.countSchedd(at, of); err != nil {
				return 0, fmt.Errorf("count %s: %w", at, err)
			}
		}
		lacking += len(t.broken)
		clear(t.broken)
	}
	for _, of := range []bool{true, false} { // history first
		for _, path := range s.config.imports {
			if of != (fileRank(path) == 1) {
				continue
			}
			if err := t.countFile(path, isJobHistory(path)); err != nil {
				return 0, fmt.Errorf("count %s: %w", path, err)
			}
		}
	}
	return int64(len(t.runs.set) + lacking), nil
}

// runCounter counts runs, each once.
type runCounter struct {
	ctx    context.Context //nolint:containedctx // of the one Count
	log    *slog.Logger
	window sdk.Window
	said   *runs // of the history, whenever they ended
	runs   *runs
	broken map[string]bool // jobs of a schedd, as 12.0, whose files changed in the window and cannot be read
	lines  int
}

func (t *runCounter) countSchedd(at *schedd, of kind) error {
	if at.client != nil {
		return t.countHistory(at, of)
	}
	since := t.window.From.Add(-skew)
	if at.logs[of].Path != "" {
		paths, err := at.logs[of].Paths(since)
		if err != nil && !(errors.Is(err, fs.ErrNotExist) && at.optional[of]) {
			return err
		}
		for _, path := range paths {
			if err := t.countFile(path, false); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if at.folders[of] != "" {
		return t.countFolder(at.folders[of], since)
	}
	return nil
}

// countFolder counts what files of one job each have that were changed at since or later.
func (t *runCounter) countFolder(dir string, since time.Time) error {
	list, err := jobFiles(dir, since.UnixNano())
	if err != nil {
		return err
	}
	for _, f := range list {
		switch err := t.countFile(f.path, true); {
		case err == nil, errors.Is(err, fs.ErrNotExist): // it was removed, or compressed just now
		case t.ctx.Err() != nil || !f.isPacked():
			return fmt.Errorf("%s: %w", f.path, err)
		case t.window.Holds(time.Unix(0, f.changed)):
			t.log.Warn("a file of one job cannot be counted to its end; it counts as one run that ended when it was changed", "path", f.path, "error", err,
				"remedy", "restore the file, and remove it from the quarantine")
			t.broken[jobOfFile(f.path)] = true
		}
	}
	return nil
}

// jobOfFile is the job of a file of a folder, as 12.0.
func jobOfFile(path string) string {
	name, _ := strings.CutPrefix(unpackedName(filepath.Base(path)), "history.")
	return name
}

// countHistory counts what condor_history has.
func (t *runCounter) countHistory(at *schedd, of kind) error {
	from := fmt.Sprintf("%s >= %d", [...]string{epochs: "EpochWriteDate", history: "EnteredCurrentStatus"}[of], t.window.From.Add(-edge).Unix())
	err := at.client.Columns(t.ctx, of == epochs, from, countedAttributes(), func(values []string) error {
		ad := map[string]string{}
		for i, name := range countedAttributes() {
			ad[name] = values[i]
		}
		t.countRun(ad, of == epochs)
		return t.reportAlive()
	})
	return (*pass)(nil).withoutEpochs(of, err)
}

func (t *runCounter) countFile(path string, bare bool) error {
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
	var last lastByte
	lines := bufio.NewScanner(io.TeeReader(in, &last))
	lines.Buffer(make([]byte, 64<<10), 64<<20)
	ad := map[string]string{}
	for lines.Scan() {
		if err := t.reportAlive(); err != nil {
			return err
		}
		line := lines.Bytes()
		if banner, ok := bytes.CutPrefix(line, []byte("*** ")); ok {
			epoch := bytes.HasPrefix(banner, []byte("EPOCH "))
			if epoch || bytes.Contains(banner, []byte(" = ")) { // others have no spaces there
				t.countRun(ad, epoch)
			}
			clear(ad)
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(" = "))
		if len(name) < 24 && isWanted(string(name)) {
			ad[string(name)] = string(value)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if bare && len(ad) > 0 && last == '\n' { // without it, the ad may be cut
		t.countRun(ad, false)
	}
	return nil
}

// lastByte is the last byte that was written.
type lastByte byte

// Write keeps the last byte of p.
func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		*l = lastByte(p[len(p)-1])
	}
	return len(p), nil
}

func (t *runCounter) reportAlive() error {
	if t.lines++; t.lines%100_000 == 0 {
		sdk.Alive(t.ctx)
	}
	return t.ctx.Err()
}

// countedAttributes are the attributes by which runs are counted.
func countedAttributes() []string {
	return []string{"GlobalJobId", "ProcId", "JobStatus",
		"JobCurrentStartDate", "ShadowBday", "JobStartDate", "CompletionDate", "LastVacateTime", "EpochWriteDate", "EnteredCurrentStatus"}
}

func isWanted(name string) bool {
	switch name {
	case "GlobalJobId", "ProcId", "JobStatus",
		"JobCurrentStartDate", "ShadowBday", "JobStartDate", "CompletionDate", "LastVacateTime", "EpochWriteDate", "EnteredCurrentStatus":
		return true
	}
	return false
}

// countRun counts the run of an ad whose end lies in the window, unless it has no start.
func (t *runCounter) countRun(ad map[string]string, epoch bool) {
	number := func(names ...string) int64 {
		for _, name := range names {
			if n, err := strconv.ParseInt(ad[name], 10, 64); err == nil && n > 0 {
				return n
			}
		}
		return 0
	}
	start := number("JobCurrentStartDate", "ShadowBday", "JobStartDate")
	status := number("JobStatus")
	if ad["GlobalJobId"] == "" || start == 0 || strings.HasPrefix(ad["ProcId"], "-") || !epoch && status != 3 && status != 4 {
		return
	}
	end := int64(0)
	for _, name := range []string{"CompletionDate", "LastVacateTime", "EpochWriteDate", "EnteredCurrentStatus"} {
		if n := number(name); n >= start {
			end = n
			break
		}
	}
	run := fmt.Sprint(strings.Trim(ad["GlobalJobId"], `"`), " ", start)
	switch {
	case end == 0:
		return
	case epoch:
		if _, job, _ := strings.Cut(ad["GlobalJobId"], "#"); len(t.broken) > 0 {
			job, _, _ = strings.Cut(job, "#")
			delete(t.broken, job) // of which this may be the run that its file tells of
		}
		if t.said.hasRun(run) {
			return
		}
	default:
		t.said.addRun(run)
	}
	if t.window.Holds(time.Unix(end, 0)) {
		t.runs.addRun(run)
	}
}
