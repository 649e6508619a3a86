package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Pass is one Collect of a source that reads logs: the batch that is being filled, and how
// it is sent.
type Pass struct {
	Out     *sdk.Stream
	Log     *slog.Logger
	Most    Most
	Noted   map[string]bool // files of which an earlier Pass said that they cannot be read
	Emptied func()          // is called before a new batch begins, when nothing uses the last one any more; nil: nothing

	Batch   sdk.Batch
	Last    time.Time       // end of the run that was read last
	Skipped map[error]int64 // what was no run, of all batches that were sent, by the reason

	entries int // in Batch
	bytes   int64
	skips   map[error]int64 // in Batch
}

// Most bounds a batch.
type Most struct {
	Runs    int
	Bytes   int64
	Entries int // also of those that are not runs
}

// Reading is how a log is read and sent.
type Reading struct {
	Keep func(time.Time) bool // by the end of a run; nil: all
	Gap  *sdk.Gap             // to be sent with the first batch; its end is that of the first run
	Seen func(end time.Time)  // is told of each run; nil: nothing is

	// Mark returns the checkpoint behind what was read; nil where there is none.
	Mark func() ([]byte, error)
	// Moved reports whether the checkpoint has to be kept though nothing was read.
	Moved func() bool
	// Sent is called when the daemon has the batch.
	Sent func()
}

// Begin begins a new batch.
func (p *Pass) Begin() {
	if p.Emptied != nil {
		p.Emptied()
	}
	jobs := p.Batch.Jobs
	clear(jobs)
	p.Batch, p.entries, p.bytes, p.skips = sdk.Batch{Jobs: jobs[:0]}, 0, 0, map[error]int64{}
}

// Full reports whether the batch has to be sent.
func (p *Pass) Full() bool {
	return len(p.Batch.Jobs)+len(p.Batch.Refused) >= p.Most.Runs || p.bytes >= p.Most.Bytes || p.entries >= p.Most.Entries
}

// Took notes that an entry of so many bytes was read.
func (p *Pass) Took(bytes int64) {
	p.entries++
	p.bytes += bytes
}

// Skip notes that an entry is not a run.
func (p *Pass) Skip(why error) {
	p.Batch.Skipped++
	p.skips[why]++
}

// Refuse sends an entry that cannot be read, of a run as far as it is known. Of a window
// they are not sent again: when they belong to is not known.
func (p *Pass) Refuse(run string, why error, text []byte, r *Reading) {
	if r.Keep != nil {
		return
	}
	p.Batch.Refused = append(p.Batch.Refused, sdk.Refused{Run: run, Message: why.Error(), Raw: slices.Clone(text)})
}

// Reach notes the end of a run that was read, where the gap before it ends.
func (p *Pass) Reach(end time.Time, r *Reading) {
	if r.Gap != nil {
		if end.After(r.Gap.From) && end.Before(r.Gap.To) {
			r.Gap.To = end
		}
		p.Batch.Gaps, r.Gap = append(p.Batch.Gaps, *r.Gap), nil
	}
	p.Last = end
}

// Read sends the entries of a walk. Fill reads entries until the batch is full; [io.EOF] when
// there are no more now.
func (p *Pass) Read(ctx context.Context, w *Walk, r *Reading, fill func() error) error {
	for more := true; more; {
		p.Begin()
		sdk.Alive(ctx)
		err := fill()
		if more = err == nil; err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !more && r.Gap != nil {
			p.Batch.Gaps = append(p.Batch.Gaps, *r.Gap)
		}
		if err := p.Send(ctx, r, p.walkProgress(w)); err != nil {
			return err
		}
		r.Gap = nil
	}
	return nil
}

func (p *Pass) walkProgress(w *Walk) *sdk.Progress {
	done, total := w.Progress()
	at := filepath.Base(w.Path())
	if !p.Last.IsZero() {
		at += ", " + p.Last.Format(time.RFC3339)
	}
	return &sdk.Progress{Done: done, Total: total, Unit: "bytes", At: at}
}

