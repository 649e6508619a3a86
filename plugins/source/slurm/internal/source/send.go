package source

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// sendAllBut sends what was read, without a checkpoint, and keeps the run whose
// steps may still come.
func (p *pass) sendAllBut(ctx context.Context, keep *job.Run) error {
	if err := p.prepareJobs(ctx, keep); err != nil {
		return err
	}
	return p.flushBatch(ctx)
}

// prepareJobs turns the runs that were read into jobs of the batch.
func (p *pass) prepareJobs(ctx context.Context, keep *job.Run) error {
	runs := p.runs
	p.runs, p.bytes = nil, 0
	if keep != nil {
		runs = runs[:len(runs)-1]
		p.runs = append(p.runs, keep)
	}
	if err := p.history.Settle(ctx, p.sacct, runs); err != nil {
		return err
	}
	for _, r := range runs {
		p.addRun(r)
	}
	return nil
}

// addRun puts a run into the batch.
func (p *pass) addRun(r *job.Run) {
	wanted := p.config.filter.Wants(r) && (!r.Ended() || !r.End.Before(p.config.Earliest.Time))
	if !r.Ended() {
		if wanted {
			p.open[r.Key] = openRun{Key: r.Key, Start: r.Start.Unix(), JobID: r.ID.Job, Later: r.Later}
		}
		if !p.config.Running {
			return
		}
	}
	values, unread := p.plan.Values(r)
	p.watchHalf(r)
	p.batch.Jobs = append(p.batch.Jobs, sdk.Job{Run: r.RunName(), Values: values, Unread: unread, Ended: r.Ended(), Excluded: !wanted, Formerly: p.renameRun(r)})
}

// flushBatch sends the batch as it is.
func (p *pass) flushBatch(ctx context.Context) error {
	b := p.batch
	p.batch = sdk.Batch{}
	if len(b.Jobs) == 0 && len(b.Refused) == 0 && b.Skipped == 0 && b.Checkpoint == nil && b.Census == nil {
		return nil
	}
	if err := p.out.Send(ctx, b); err != nil {
		return err
	}
	maps.Copy(p.counted, p.counting)
	clear(p.counting)
	if len(p.refused) > maxRefused {
		clear(p.refused)
	}
	for _, mark := range p.refusing {
		p.refused[mark] = true
	}
	p.refusing = nil
	p.noteRenamed()
	return nil
}

// advanceCheckpoint sends what a window gave with the checkpoint behind it.
func (p *pass) advanceCheckpoint(ctx context.Context, from, at, to time.Time) error {
	p.batch.Progress = p.progressOf(from, at, to)
	if !p.again && at.After(p.done) {
		p.done = at
		p.batch.Checkpoint = checkpoint{Done: p.done, Open: p.longRuns(p.Source.open), Half: p.halfRunsOf(), Told: p.told}.encodeCheckpoint()
	}
	return p.flushBatch(ctx)
}

// progressOf of a back-fill, with an estimate of what is left.
func (p *pass) progressOf(from, at, to time.Time) *sdk.Progress {
	unit, name := 24*time.Hour, "days"
	if to.Sub(from) < 3*unit {
		unit, name = time.Hour, "hours"
	}
	text := at.UTC().Format(time.RFC3339)
	if done, spent := at.Sub(from), p.Source.now().Sub(p.began); done > 0 && spent > 0 && at.Before(to) {
		left := time.Duration(math.Min(float64(spent)*(float64(to.Sub(at))/float64(done)), math.MaxInt64/2))
		text += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	return &sdk.Progress{Done: int64(at.Sub(from) / unit), Total: int64((to.Sub(from) + unit - 1) / unit), Unit: name, At: text}
}

// askVanished asks by id for runs that went on before and were not met in this
// pass: slurmdbd got their end late, or someone fixed it far in the past.
func (p *pass) askVanished(ctx context.Context) error {
	lost := map[job.Key]bool{}
	for key := range p.Source.open {
		if _, goesOn := p.open[key]; !goesOn && !p.seen[key] {
			lost[key] = true
		}
	}
	ids := map[int64]bool{}
	for key := range lost {
		ids[key.Raw] = true
	}
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(ids)), maxAskSteps) {
		rows := 0
		q := sacct.Query{Columns: p.plan.Columns, Steps: p.plan.Steps}
		for _, raw := range batch {
			q.Jobs = append(q.Jobs, strconv.FormatInt(raw, 10))
		}
		if err := p.readRuns(ctx, q, &rows, func(r *job.Run) bool { return lost[r.Key] }); err != nil {
			return fmt.Errorf("ask for %d running jobs by id: %w", len(q.Jobs), err)
		}
	}
	for key := range lost {
		p.resolveLost(key)
	}
	return nil
}

const maxAskSteps = 500

// resolveLost keeps asking for a run that sacct no longer knows, and takes it back
// after a day: slurmdbd says that there was none.
func (p *pass) resolveLost(key job.Key) {
	if _, goesOn := p.open[key]; goesOn || p.seen[key] {
		delete(p.missing, key)
		return
	}
	since, known := p.missing[key]
	if !known {
		since = p.began
		p.missing[key] = since
	}
	run := p.Source.open[key]
	if p.began.Sub(since) < p.config.forgetMissing {
		p.open[key] = run
		return
	}
	delete(p.missing, key)
	p.retractRun(run)
}

// retractRun sends a run as not wanted.
func (p *pass) retractRun(o openRun) {
	r, err := p.plan.Lost(o.Key, o.JobID, o.Start)
	if err != nil {
		p.log.Warn("a job that was running is no longer in slurmdbd", "job", o.JobID, "error", err)
		return
	}
	r.Later, r.Qualified = o.Later, p.config.SeveralClusters()
	p.log.Warn("a job that was running is no longer in slurmdbd and is taken back", "job", r.RunName())
	values, _ := p.plan.Values(r) // those that can be known
	p.batch.Jobs = append(p.batch.Jobs, sdk.Job{Run: r.RunName(), Values: values, Ended: true, Excluded: true})
}

// finishPass sends the rest with the checkpoint and remembers what goes on.
func (p *pass) finishPass(ctx context.Context) error {
	if p.now.After(p.done) {
		p.done = p.now
	}
	if p.done.After(p.now.Add(time.Hour)) { // the clock was ahead
		p.done = p.now
	}
	p.batch.Checkpoint = checkpoint{Done: p.done, Open: p.longRuns(p.open), Half: p.halfRunsOf(), Told: p.told}.encodeCheckpoint()
	p.batch.Watermark, p.batch.CompleteFrom = p.now.Add(-p.config.Lag), p.config.Earliest.Time
	p.batch.Progress = p.progressOf(p.from, p.now, p.now)
	if err := p.flushBatch(ctx); err != nil {
		return err
	}
	p.Source.open = p.open
	if p.from.Before(p.now.Add(-p.config.DeepOverlap)) || p.began.Sub(p.swept) >= p.config.DeepInterval {
		p.swept = p.began
	}
	maps.DeleteFunc(p.counted, func(_ job.Key, end time.Time) bool {
		return end.Before(p.now.Add(-p.config.DeepOverlap - p.config.DeepInterval - 24*time.Hour))
	})
	return nil
}

// longRuns are the runs that the checkpoint must hold: those that began so long ago
// that the deep overlap, which follows a restart, may not find their end.
func (p *pass) longRuns(open map[job.Key]openRun) []openRun {
	var out []openRun
	limit := p.done.Add(-p.config.DeepOverlap / 2).Unix()
	for _, o := range open {
		if o.Start < limit {
			out = append(out, o)
		}
	}
	return out
}
