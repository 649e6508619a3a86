package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/accounting"
)

const (
	batchRuns  = 2000
	batchBytes = 4 << 20
	batchLines = 100_000 // also of those that are no runs
)

// pass is one Collect.
type pass struct {
	*Source
	out        *sdk.Stream
	checkpoint checkpoint
	began      time.Time
	skipped    map[error]int64

	line  accounting.Line // that was read last
	batch sdk.Batch
	lines int // in batch
	bytes int64
	skips map[error]int64 // in batch
	last  time.Time       // end of the run that was read last
}

// reading is how a walk is read.
type reading struct {
	cell string               // its name in ids
	keep func(time.Time) bool // by the end of a run; nil: all
	gap  *sdk.Gap             // to be sent with the first batch; its end is that of the first run
	seen func(end time.Time)

	// Mark returns the checkpoint behind what was read; nil where there is none.
	mark func() ([]byte, error)
	// Moved reports whether the checkpoint has to be kept though nothing was read.
	moved func() bool
	sent  func()
}

// attempts at a file that changes under our hands.
const attempts = 3

// follow sends what has come in a cell since the checkpoint.
func (p *pass) follow(ctx context.Context, c *gridCell) error {
	for n := 1; ; n++ {
		err := p.followOnce(ctx, c)
		if !errors.Is(err, follow.ErrChanged) || n == attempts {
			return err
		}
	}
}

func (p *pass) followOnce(ctx context.Context, c *gridCell) error {
	state := p.checkpoint.Cells[c.name]
	w, err := c.log.Follow(state.State, p.began)
	if err != nil {
		return err
	}
	defer w.Close()
	p.warnClosed(w)
	r := reading{cell: c.name, seen: func(end time.Time) { state.seen(end, p.began) }}
	if lost := w.Lost(); lost != nil {
		p.log.Error("lines of the accounting file were not found again", "cell", c.sgeCell, "reason", lost.Reason,
			"remedy", "with logrotate use delaycompress and keep more files; lines can be brought back with import")
		r.gap = &sdk.Gap{From: state.last(), To: p.began, Reason: lost.Reason}
	}
	r.mark = func() ([]byte, error) {
		var err error
		if state.State, err = w.State(); err != nil {
			return nil, err
		}
		return p.checkpoint.with(c.name, state).encode(), nil
	}
	r.moved = func() bool {
		before := p.checkpoint.Cells[c.name]
		return before.Inode != state.Inode || (before.Before == nil) != (state.Before == nil)
	}
	r.sent = func() { p.checkpoint = p.checkpoint.with(c.name, state) }
	return p.read(ctx, w, r)
}

// warnClosed says once which files cannot be read.
func (p *pass) warnClosed(w *follow.Walk) {
	for _, path := range w.Closed() {
		if !p.noted[path] {
			p.noted[path] = true
			p.log.Warn("a file of the rotation is compressed in a way that cannot be read; it is left out", "path", path,
				"remedy", "compress with gzip, or unpack it and import it")
		}
	}
}

// window sends the runs of a window again.
func (p *pass) window(ctx context.Context, w sdk.Window) error {
	for i := range p.config.cells {
		c := &p.config.cells[i]
		if err := p.again(ctx, c, w.From, w.Holds); err != nil {
			return c.explain(err)
		}
	}
	return nil
}

// rewind sends again what ended less than so long before the checkpoint.
func (p *pass) rewind(ctx context.Context, back time.Duration) error {
	for i := range p.config.cells {
		c := &p.config.cells[i]
		state := p.checkpoint.Cells[c.name]
		if state.At == 0 {
			continue
		}
		since := state.last().Add(-back)
		if err := p.again(ctx, c, since, func(end time.Time) bool { return !end.Before(since) }); err != nil {
			return c.explain(err)
		}
	}
	return nil
}

// skew is how far the clock of a host, which says when a run ended, may be ahead of
// that which says when a file was changed.
const skew = 24 * time.Hour

// again reads all files of a cell that may hold runs that ended at since or later.
func (p *pass) again(ctx context.Context, c *gridCell, since time.Time, keep func(time.Time) bool) error {
	w, err := c.log.Read(since.Add(-skew), p.began)
	if err != nil {
		return err
	}
	defer w.Close()
	return p.read(ctx, w, reading{cell: c.name, keep: keep})
}

// load reads the files of an import, once.
func (p *pass) load(ctx context.Context, from sdk.Start) error {
	files, offset := p.config.imports, int64(0)
	at := p.checkpoint.Import
	if at != nil && from.Window == nil && from.Rewind == 0 {
		if i := slices.Index(files, at.Path); i >= 0 {
			files, offset = files[i:], at.Offset
		}
	}
	w, err := new(follow.Log).Files(files, offset)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer w.Close()
	r := reading{cell: p.config.importCell}
	if from.Window != nil {
		r.keep = from.Window.Holds
	} else {
		r.mark = func() ([]byte, error) {
			return checkpoint{Import: &imported{Path: w.Path(), Offset: w.Offset()}}.encode(), nil
		}
	}
	if err := p.read(ctx, w, r); err != nil {
		return fmt.Errorf("import %s: %w", w.Path(), err)
	}
	return nil
}