// Send sends the batch with the checkpoint behind it.
func (p *Pass) Send(ctx context.Context, r *Reading, progress *sdk.Progress) error {
	if r.Mark != nil {
		var err error
		if p.Batch.Checkpoint, err = r.Mark(); err != nil {
			return err
		}
	}
	b := &p.Batch
	if p.entries == 0 && len(b.Gaps) == 0 && (r.Moved == nil || !r.Moved()) {
		return nil
	}
	if r.Keep != nil {
		b.Skipped = 0
		if len(b.Jobs)+len(b.Refused) == 0 {
			return ctx.Err()
		}
	}
	b.Progress = progress
	if err := p.Out.Send(ctx, *b); err != nil {
		return err
	}
	if r.Sent != nil {
		r.Sent()
	}
	for why, n := range p.skips {
		p.Skipped[why] += n
	}
	return nil
}

// WarnClosed says once which files of a walk cannot be read.
func (p *Pass) WarnClosed(w *Walk) {
	for _, path := range w.Closed() {
		if !p.Noted[path] {
			p.Noted[path] = true
			p.Log.Warn("a file of the rotation is compressed in a way that cannot be read; it is left out", "path", path,
				"remedy", "compress with gzip, or unpack it and import it")
		}
	}
}

// Imported is how far the files of an import were read, in a checkpoint.
type Imported struct {
	Path   string `json:"path"` // of the file that was read last; those before it are done
	Offset int64  `json:"offset"`
}

// Check says what no plugin has written.
func (i *Imported) Check() error {
	if i != nil && i.Offset < 0 {
		return fmt.Errorf("%d is not an offset", i.Offset)
	}
	return nil
}

// Import is an import of files. At is how far they were read; nil: not at all.
type Import struct {
	Log   *Log
	Files []string
	At    *Imported
	Mark  func(*Imported) []byte // the checkpoint behind what was read
}

// ReadImport reads the files of an import, once, or those runs of them that end in a window.
func (p *Pass) ReadImport(ctx context.Context, from sdk.Start, of Import, r *Reading, fill func(*Walk) error) error {
	files, offset := of.Files, int64(0)
	if of.At != nil && from.Window == nil && from.Rewind == 0 {
		if i := slices.Index(files, of.At.Path); i >= 0 {
			files, offset = files[i:], of.At.Offset
		}
	}
	w, err := of.Log.Files(files, offset)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer w.Close()
	if from.Window != nil {
		r.Keep = from.Window.Holds
	} else {
		r.Mark = func() ([]byte, error) { return of.Mark(&Imported{Path: w.Path(), Offset: w.Offset()}), nil }
	}
	if err := p.Read(ctx, w, r, func() error { return fill(w) }); err != nil {
		return fmt.Errorf("import %s: %w", w.Path(), err)
	}
	return nil
}

// LastEnd is the latest end of a run that was read, in a checkpoint.
type LastEnd struct {
	At int64 `json:"at,omitempty"` // milliseconds; 0: none
}

// Last is the latest end; the zero time for none.
func (l *LastEnd) Last() time.Time {
	if l.At == 0 {
		return time.Time{}
	}
	return time.UnixMilli(l.At).UTC()
}

// Saw notes the end of a run. Those in the future, of a wrong clock, do not count.
func (l *LastEnd) Saw(end, now time.Time) {
	if end.Before(now.Add(time.Hour)) {
		l.At = max(l.At, end.UnixMilli())
	}
}

// ImportedFiles are the files of the setting import, with patterns expanded, in the order in
// which they are written; those of a pattern by name.
func ImportedFiles(cfg *sdk.Config, patterns []string) []string {
	var all []string
	for i, pattern := range patterns {
		if !filepath.IsAbs(pattern) {
			cfg.ElementErrorf("import", i, "%q is not an absolute path", pattern)
			continue
		}
		found, err := filepath.Glob(pattern)
		switch {
		case err != nil:
			cfg.ElementErrorf("import", i, "%q is not a pattern: %s", pattern, err)
		case len(found) == 0:
			cfg.ElementErrorf("import", i, "there is no file %s", pattern)
		}
		for _, path := range found {
			if !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all
}

// CheckPatterns says which patterns of a setting are none.
func CheckPatterns(b *sdk.Body, setting string, patterns []string) {
	for i, pattern := range patterns {
		if _, err := filepath.Match(pattern, ""); err != nil || !filepath.IsAbs(pattern) {
			b.ElementErrorf(setting, i, "%q is not an absolute path or pattern", pattern)
		}
	}
}
