package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
)

// answer is what slurmdbd has of a job.
type answer struct {
	runs []*job.Run // in the order of their starts
	bad  []badRow
}

// badRow is a row that is no run.
type badRow struct {
	name string
	err  error
	raw  []byte
}

// askRuns asks sacct for all runs of the jobs of some events, and returns them by job.
func (p *pass) askRuns(ctx context.Context, due []*waiting) (map[int64]*answer, error) {
	ids, found := map[string]bool{}, map[int64]*answer{}
	for _, w := range due {
		found[w.Job] = &answer{}
		ids[askFor(w)] = true
	}
	q := sacct.Query{Columns: p.plan.Columns, Steps: p.plan.Steps, Jobs: slices.Sorted(maps.Keys(ids))}
	var all []*job.Run
	var run *job.Run // whose steps come next; nil when they are of no interest
	var raw string
	err := p.sacct.Rows(ctx, q, func(row sacct.Row) error {
		id, step := p.plan.IsStep(row.Fields)
		switch {
		case step && run != nil && id == raw:
			run.Step(row.Fields, tooLong(p.plan, row))
		case !step:
			if run, raw = p.readRow(row, found), id; run != nil {
				all = append(all, run)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask sacct for %d jobs: %w", len(q.Jobs), err)
	}
	if err := p.history.Settle(ctx, p.sacct, all); err != nil {
		return nil, err
	}
	for _, a := range found {
		slices.SortStableFunc(a.runs, func(a, b *job.Run) int { return a.Start.Compare(b.Start) })
	}
	return found, nil
}

// askFor is the id by which sacct is asked. The last task of an array has the
// array's own number; asked by that, sacct gives all tasks.
func askFor(w *waiting) string {
	if w.ArrayJob != nil && *w.ArrayJob == w.Job {
		return w.JobID()
	}
	return strconv.FormatInt(w.Job, 10)
}

// readRow reads a job's row and returns its run, unless it is of a job that was not
// asked for, or bad.
func (p *pass) readRow(row sacct.Row, found map[int64]*answer) *job.Run {
	number, err := strconv.ParseInt(row.Fields[0], 10, 64)
	if err != nil {
		return nil // no one asked for that
	}
	a := found[number]
	if a == nil {
		return nil // another task of an array, or another part of a heterogeneous job
	}
	r, err := p.plan.Run(row.Fields)
	if err == nil {
		err = tooLong(p.plan, row)
	}
	r.Qualified = p.config.SeveralClusters()
	if err != nil {
		r.Later = r.Restarts > 0
		name := row.Fields[1]
		if r.ID.Job != "" {
			name = r.RunName()
		}
		a.bad = append(a.bad, badRow{name, err, p.plan.Show(row.Fields)})
		return nil
	}
	a.runs = append(a.runs, r)
	return r
}

func tooLong(plan *job.Plan, row sacct.Row) error {
	if row.Cut < 0 {
		return nil
	}
	return fmt.Errorf("column %s is longer than %d bytes", plan.Columns[row.Cut], sacct.MaxField)
}

// runsOf are the runs of the event's cluster, and why it can have none.
func (a *answer) runsOf(w *waiting) []*job.Run {
	if w.Cluster == "" {
		return a.runs
	}
	return slices.DeleteFunc(slices.Clone(a.runs), func(r *job.Run) bool {
		return r.Cluster != "" && !strings.EqualFold(r.Cluster, w.Cluster)
	})
}

var errNotKnown = errors.New("slurmdbd does not have it")