// read sends the lines of a walk.
func (p *pass) read(ctx context.Context, w *follow.Walk, r reading) error {
	for more := true; more; {
		p.empty()
		sdk.Alive(ctx)
		err := p.fill(w, &r)
		if more = err == nil; err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !more && r.gap != nil {
			p.batch.Gaps = append(p.batch.Gaps, *r.gap)
		}
		if err := p.send(ctx, w, r); err != nil {
			return err
		}
		r.gap = nil
	}
	return nil
}

func (p *pass) empty() {
	p.batch, p.lines, p.bytes, p.skips = sdk.Batch{}, 0, 0, map[error]int64{}
}

// send sends the batch with the checkpoint behind it.
func (p *pass) send(ctx context.Context, w *follow.Walk, r reading) error {
	if r.mark != nil {
		var err error
		if p.batch.Checkpoint, err = r.mark(); err != nil {
			return err
		}
	}
	b := &p.batch
	if p.lines == 0 && len(b.Gaps) == 0 && (r.moved == nil || !r.moved()) {
		return nil
	}
	if r.keep != nil {
		b.Skipped = 0
		if len(b.Jobs)+len(b.Refused) == 0 {
			return ctx.Err()
		}
	}
	b.Progress = p.progress(w)
	if err := p.out.Send(ctx, *b); err != nil {
		return err
	}
	if r.sent != nil {
		r.sent()
	}
	for why, n := range p.skips {
		p.skipped[why] += n
	}
	return nil
}

func (p *pass) progress(w *follow.Walk) *sdk.Progress {
	done, total := w.Progress()
	at := filepath.Base(w.Path())
	if !p.last.IsZero() {
		at += ", " + p.last.Format(time.RFC3339)
	}
	return &sdk.Progress{Done: done, Total: total, Unit: "bytes", At: at}
}

// fill reads lines until the batch is full; io.EOF when there are no more.
func (p *pass) fill(w *follow.Walk, r *reading) error {
	for len(p.batch.Jobs)+len(p.batch.Refused) < p.Source.batch && p.bytes < batchBytes && p.lines < batchLines {
		line, err := w.Next()
		if err != nil {
			return err
		}
		p.take(line, r)
		p.lines++
		p.bytes += line.Size
	}
	return nil
}

// take puts a line into the batch.
func (p *pass) take(line follow.Line, r *reading) {
	if line.Long() {
		p.refuse(fmt.Errorf("a line of %d bytes; at most %d are read", line.Size, follow.MaxLine), line.Text, r)
		return
	}
	l := &p.line
	err := l.Parse(string(line.Text))
	switch {
	case errors.Is(err, accounting.ErrBlank), errors.Is(err, accounting.ErrComment), errors.Is(err, accounting.ErrNeverStarted):
		p.batch.Skipped++
		p.skips[err]++
		return
	case err != nil:
		p.refuse(err, line.Text, r)
		return
	}
	l.Cell = r.cell
	if r.gap != nil {
		if l.End.After(r.gap.From) && l.End.Before(r.gap.To) {
			r.gap.To = l.End
		}
		p.batch.Gaps, r.gap = append(p.batch.Gaps, *r.gap), nil
	}
	p.last = l.End
	if r.keep != nil && !r.keep(l.End) {
		return
	}
	if r.seen != nil {
		r.seen(l.End)
	}
	p.add(l)
}

// add puts a run into the batch.
func (p *pass) add(l *accounting.Line) {
	values, unread := p.plan.Values(l)
	wanted := p.config.filter.wants(l) && (p.config.Earliest.Time.IsZero() || !l.End.Before(p.config.Earliest.Time))
	p.batch.Jobs = append(p.batch.Jobs, sdk.Job{Run: runOf(l), Values: values, Unread: unread, Ended: true, Excluded: !wanted})
	p.facts.saw(l)
}

// runOf names the run within the source.
func runOf(l *accounting.Line) string {
	if l.Cell == "" {
		return l.ID()
	}
	return l.Cell + "/" + l.ID()
}

// refuse sends a line that cannot be read. Of a window they are not sent again:
// no one knows when they belong to.
func (p *pass) refuse(why error, text []byte, r *reading) {
	if r.keep != nil {
		return
	}
	p.batch.Refused = append(p.batch.Refused, sdk.Refused{Message: why.Error(), Raw: slices.Clone(text)})
}

// tellSkipped says what was no run, and why.
func (p *pass) tellSkipped() {
	for why, n := range p.skipped {
		if errors.Is(why, accounting.ErrNeverStarted) {
			p.log.Info("lines that tell of no run were skipped", "reason", why.Error(), "lines", n)
		} else {
			p.log.Debug("lines were skipped", "reason", why.Error(), "lines", n)
		}
	}
}

// finish sends the watermark and the facts.
func (p *pass) finish(ctx context.Context, complete, renew bool) error {
	if err := p.facts.tell(ctx, p, renew); err != nil {
		return err
	}
	if !complete || !p.facts.answered() {
		return nil
	}
	return p.out.Send(ctx, sdk.Batch{Watermark: p.began.Add(-p.config.Lag), CompleteFrom: p.config.Earliest.Time})
}
