package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
)

// folder is how far the files of a folder were read that has one for each job. HTCondor
// puts a file of a job's history there whole, and appends to one of its epochs.
type folder struct {
	Changed int64     `json:"changed"`           // latest change of a file that was read, nanoseconds; not in the future
	Names   []byte    `json:"names,omitempty"`   // keys of the files that were changed shortly before, of keyBytes each
	Offsets []int64   `json:"offsets,omitempty"` // of epochs: how far each of them was read
	Behind  *jobPlace `json:"behind,omitempty"`  // all files up to there were read, also those that Names has no room for
}

// jobPlace is the place of a file in a list of files by their change.
type jobPlace struct {
	Changed int64  `json:"changed"`
	Name    string `json:"name"`
}

const (
	// lateName is how much later than its change a file may appear under its name.
	lateName = time.Minute
	keyBytes = 8
	// mostNames bounds the files of a folder in a checkpoint, which may have 256 KiB, where
	// there is one schedd with both folders.
	mostNames = 6000
)

// Check says what no plugin has written.
func (f *folder) Check() error {
	if n := len(f.Names) / keyBytes; len(f.Names)%keyBytes != 0 || len(f.Offsets) != 0 && len(f.Offsets) != n {
		return fmt.Errorf("%d bytes of names and %d offsets do not belong together", len(f.Names), len(f.Offsets))
	}
	return nil
}

// fileOffsets are how far files were read, by their keys.
func (f *folder) fileOffsets() map[[keyBytes]byte]int64 {
	out := make(map[[keyBytes]byte]int64, len(f.Names)/keyBytes)
	for i := range len(f.Names) / keyBytes {
		offset := int64(0)
		if i < len(f.Offsets) {
			offset = f.Offsets[i]
		}
		out[[keyBytes]byte(f.Names[i*keyBytes:])] = offset
	}
	return out
}

// jobFile is a file of a folder.
type jobFile struct {
	path    string
	size    int64
	changed int64
	offset  int64 // how far it was read
	read    bool  // as far as it went then
}

// unpackedName is the name of a file before it was compressed.
func unpackedName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".bz2")
}

// isPacked reports whether the file is compressed. Then nothing is written to it any more.
func (f jobFile) isPacked() bool { return unpackedName(f.path) != f.path }

// checkpointKey identifies the file in a checkpoint. A history that changed is another file, a compressed
// history is the same.
func (f jobFile) checkpointKey(of kind) [keyBytes]byte {
	text := unpackedName(filepath.Base(f.path))
	if of == history {
		text += fmt.Sprint("/", f.changed)
	}
	sum := sha256.Sum256([]byte(text))
	return [keyBytes]byte(sum[:])
}

// compareAge orders files by their change, the oldest first.
func (f jobFile) compareAge(with jobFile) int {
	return cmp.Or(cmp.Compare(f.changed, with.changed), strings.Compare(filepath.Base(f.path), filepath.Base(with.path)))
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
		if plain := unpackedName(e.Name()); plain != e.Name() {
			if _, err := os.Lstat(filepath.Join(dir, plain)); err == nil {
				continue // it is being compressed
			}
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if at := info.ModTime().UnixNano(); at >= since && info.Mode().IsRegular() {
			out = append(out, jobFile{path: filepath.Join(dir, e.Name()), size: info.Size(), changed: at})
		}
	}
	slices.SortFunc(out, jobFile.compareAge)
	return out, nil
}

// jobWalk goes through files of one job each, the oldest first.
type jobWalk struct {
	of    kind
	files []jobFile
	next  int // of files, the first that was not looked at
	most  int // files that a checkpoint names
	now   int64
	state folder
}

// listJobs lists the files that may not have been read to their end when state was made.
func listJobs(dir string, of kind, state folder, most int, now func() time.Time) (*jobWalk, error) {
	list, err := jobFiles(dir, state.Changed-int64(lateName))
	if err != nil {
		return nil, err
	}
	w := &jobWalk{of: of, most: most, now: now().UnixNano(), state: folder{Changed: state.Changed, Behind: state.Behind}}
	before := state.fileOffsets()
	for _, f := range list {
		if state.Behind != nil && f.compareAge(jobFile{path: state.Behind.Name, changed: state.Behind.Changed}) <= 0 {
			continue
		}
		if f.offset, f.read = before[f.checkpointKey(of)]; f.read && of == history {
			f.offset = f.size
		}
		w.files = append(w.files, f)
	}
	return w, nil
}

// advanceFile goes on behind the next file, which was read. The change of one in the future, of a
// wrong clock, does not count as the latest: files of now would be older.
func (w *jobWalk) advanceFile() {
	f := &w.files[w.next]
	f.read = true
	if f.changed <= w.now {
		w.state.Changed = max(w.state.Changed, f.changed)
	}
	w.next++
}

