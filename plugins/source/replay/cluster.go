package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const (
	liveGap   = 2 * time.Second  // between the starts of two live jobs, at speed 1
	liveMost  = 10 * time.Minute // a live job's runtime, at speed 1
	liveSlice = time.Hour        // how much life is sent at once
	chunk     = 2000             // jobs in a batch

	censusEvery = time.Minute
	longestWait = 10 * time.Minute // of those who are looked for

	missedDays = 9 // how long before the first start the day is of which jobs are missed
)

// cluster plays a recorded cluster: some weeks of history that end when it is
// first asked, and from then on a lively present. Every job is a function of
// the seed, the first moment and the job's number, so nothing is kept but the
// moment.
type cluster struct {
	seed    uint64
	jobs    int // of the history
	history time.Duration
	missed  int // jobs of a day of the history that only a window brings
	speed   float64
	now     func() time.Time

	anchor time.Time // that of the last collection
	resent bool      // the running jobs were sent since the process began
	late   []job
	lateOf time.Time

	counted time.Time // when the last census was
}

// played is the checkpoint: everything until then was sent.
type played struct {
	Format int   `json:"format"`
	Anchor int64 `json:"anchor"` // the end of the history, microseconds
	Until  int64 `json:"until"`  // microseconds
}

func (c *cluster) startFrom(data []byte) (played, error) {
	if len(data) == 0 {
		anchor := c.anchor // a window comes without a checkpoint, and is of the same jobs
		if anchor.IsZero() {
			anchor = c.now().Truncate(time.Second)
		}
		return played{Format: 1, Anchor: anchor.UnixMicro(), Until: anchor.Add(-c.history - time.Hour).UnixMicro()}, nil
	}
	var p played
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("checkpoint: %w", err)
	}
	if p.Format != 1 {
		return p, fmt.Errorf("checkpoint: format %d is unknown to this version of the plugin", p.Format)
	}
	return p, nil
}

func (p played) anchorTime() time.Time { return time.UnixMicro(p.Anchor).UTC() }
func (p played) untilTime() time.Time  { return time.UnixMicro(p.Until).UTC() }

func (c *cluster) collectJobs(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	at, err := c.startFrom(from.Checkpoint)
	if err != nil {
		return err
	}
	c.anchor = at.anchorTime()
	now := c.now().UTC().Truncate(time.Microsecond)
	if w := from.Window; w != nil {
		whole := *c
		whole.missed = 0
		return whole.playJobs(ctx, out, at, w.From.Add(-time.Microsecond), earlierOf(w.To.Add(-time.Microsecond), now), now)
	}
	begin := at.untilTime().Add(-from.Rewind)
	for begin.Before(now) {
		end := earlierOf(begin.Add(liveSlice), now)
		if begin.Before(at.anchorTime()) {
			end = earlierOf(at.anchorTime(), now)
		}
		if err := c.playJobs(ctx, out, at, begin, end, now); err != nil {
			return err
		}
		begin = end
	}
	if err := c.resendRunning(ctx, out, at, now); err != nil {
		return err
	}
	return c.sendCensus(ctx, out, at, now)
}

func earlierOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// playJobs sends the jobs that ended in (from, to], in the order of their ends, and
// those that began in it and still run.
func (c *cluster) playJobs(ctx context.Context, out *sdk.Stream, at played, from, to, now time.Time) error {
	var ended, running []job
	in := func(t time.Time) bool { return t.After(from) && !t.After(to) }
	for j := range c.jobsBetween(at.anchorTime(), from, to) {
		switch {
		case !j.stop.After(now) && in(j.stop):
			ended = append(ended, j)
		case j.stop.After(now) && in(j.start):
			running = append(running, j)
		}
	}
	ended, gaps := c.missJobs(at.anchorTime(), ended)
	slices.SortFunc(ended, func(a, b job) int { return cmp.Or(a.stop.Compare(b.stop), cmp.Compare(a.number, b.number)) })
	if err := c.sendJobs(ctx, out, running, now, nil); err != nil {
		return err
	}
	for part := range slices.Chunk(ended, chunk) {
		at.Until = part[len(part)-1].stop.UnixMicro() - 1 // others may have ended at the same time
		if err := c.sendJobs(ctx, out, part, now, &at); err != nil {
			return err
		}
	}
	at.Until = to.UnixMicro()
	if len(gaps) > 0 {
		if err := out.Send(ctx, sdk.Batch{Gaps: gaps}); err != nil {
			return err
		}
	}
	return c.sendJobs(ctx, out, nil, now, &at)
}

