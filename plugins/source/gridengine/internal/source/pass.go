package source

import (
	"context"
	"errors"
	"fmt"
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
	follow.Pass
	checkpoint checkpoint
	began      time.Time

	line accounting.Line // that was read last
}

// reading is how a walk is read.
type reading struct {
	follow.Reading
	cell string // its name in ids
}

// attempts at a file that changes under our hands.
const attempts = 3

// followCell sends what has come in a cell since the checkpoint.
func (p *pass) followCell(ctx context.Context, c *gridCell) error {
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
	p.WarnClosed(w)
	r := &reading{cell: c.name}
	r.Seen = func(end time.Time) { state.Saw(end, p.began) }
	if lost := w.Lost(); lost != nil {
		p.log.Error("lines of the accounting file were not found again", "cell", c.sgeCell, "reason", lost.Reason,
			"remedy", "with logrotate use delaycompress and keep more files; lines can be brought back with import")
		r.Gap = &sdk.Gap{From: state.Last(), To: p.began, Reason: lost.Reason}
	}
	r.Mark = func() ([]byte, error) {
		var err error
		if state.State, err = w.State(); err != nil {
			return nil, err
		}
		return p.checkpoint.withCell(c.name, state).encodeVersioned(), nil
	}
	r.Moved = func() bool {
		before := p.checkpoint.Cells[c.name]
		return before.Inode != state.Inode || (before.Before == nil) != (state.Before == nil)
	}
	r.Sent = func() { p.checkpoint = p.checkpoint.withCell(c.name, state) }
	return p.sendWalk(ctx, w, r)
}

// resendWindow sends the runs of a window again.
func (p *pass) resendWindow(ctx context.Context, w sdk.Window) error {
	for i := range p.config.cells {
		c := &p.config.cells[i]
		if err := p.resendCell(ctx, c, w.From, w.Holds); err != nil {
			return c.explainMissing(err)
		}
	}
	return nil
}

// rewindCells sends again what ended less than so long before the checkpoint.
func (p *pass) rewindCells(ctx context.Context, back time.Duration) error {
	for i := range p.config.cells {
		c := &p.config.cells[i]
		state := p.checkpoint.Cells[c.name]
		if state.At == 0 {
			continue
		}
		since := state.Last().Add(-back)
		if err := p.resendCell(ctx, c, since, func(end time.Time) bool { return !end.Before(since) }); err != nil {
			return c.explainMissing(err)
		}
	}
	return nil
}

// skew is how far the clock of a host, which says when a run ended, may be ahead of
// that which says when a file was changed.
const skew = 24 * time.Hour

// resendCell reads all files of a cell that may hold runs that ended at since or later.
func (p *pass) resendCell(ctx context.Context, c *gridCell, since time.Time, keep func(time.Time) bool) error {
	w, err := c.log.Read(since.Add(-skew), p.began)
	if err != nil {
		return err
	}
	defer w.Close()
	return p.sendWalk(ctx, w, &reading{Reading: follow.Reading{Keep: keep}, cell: c.name})
}

// importFiles reads the files of an import, once.
func (p *pass) importFiles(ctx context.Context, from sdk.Start) error {
	r := &reading{cell: p.config.importCell}
	mark := func(at *follow.Imported) []byte { return checkpoint{Import: at}.encodeVersioned() }
	of := follow.Import{Log: new(follow.Log), Files: p.config.imports, At: p.checkpoint.Import, Mark: mark}
	return p.ReadImport(ctx, from, of, &r.Reading, func(w *follow.Walk) error { return p.fillBatch(w, r) })
}

// sendWalk sends the lines of a walk.
func (p *pass) sendWalk(ctx context.Context, w *follow.Walk, r *reading) error {
	return p.Read(ctx, w, &r.Reading, func() error { return p.fillBatch(w, r) })
}

// fillBatch reads lines until the batch is full; io.EOF at the end.
func (p *pass) fillBatch(w *follow.Walk, r *reading) error {
	for !p.Full() {
		line, err := w.Next()
		if err != nil {
			return err
		}
		p.addLine(line, r)
		p.Took(line.Size)
	}
	return nil
}

// addLine puts a line into the batch.
func (p *pass) addLine(line follow.Line, r *reading) {
	if line.Long() {
		p.Refuse("", fmt.Errorf("a line of %d bytes; at most %d are read", line.Size, follow.MaxLine), line.Text, &r.Reading)
		return
	}
	l := &p.line
	err := l.Parse(string(line.Text))
	switch {
	case errors.Is(err, accounting.ErrBlank), errors.Is(err, accounting.ErrComment), errors.Is(err, accounting.ErrNeverStarted):
		p.Skip(err)
		return
	case err != nil:
		p.Refuse("", err, line.Text, &r.Reading)
		return
	}
	l.Cell = r.cell
	p.Reach(l.End, &r.Reading)
	if r.Keep != nil && !r.Keep(l.End) {
		return
	}
	if r.Seen != nil {
		r.Seen(l.End)
	}
	p.addRun(l)
}

// addRun puts a run into the batch.
func (p *pass) addRun(l *accounting.Line) {
	values, unread := p.plan.Values(l)
	wanted := p.config.filter.wantsLine(l) && (p.config.Earliest.Time.IsZero() || !l.End.Before(p.config.Earliest.Time))
	p.Batch.Jobs = append(p.Batch.Jobs, sdk.Job{Run: runOf(l), Values: values, Unread: unread, Ended: true, Excluded: !wanted})
	p.facts.noteOwner(l)
}

// runOf names the run within the source.
func runOf(l *accounting.Line) string {
	if l.Cell == "" {
		return l.ID()
	}
	return l.Cell + "/" + l.ID()
}

// tellSkipped says what was no run, and why.
func (p *pass) tellSkipped() {
	for why, n := range p.Skipped {
		if errors.Is(why, accounting.ErrNeverStarted) {
			p.log.Info("lines that tell of no run were skipped", "reason", why.Error(), "lines", n)
		} else {
			p.log.Debug("lines were skipped", "reason", why.Error(), "lines", n)
		}
	}
}

// finishPass sends the watermark and the facts.
func (p *pass) finishPass(ctx context.Context, complete, renew bool) error {
	if err := p.facts.sendFacts(ctx, p, renew); err != nil {
		return err
	}
	if !complete || !p.facts.allAnswered() {
		return nil
	}
	return p.Out.Send(ctx, sdk.Batch{Watermark: p.began.Add(-p.config.Lag), CompleteFrom: p.config.Earliest.Time})
}