// folderState is how far the files were read. Those that were changed too long ago to be listed
// again are left out.
func (w *jobWalk) folderState() *folder {
	out := w.state
	var named []jobFile
	spare := 0 // how many of them come before all that were not read
	whole := true
	for _, f := range w.files {
		if f.changed < out.Changed-int64(lateName) {
			continue
		}
		if whole = whole && f.read; whole {
			spare++
		}
		if f.read {
			named = append(named, f)
		}
	}
	for _, f := range named[:min(spare, max(len(named)-w.most, 0))] {
		named = named[1:]
		if f.changed <= out.Changed { // of the others, those of now are not behind them
			out.Behind = &jobPlace{Changed: f.changed, Name: filepath.Base(f.path)}
		}
	}
	for _, f := range named {
		key := f.checkpointKey(w.of)
		out.Names = append(out.Names, key[:]...)
		if w.of == epochs {
			out.Offsets = append(out.Offsets, f.offset)
		}
	}
	return &out
}

// sendFolder sends what is new in a folder of files of one job each.
func (p *pass) sendFolder(ctx context.Context, at *schedd, of kind) error {
	if at.folders[of] == "" {
		return nil
	}
	reach := p.checkpoint.Schedds[at.name]
	w, err := listJobs(at.folders[of], of, reach.folderState(of), p.names/len(p.config.schedds), p.now)
	if err != nil {
		return err
	}
	r := p.newReading(at, of, &reach)
	r.bare, r.epoch = true, of == epochs
	r.Mark = func() ([]byte, error) {
		reach.setFolder(of, w.folderState())
		return p.checkpoint.withReach(at.name, reach).encodeVersioned(), nil
	}
	r.Sent = func() { p.checkpoint = p.checkpoint.withReach(at.name, reach) }
	return p.readJobs(ctx, w, r)
}

// readJobs sends the entries of files of one job each.
func (p *pass) readJobs(ctx context.Context, w *jobWalk, r *reading) error {
	for more := true; more; {
		p.Begin()
		sdk.Alive(ctx)
		err := p.fillFrom(w, r)
		if more = err == nil; err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := p.Send(ctx, &r.Reading, &sdk.Progress{Unit: "files", At: p.Last.Format(time.RFC3339)}); err != nil {
			return err
		}
	}
	return nil
}

// fillFrom reads files until the batch is full; io.EOF at the end of the list.
func (p *pass) fillFrom(w *jobWalk, r *reading) error {
	for w.next < len(w.files) {
		if p.Full() {
			return nil
		}
		f := &w.files[w.next]
		if f.offset < f.size && !f.isPacked() || f.isPacked() && !f.read {
			verdict, err := p.addFile(f, w.now-f.changed > int64(lateName), r)
			switch {
			case err != nil:
				return err
			case verdict == nextPass:
				return io.EOF // those behind it are younger
			case verdict == nextBatch:
				return nil
			case verdict == unended:
				w.next++
				continue
			}
		}
		w.advanceFile()
	}
	return io.EOF
}

// addFile takes the entries of a file that were not read yet. What has no end is taken of
// a file that is old.
func (p *pass) addFile(f *jobFile, old bool, r *reading) (verdict, error) {
	w, err := (&follow.Log{Banner: classad.Banner}).Files([]string{f.path}, f.offset)
	if errors.Is(err, fs.ErrNotExist) {
		return taken, nil
	}
	if err != nil {
		return taken, err
	}
	defer w.Close()
	for !p.Full() {
		line, err := w.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
			return taken, nil
		}
		if err != nil && f.isPacked() { // it stays so
			p.Refuse("", err, nil, &r.Reading)
			p.Took(0)
			return taken, nil
		}
		if err != nil {
			return taken, err
		}
		text := string(line.Text)
		v := taken
		switch e := classad.ReadEntry(text); {
		case line.Long():
			p.refuseLong(line, r)
		case !f.isPacked() && (r.epoch && e.Missing || !e.Missing && line.Size == int64(len(text))):
			return taken, nil // the epoch or its banner is being written
		case !f.isPacked() && !old && e.Missing && !strings.HasSuffix(text, "\n"):
			return unended, nil
		default:
			v = p.addEntry(text, f.offset, r)
		}
		if v != taken {
			return v, nil
		}
		f.offset += line.Size
		p.Took(line.Size)
	}
	return nextBatch, nil
}

// folderAgain sends runs of files again that were changed at since or later.
func (p *pass) folderAgain(ctx context.Context, at *schedd, of kind, since time.Time, with *reading) error {
	if at.folders[of] == "" {
		return nil
	}
	r := *with
	r.bare, r.epoch = true, of == epochs
	w, err := listJobs(at.folders[of], of, folder{Changed: since.Add(-skew).UnixNano()}, 0, p.now)
	if err == nil {
		err = p.readJobs(ctx, w, &r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at.folders[of], err)
	}
	return nil
}
