package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const (
	halfWatched = 31 * 24 * time.Hour // how long after a run slurmdbd may get the rest of it
	halfPause   = time.Hour           // between two questions for such runs
	maxHalf     = 10_000              // such runs that are asked for
)

// recallHalfRuns takes up the half runs of a checkpoint.
func (s *Source) recallHalfRuns(half []halfRun, now time.Time) {
	for _, h := range half {
		if _, known := s.half[h.Key]; !known {
			s.half[h.Key] = h
		}
	}
	oldest := now.Add(-halfWatched).Unix()
	maps.DeleteFunc(s.half, func(_ job.Key, h halfRun) bool { return h.Since < oldest })
}

// watchHalf remembers the name of a run of which slurmdbd has only half, before it is
// sent.
func (p *pass) watchHalf(r *job.Run) {
	_, watched := p.half[r.Key]
	p.met[r.Key] = p.met[r.Key] || watched || r.Incomplete()
	at := r.End
	if at.IsZero() {
		at = r.Start
	}
	if r.Incomplete() && !watched && len(p.half) < maxHalf && p.now.Sub(at) < halfWatched {
		p.half[r.Key] = halfRun{Key: r.Key, Since: at.Unix(), Name: r.Name()}
	}
}

// renameRun returns the run of a job of the batch as it was sent before, where that was
// under another name.
func (p *pass) renameRun(r *job.Run) (formerly []sdk.Job) {
	h, watched := p.half[r.Key]
	if !watched {
		return nil
	}
	if h.Name != r.Name() {
		if old, err := r.Named(h.Name); err == nil {
			values, _ := p.plan.Values(old) // those that can be known; the id is among them
			formerly = []sdk.Job{{Run: old.RunName(), Values: values, Ended: true}}
		}
	}
	p.renaming[r.Key] = r.Name()
	if !r.Incomplete() {
		p.renaming[r.Key] = ""
	}
	return formerly
}

// noteRenamed notes the names of a batch that the daemon has.
func (p *pass) noteRenamed() {
	for key, name := range p.renaming {
		h := p.half[key]
		switch h.Name = name; {
		case p.again: // the checkpoint has what was
		case name == "":
			delete(p.half, key)
		default:
			p.half[key] = h
		}
	}
	clear(p.renaming)
}

// halfRunsOf are the half runs as they are once the daemon has the batch.
func (p *pass) halfRunsOf() (out []halfRun) {
	for key, h := range p.half {
		if name, now := p.renaming[key]; now {
			h.Name = name
		}
		if h.Name != "" {
			out = append(out, h)
		}
	}
	return out
}

// askHalf asks by id for half runs that were not met in this pass.
func (p *pass) askHalf(ctx context.Context) error {
	ids := map[int64]bool{}
	for key := range p.half {
		if !p.met[key] {
			ids[key.Raw] = true
		}
	}
	if len(ids) == 0 || p.began.Sub(p.halved) < halfPause {
		return nil
	}
	met := maps.Clone(p.met) // reading adds to it
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(ids)), maxAskSteps) {
		q, rows := sacct.Query{Columns: p.plan.Columns, Steps: p.plan.Steps}, 0
		for _, raw := range batch {
			q.Jobs = append(q.Jobs, strconv.FormatInt(raw, 10))
		}
		belongs := func(r *job.Run) bool { _, half := p.half[r.Key]; return half && !met[r.Key] }
		if err := p.readRuns(ctx, q, &rows, belongs); err != nil {
			return fmt.Errorf("ask for %d jobs by id of which slurmdbd had only half: %w", len(q.Jobs), err)
		}
	}
	p.halved = p.began
	return nil
}
