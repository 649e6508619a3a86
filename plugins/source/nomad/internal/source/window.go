package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// batchRuns is how many runs of a window go together.
const batchRuns = 1000

// recollect sends the runs that ended in a window, and those that go on if it
// reaches to now, from what Nomad and the journal have.
func (s *Source) recollect(ctx context.Context, w *sdk.Window, out *sdk.Stream) error {
	known, err := s.known()
	if err != nil {
		return err
	}
	now := s.now()
	wants := func(v *run.View) bool {
		if v.Stop.IsZero() {
			return v.Start.Before(w.To) && w.To.After(now)
		}
		return w.Holds(v.Stop)
	}
	var batch sdk.Batch
	done := int64(0)
	send := func(entries []*run.Entry, all bool) error {
		if err := s.lookUp(ctx, entries, wants); err != nil {
			return err
		}
		for _, e := range entries {
			for _, v := range e.Views(s.config.ends) {
				if job, ok := s.jobOf(&v); ok && wants(&v) {
					batch.Jobs = append(batch.Jobs, job)
				}
			}
		}
		done += int64(len(entries))
		if len(batch.Jobs) == 0 || len(batch.Jobs) < batchRuns && !all {
			return nil
		}
		batch.Progress = &sdk.Progress{Done: done, Unit: "allocations"}
		b := batch
		batch = sdk.Batch{}
		return out.Send(ctx, b)
	}
	_, err = s.nomad.Allocations(ctx, func(page []*nomad.Allocation) error {
		entries := make([]*run.Entry, len(page))
		for i, a := range page {
			e := known[a.ID]
			if e == nil {
				e = run.New()
			}
			e.Observe(a, now)
			entries[i] = e
			delete(known, a.ID)
		}
		return send(entries, false)
	})
	if err != nil {
		return err
	}
	var rest []*run.Entry
	for _, e := range known {
		rest = append(rest, e)
	}
	return send(rest, true)
}

// known is what the journal has. Without it a window has what Nomad has.
func (s *Source) known() (map[string]*run.Entry, error) {
	out := map[string]*run.Entry{}
	j, err := journal.Read(s.dir, time.Second)
	if errors.Is(err, journal.ErrInUse) || errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	err = j.Each(func(e *run.Entry) error {
		out[e.Alloc.ID] = e
		return nil
	})
	return out, errors.Join(err, j.Close())
}

// lookUp finds the jobs of entries that have runs in the window.
func (s *Source) lookUp(ctx context.Context, entries []*run.Entry, wants func(*run.View) bool) error {
	var lack []*run.Entry
	for _, e := range entries {
		for _, v := range e.Views(s.config.ends) {
			if wants(&v) && e.Job == nil {
				lack = append(lack, e)
				break
			}
		}
	}
	return s.resolve(ctx, lack, watching(s.now()))
}

// Count returns how many runs ended in a window as Nomad's listing has them now,
// before any filter. What Nomad has collected, and restarts beyond the ten events
// that it keeps, are not in it, so the count is a lower bound for windows that are
// older than Nomad's memory.
func (s *Source) Count(ctx context.Context, w sdk.Window) (int64, error) {
	var n int64
	now := s.now()
	_, err := s.nomad.Allocations(ctx, func(page []*nomad.Allocation) error {
		for _, a := range page {
			e := run.New()
			e.Observe(a, now)
			for _, v := range e.Views(s.config.ends) {
				if !v.Stop.IsZero() && w.Holds(v.Stop) {
					n++
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("count allocations: %w", err)
	}
	return n, nil
}
