package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/process"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// The first jobs that slurmdbd can hold are younger.
func earliestJobTime() time.Time { return time.Date(2008, 1, 1, 0, 0, 0, 0, time.UTC) }

const (
	minWindow  = time.Minute
	maxGrowth  = 128     // a window with few rows grows up to so many times its size
	quietRows  = 1_000   // a window with fewer says little about the next one
	busyJobs   = 20      // jobs at one moment by which a wide window may be too wide
	fewRows    = 20_000  // a window with fewer is too small to be quick
	manyRows   = 100_000 // a window with more is too large to be gentle
	batchRuns  = 2000
	batchBytes = 4 << 20
)

// pass is one Collect.
type pass struct {
	*Source
	plan  *job.Plan
	out   *sdk.Stream
	began time.Time
	now   time.Time // when it began, in whole seconds; runs that end later are for the next pass
	from  time.Time
	done  time.Time // the checkpoint, which never goes back
	again bool      // a window is collected again: the checkpoint stays
	open  map[job.Key]openRun
	seen  map[job.Key]bool // runs that went on before and were met in this pass
	batch sdk.Batch
	bytes int
	runs  []*job.Run
	rows  int // of the last window
	// counting are the jobs that never started in batch.
	counting map[job.Key]time.Time
	refusing []refusal // in batch
	told     facts.Told
	met      map[job.Key]bool   // runs of Source.half that were met in this pass
	renaming map[job.Key]string // names that runs of Source.half have in batch; "" is the last one
}

// Collect sends what has ended and what goes on since from.
func (s *Source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	p, err := s.beginPass(ctx, from, out)
	if err != nil {
		return err
	}
	if from.Window != nil {
		first := from.Window.From
		if first.Before(earliestJobTime()) {
			first = earliestJobTime()
		}
		return p.walkWindows(ctx, first, from.Window.To, from.Window.To.Before(p.now))
	}
	if err := p.walkWindows(ctx, p.from, p.now, false); err != nil {
		return err
	}
	if err := p.askVanished(ctx); err != nil {
		return err
	}
	if err := p.askHalf(ctx); err != nil {
		return err
	}
	if err := p.finishPass(ctx); err != nil {
		return err
	}
	return p.tellFacts(ctx, from.Rewind > 0)
}

