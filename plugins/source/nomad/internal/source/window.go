package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// batchRuns is how many runs of a window go together.
const batchRuns = 1000

// collectWindow sends the runs that ended in a window, and those that go on if it
// reaches to now, from what Nomad and the journal have.
func (s *Source) collectWindow(ctx context.Context, w *sdk.Window, out *sdk.Stream) (err error) {
	known, err := journalForm().ReadOnly(ctx, s.dir) // without it a window has what Nomad has
	if err != nil {
		return err
	}
	r := &recollection{Source: s, window: w, out: out, now: s.now(), known: known, listed: map[string]bool{}}
	defer func() { err = errors.Join(err, known.Close()) }()
	return r.sendWindow(ctx)
}

// recollection is one Collect of a window.
type recollection struct {
	*Source
	window *sdk.Window
	out    *sdk.Stream
	now    time.Time
	known  *journal.Journal[*run.Entry]
	listed map[string]bool // allocations that Nomad has
	batch  sdk.Batch
	done   int64
}

func (r *recollection) sendWindow(ctx context.Context) error {
	_, err := r.nomad.Allocations(ctx, func(page []*nomad.Allocation) error {
		var entries []*run.Entry
		for _, a := range page {
			r.listed[a.ID] = true
			e, found, err := r.known.Get(a.ID)
			if err != nil {
				return err
			}
			if !found {
				e = run.New()
			}
			e.Observe(a, r.now)
			entries = append(entries, e)
		}
		return r.sendRuns(ctx, entries, false)
	})
	if err != nil {
		return err
	}
	err = r.known.Each(func(e *run.Entry) error {
		if r.listed[e.Alloc.ID] || !r.hasRuns(e) {
			return nil
		}
		return r.sendRuns(ctx, []*run.Entry{e}, false)
	})
	if err != nil {
		return err
	}
	return r.sendRuns(ctx, nil, true)
}

// wantsRun reports whether a run belongs to the window.
func (r *recollection) wantsRun(v *run.View) bool {
	if v.Stop.IsZero() {
		return v.Start.Before(r.window.To) && r.window.To.After(r.now)
	}
	return r.window.Holds(v.Stop)
}

// hasRuns reports whether an entry has runs in the window.
func (r *recollection) hasRuns(e *run.Entry) bool {
	return slices.ContainsFunc(e.Views(r.config.ends), func(v run.View) bool { return r.wantsRun(&v) })
}

// sendRuns puts the runs of entries into the batch, and sends it when it is large or the
// last one.
func (r *recollection) sendRuns(ctx context.Context, entries []*run.Entry, last bool) error {
	var lack []*run.Entry
	for _, e := range entries {
		if e.Job == nil && r.hasRuns(e) {
			lack = append(lack, e)
		}
	}
	if err := r.resolveJobs(ctx, lack, func(e *run.Entry, a *nomad.Allocation) { e.Observe(a, r.now) }); err != nil {
		return err
	}
	for _, e := range entries {
		for _, v := range e.Views(r.config.ends) {
			if job, ok := r.jobOf(&v); ok && r.wantsRun(&v) {
				r.batch.Jobs = append(r.batch.Jobs, job)
			}
		}
	}
	r.done += int64(len(entries))
	if len(r.batch.Jobs) == 0 || len(r.batch.Jobs) < batchRuns && !last {
		return nil
	}
	b := r.batch
	b.Progress = &sdk.Progress{Done: r.done, Unit: "allocations"}
	r.batch = sdk.Batch{}
	return r.out.Send(ctx, b)
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