// missJobs leaves out the first jobs of a day of the history, as if a log had been rotated too
// early. It returns the rest, and the gap.
func (c *cluster) missJobs(anchor time.Time, ended []job) (rest []job, gaps []sdk.Gap) {
	day := anchor.Truncate(24 * time.Hour).Add(-missedDays * 24 * time.Hour)
	left := c.missed
	gap := sdk.Gap{From: day, Reason: "demo: the log was rotated before it was read"}
	rest = slices.DeleteFunc(ended, func(j job) bool {
		if left == 0 || !j.stop.Truncate(24*time.Hour).Equal(day) {
			return false
		}
		left--
		if j.stop.After(gap.To) {
			gap.To = j.stop
		}
		return true
	})
	if !gap.To.IsZero() {
		gaps = append(gaps, gap)
	}
	return rest, gaps
}

// countJobs counts the jobs that ended in w.
func (c *cluster) countJobs(_ context.Context, w sdk.Window) (n int64, err error) {
	if c.anchor.IsZero() {
		return 0, errors.New("nothing was collected yet")
	}
	now := c.now()
	to := w.To.Add(-time.Microsecond)
	if to.After(now) { // a job that begins later has not ended, and a window may end in centuries
		to = now
	}
	for j := range c.jobsBetween(c.anchor, w.From.Add(-time.Microsecond), to) {
		if !j.stop.Before(w.From) && j.stop.Before(w.To) && !j.stop.After(now) {
			n++
		}
	}
	return n, nil
}

// sendJobs sends jobs, and the checkpoint if there is one.
func (c *cluster) sendJobs(ctx context.Context, out *sdk.Stream, jobs []job, now time.Time, at *played) error {
	var b sdk.Batch
	for i := range jobs {
		b.Jobs = append(b.Jobs, jobs[i].encodeJob(now))
	}
	if at != nil {
		b.Checkpoint, _ = json.Marshal(at) // numbers only
		b.Watermark = at.untilTime()
	}
	if len(b.Jobs) == 0 && at == nil {
		return nil
	}
	return out.Send(ctx, b)
}

// resendRunning sends all that runs, once in the life of the process: a batch that was
// not acknowledged may have been the only one that had them.
func (c *cluster) resendRunning(ctx context.Context, out *sdk.Stream, at played, now time.Time) error {
	if c.resent {
		return nil
	}
	var running []job
	for j := range c.jobsBetween(at.anchorTime(), now.Add(-liveSlice), now) {
		if !j.start.After(now) && j.stop.After(now) {
			running = append(running, j)
		}
	}
	if err := c.sendJobs(ctx, out, running, now, nil); err != nil {
		return err
	}
	c.resent = true
	return nil
}

// sendCensus says now and then who has jobs that run or wait.
func (c *cluster) sendCensus(ctx context.Context, out *sdk.Stream, at played, now time.Time) error {
	if now.Sub(c.counted) < censusEvery {
		return nil
	}
	c.counted = now
	type place struct{ user, queue string }
	rows := map[place]sdk.CensusRow{}
	from := at.anchorTime()
	if recent := now.Add(-liveSlice); recent.After(from) {
		from = recent
	}
	for j := range c.jobsBetween(at.anchorTime(), from, now.Add(longestWait)) {
		p := place{userName(j.user), playedSites()[j.site].partitions[j.partition]}
		row := rows[p]
		switch {
		case !j.start.After(now) && j.stop.After(now):
			row.Running++
		case !j.submit.After(now) && j.start.After(now):
			row.Pending++
		default:
			continue
		}
		row.User, row.Queue = p.user, p.queue
		rows[p] = row
	}
	census := &sdk.Census{At: now, Rows: slices.SortedFunc(maps.Values(rows), func(a, b sdk.CensusRow) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Queue, b.Queue))
	})}
	return out.Send(ctx, sdk.Batch{Census: census})
}
