package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
)

// folder is how far the files of a folder were read that has one for each job. HTCondor
// puts a file of a job's history there whole, and appends to one of its epochs.
type folder struct {
	Changed int64               `json:"changed"`        // latest change of a file that was read, nanoseconds; not in the future
	Read    map[string]readFile `json:"read,omitempty"` // those that were changed shortly before
}

// readFile is how far a file was read, and its change then.
type readFile struct {
	Offset  int64 `json:"offset"`
	Changed int64 `json:"changed"`
}

// lateName is how much later than its change a file may appear under its name.
const lateName = time.Minute

// jobFile is a file of a folder.
type jobFile struct {
	path    string
	size    int64
	changed int64
}

var jobHistories = regexp.MustCompile(`^history\.\d+\.\d+(\.gz|\.bz2)?$`)

// isJobHistory reports whether a file has the history of one job, without a banner.
func isJobHistory(path string) bool { return jobHistories.MatchString(filepath.Base(path)) }

// jobFiles lists the files that were changed at since or later, the oldest first.
func jobFiles(dir string, since int64) ([]jobFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []jobFile
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "history.") && !strings.HasPrefix(e.Name(), "job.runs.") {
			continue // half-written ones have other names
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if at := info.ModTime().UnixNano(); at >= since && info.Mode().IsRegular() {
			out = append(out, jobFile{filepath.Join(dir, e.Name()), info.Size(), at})
		}
	}
	slices.SortFunc(out, func(a, b jobFile) int {
		if a.changed != b.changed {
			return int(min(max(a.changed-b.changed, -1), 1))
		}
		return strings.Compare(a.path, b.path)
	})
	return out, nil
}

// folder sends what is new in a folder of files of one job each.
func (p *pass) folder(ctx context.Context, at *schedd, of kind) error {
	if at.folders[of] == "" {
		return nil
	}
	reach := p.checkpoint.Schedds[at.name]
	state := reach.folder(of)
	list, err := jobFiles(at.folders[of], state.Changed-int64(lateName))
	if err != nil {
		return err
	}
	r := reading{schedd: at, seen: func(end time.Time) { reach.seen(end, p.began) }, bare: true, epoch: of == epochs}
	if of == history {
		r.until = at.until(p.began)
	}
	r.mark = func() ([]byte, error) {
		reach.setFolder(of, state.recent())
		return p.checkpoint.with(at.name, reach).encode(), nil
	}
	r.sent = func() { p.checkpoint = p.checkpoint.with(at.name, reach) }
	for len(list) > 0 {
		p.empty()
		sdk.Alive(ctx)
		if list, err = p.fillFrom(list, &state, &r); err != nil {
			return err
		}
		if err := p.send(ctx, r, &sdk.Progress{Unit: "files", At: p.last.Format(time.RFC3339)}); err != nil {
			return err
		}
	}
	return nil
}

// fillFrom reads files until the batch is full, and returns those that are left.
func (p *pass) fillFrom(list []jobFile, state *folder, r *reading) ([]jobFile, error) {
	for len(list) > 0 && !p.full() {
		f := list[0]
		read := state.Read[f.path].Offset
		if read < f.size {
			n, verdict, err := p.takeFile(f.path, read, r)
			if err != nil {
				return nil, err
			}
			if verdict == nextPass {
				return nil, nil // those behind it are younger
			}
			read += n
			p.entries++
			p.bytes += n
			if verdict == nextBatch {
				state.read(f, read, p.began)
				return list, nil
			}
		}
		state.read(f, read, p.began)
		list = list[1:]
	}
	return list, nil
}

// takeFile takes the entries of a file from an offset on. It returns how many bytes they
// have.
func (p *pass) takeFile(path string, offset int64, r *reading) (int64, verdict, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, taken, nil
	}
	if err != nil || int64(len(text)) < offset {
		return 0, taken, err
	}
	rest, n := string(text[offset:]), int64(0)
	for rest != "" {
		entry := rest
		if i := strings.Index("\n"+rest, "\n"+classad.Banner); i >= 0 {
			end := strings.IndexByte(rest[i:], '\n')
			if end < 0 {
				return n, taken, nil // the banner is being written
			}
			entry = rest[:i+end]
		} else if r.epoch {
			return n, taken, nil // the epoch is being written
		}
		if v := p.take(entry, offset+n, r); v != taken {
			return n, v, nil
		}
		size := min(len(entry)+1, len(rest))
		rest, n = rest[size:], n+int64(size)
	}
	return n, taken, nil
}

// folderAgain sends runs of files again that were changed at since or later.
func (p *pass) folderAgain(ctx context.Context, at *schedd, of kind, since time.Time, r reading) error {
	if at.folders[of] == "" {
		return nil
	}
	r.bare, r.epoch = true, of == epochs
	list, err := jobFiles(at.folders[of], since.Add(-skew).UnixNano())
	for len(list) > 0 && err == nil {
		p.empty()
		sdk.Alive(ctx)
		if list, err = p.fillFrom(list, new(folder), &r); err == nil {
			err = p.send(ctx, r, nil)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at.folders[of], err)
	}
	return nil
}

// read notes how much of a file was read. The change of one in the future, of a wrong clock,
// does not count as the latest: files of now would be older.
func (f *folder) read(of jobFile, n int64, now time.Time) {
	if f.Read == nil {
		f.Read = map[string]readFile{}
	}
	f.Read[of.path] = readFile{Offset: n, Changed: of.changed}
	if of.changed <= now.UnixNano() {
		f.Changed = max(f.Changed, of.changed)
	}
}

// recent is f without files that were changed too long ago to be listed again.
func (f *folder) recent() *folder {
	out := &folder{Changed: f.Changed, Read: maps.Clone(f.Read)}
	maps.DeleteFunc(out.Read, func(_ string, r readFile) bool { return r.Changed < f.Changed-int64(lateName) })
	return out
}