// beginPass makes ready for a pass.
func (s *Source) beginPass(ctx context.Context, from sdk.Start, out *sdk.Stream) (*pass, error) {
	c, err := decodeCheckpoint(from.Checkpoint)
	if err != nil {
		return nil, err
	}
	columns, err := s.sacct.Columns(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := job.NewPlan(s.wants, columns)
	if err != nil {
		return nil, err
	}
	for _, o := range c.Open {
		if _, known := s.open[o.Key]; !known {
			s.open[o.Key] = o
		}
	}
	now := s.now()
	s.recallHalfRuns(c.Half, now)
	p := &pass{Source: s, plan: plan, out: out, began: now, now: now.UTC().Truncate(time.Second), done: c.Done,
		again: from.Window != nil, told: c.Told, open: map[job.Key]openRun{}, seen: map[job.Key]bool{}, met: map[job.Key]bool{}, renaming: map[job.Key]string{}, counting: map[job.Key]time.Time{}}
	plan.Part = p.partOf(ctx)
	p.from = p.queryStart(c.Done, from.Rewind)
	s.width = min(s.width, s.config.Window) // it may have grown in quieter times
	return p, nil
}

// queryStart says from when on a pass asks: back by the overlap, now and then and after a
// restart by the deep one, by what the daemon asks for, never before earliest.
func (p *pass) queryStart(done time.Time, rewind time.Duration) time.Time {
	first := p.config.Earliest.Time
	if first.IsZero() {
		first = earliestJobTime()
	}
	if done.IsZero() {
		return first
	}
	back := max(p.config.Overlap, rewind)
	deep := done.After(p.now) || p.began.Sub(p.swept) >= p.config.DeepInterval
	if deep {
		back = max(back, p.config.DeepOverlap)
	}
	if done.After(p.now) { // the clock was ahead
		done = p.now
	}
	if t := done.Add(-back); t.After(first) {
		return t
	}
	return first
}

// walkWindows collects from, inclusive, to to in windows. Closed says that the last
// window lies in the past, so that no run in it goes on.
func (p *pass) walkWindows(ctx context.Context, from, to time.Time, closed bool) error {
	for at := from; at.Before(to); {
		next := at.Add(p.width)
		last := !next.Before(to)
		if last {
			next = to
		}
		if busy, err := p.endsInBusyTime(ctx, next); err != nil {
			return err
		} else if busy {
			p.width = max(p.config.Window, min(p.width, next.Sub(at))/2)
			continue
		}
		rows, err := p.collectWindow(ctx, at, next, last && !closed)
		if err != nil {
			if p.narrowWindow(err, next.Sub(at)) {
				continue
			}
			return fmt.Errorf("%s to %s: %w", at.Format(time.RFC3339), next.Format(time.RFC3339), err)
		}
		p.adaptWindow(rows, last)
		at = next
		if last && !p.again {
			return nil // finish sends the rest with the checkpoint
		}
		if err := p.advanceCheckpoint(ctx, from, at, to); err != nil {
			return err
		}
	}
	return p.flushBatch(ctx)
}

// endsInBusyTime reports whether a window that has grown ends in busy times, of which it
// may hold too much: more jobs at one moment than the last window had rows. Where
// jobs come evenly that never is, since each job of a moment has a row.
func (p *pass) endsInBusyTime(ctx context.Context, end time.Time) (bool, error) {
	if p.width <= p.config.Window || p.rows >= quietRows {
		return false, nil
	}
	jobs := 0
	q := sacct.Query{Columns: p.plan.Columns[:1], From: end.Add(-time.Second), To: end}
	err := p.sacct.Rows(ctx, q, func(sacct.Row) error { jobs++; return nil })
	return jobs > max(busyJobs, p.rows), err
}

// narrowWindow makes the next window smaller after one that was too much for slurmdbd,
// and says whether to try again at once.
func (p *pass) narrowWindow(err error, width time.Duration) bool {
	wide := errors.Is(err, sacct.ErrTooWide)
	if !wide && !errors.Is(err, process.ErrHung) {
		return false
	}
	p.width = max(minWindow, min(p.width, width)/2)
	return wide && width > minWindow
}

// adaptWindow chooses the size of the next window by the rows of this one.
func (p *pass) adaptWindow(rows int, last bool) {
	p.rows = rows
	switch {
	case rows > manyRows:
		p.width = max(minWindow, p.width/2)
	case rows < fewRows && !last:
		p.width = min(p.width*2, maxGrowth*p.config.Window)
	}
}

// collectWindow collects the runs that ended in [from, to) and, in the last window, also
// those that ended later or go on.
func (p *pass) collectWindow(ctx context.Context, from, to time.Time, last bool) (rows int, err error) {
	q := sacct.Query{Columns: p.plan.Columns, From: from, To: to, Steps: p.plan.Steps}
	err = p.readRuns(ctx, q, &rows, func(r *job.Run) bool {
		return last || (r.Ended() && r.End.Before(to))
	})
	return rows, err
}

// readRuns asks q and takes those runs for which belongs says so.
func (p *pass) readRuns(ctx context.Context, q sacct.Query, rows *int, belongs func(*job.Run) bool) error {
	var run *job.Run // whose steps come next; nil when they are of no interest
	var raw string
	err := p.sacct.Rows(ctx, q, func(row sacct.Row) error {
		*rows++
		id, step := p.plan.IsStep(row.Fields)
		switch {
		case step && run != nil && id == raw:
			run.Step(row.Fields, p.tooLong(row))
		case !step:
			run, raw = p.readRow(row, belongs), id
			// The runs before this one are complete.
			if len(p.runs) > batchRuns || p.bytes > batchBytes {
				return p.sendAllBut(ctx, run)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.prepareJobs(ctx, nil)
}

// readRow reads a job's row and returns the run when it is to be sent.
func (p *pass) readRow(row sacct.Row, belongs func(*job.Run) bool) *job.Run {
	r, err := p.plan.Run(row.Fields)
	if err == nil && !belongs(r) {
		return nil
	}
	if err == nil {
		err = p.tooLong(row)
	}
	if err != nil {
		p.refuseRow(p.nameOf(r, row), err, p.plan.Show(row.Fields))
		return nil
	}
	return p.admitRun(r)
}

// nameOf names a row that is no job as its run is named once it is one, as far as
// the row tells.
func (p *pass) nameOf(r *job.Run, row sacct.Row) string {
	if r == nil || r.ID.Job == "" {
		return row.Fields[1]
	}
	r.Qualified, r.Later = p.config.SeveralClusters(), r.Restarts > 0
	return r.RunName()
}

func (p *pass) tooLong(row sacct.Row) error {
	if row.Cut < 0 {
		return nil
	}
	return fmt.Errorf("column %s is longer than %d bytes", p.plan.Columns[row.Cut], sacct.MaxField)
}

// admitRun takes a run that was read and returns it when it is to be sent.
func (p *pass) admitRun(r *job.Run) *job.Run {
	r.Qualified = p.config.SeveralClusters()
	_, before := p.Source.open[r.Key]
	switch {
	case r.Half(p.began): // the overlap meets it again
	case r.Started():
		if before {
			p.seen[r.Key] = true
		}
		p.runs = append(p.runs, r)
		p.bytes += r.Size()
		return r
	case r.Ended():
		p.countUnstarted(r)
	}
	return nil
}

// countUnstarted counts a job that ended without a start, once.
func (p *pass) countUnstarted(r *job.Run) {
	_, done := p.counted[r.Key]
	_, counting := p.counting[r.Key]
	if !done && !counting && !p.again {
		p.counting[r.Key] = r.End
		p.batch.Skipped++
	}
}

// refuseRow hands on a row that is no job, once: the overlap meets it again.
func (p *pass) refuseRow(name string, err error, raw []byte) {
	mark := refusal{name[:min(len(name), 256)], err.Error()}
	if p.refused[mark] && !p.again {
		return
	}
	p.refusing = append(p.refusing, mark)
	p.batch.Refused = append(p.batch.Refused, sdk.Refused{Run: mark.run, Message: mark.message, Raw: raw})
}

// refusal is what was refused and why.
type refusal struct{ run, message string }

const maxRefused = 10_000 // refusals that are remembered
