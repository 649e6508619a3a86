package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Count implements sdk.Counter: it asks the job table for all states in which a run
// can end, each with the time of its end. A look of Collect asks for what could run
// in a window, and sorts the ends itself.
func (s *Source) Count(ctx context.Context, w sdk.Window) (int64, error) {
	columns, err := s.sacct.Columns(ctx)
	if err != nil {
		return 0, err
	}
	plan, err := job.NewPlan(func(string) bool { return false }, columns)
	if err != nil {
		return 0, err
	}
	n, width := int64(0), w.To.Sub(w.From)
	for at := w.From; at.Before(w.To); {
		to := at.Add(width)
		if to.After(w.To) {
			to = w.To
		}
		runs, err := s.countEnds(ctx, plan, sdk.Window{From: at, To: to})
		switch {
		case errors.Is(err, sacct.ErrTooWide) && width > minWindow:
			width = max(minWindow, width/2)
			continue
		case err != nil:
			return 0, fmt.Errorf("count the runs from %s to %s: %w", at.Format(time.RFC3339), to.Format(time.RFC3339), err)
		}
		n, at = n+runs, to
	}
	return n, nil
}

// countEnds counts the runs that ended in w. A row that cannot be read is one that
// Collect refuses, which counts.
func (s *Source) countEnds(ctx context.Context, plan *job.Plan, w sdk.Window) (int64, error) {
	refused, runs := int64(0), map[job.Key]struct{}{}
	q := sacct.Query{Columns: plan.Columns, From: w.From, To: w.To, States: field.EndStateNames()}
	err := s.sacct.Rows(ctx, q, func(row sacct.Row) error {
		if _, step := plan.IsStep(row.Fields); step {
			return nil
		}
		r, err := plan.Run(row.Fields)
		switch {
		case err != nil:
			refused++
		case r.Started() && w.Holds(r.End):
			runs[r.Key] = struct{}{}
		}
		return nil
	})
	return int64(len(runs)) + refused, err
}
