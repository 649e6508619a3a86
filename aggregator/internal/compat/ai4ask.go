package compat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// askCluster reads what the cluster did, and says when ai4-accounting looked at it.
func (o *AI4Options) askCluster(ctx context.Context, r v1.API) (*ai4World, error) {
	all, err := r.Usage(ctx, &v1.UsageQuery{Window: cmp.Or(o.Period, "2000..today"), Measure: "records"})
	if err != nil {
		return nil, err
	}
	if all.Complete.Limited {
		return nil, errors.New("ai4-accounting's figures are those of all users, and this principal may see some records only; report summary and report usage without -compat are for these")
	}
	w := &ai4World{from: all.Window.From.Time, to: all.Window.To.Time}
	if w.namespaces, err = o.namespacesOf(ctx, r); err != nil {
		return nil, err
	}
	if err := w.readRuns(ctx, r); err != nil {
		return nil, err
	}
	if o.Period == "" {
		w.from = o.firstInstant(w)
	}
	w.waiting = w.unrecordedWaiting(o.Waiting)
	w.instants, err = o.snapshotTimes(w)
	return w, err
}

// namespacesOf are those that records have ever had, and those of the options.
func (o *AI4Options) namespacesOf(ctx context.Context, r v1.API) ([]string, error) {
	var known v1.Usage
	var err error
	for _, key := range []string{keyNamespace, keyGroup} {
		known, err = r.Usage(ctx, &v1.UsageQuery{Window: "2000..today", By: key, Measure: "records"})
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusBadRequest {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	list := slices.Clone(o.Namespaces)
	for g := range known.Groups {
		if v := known.Groups[g].Values; len(v) == 1 && v[0] != nil {
			list = append(list, *v[0])
		}
	}
	list = slices.DeleteFunc(list, func(n string) bool { return n == "default" || n == "tutorials" })
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 0 {
		return nil, fmt.Errorf("%w: no record has a namespace", report.ErrNothing)
	}
	return list, nil
}

// readRuns reads the runs that touch the window, and those that waited in it: in one answer, for
// which each archive is read once, and of each record what its run needs is kept.
func (w *ai4World) readRuns(ctx context.Context, r v1.API) error {
	b := ai4Builder{world: w, jobs: map[string]*ai4Job{}, allocations: map[string]*allocation{}}
	started := v1.TimeTest{Lt: v1.Time{Time: w.to.Add(ai4Waits)}}
	for _, q := range []v1.ListRecordsQuery{
		{Open: new(true), StartTime: started},
		{Open: new(false), Archived: new(true), StartTime: started, StopTime: v1.TimeTest{Gte: v1.Time{Time: w.from.Add(-ai4Listed)}}},
	} {
		for one, err := range r.ListRecordsLines(ctx, &q) {
			if err != nil {
				return fmt.Errorf("the records of ai4: %w", err)
			}
			b.addRecord(&one)
		}
	}
	b.finishJobs()
	return nil
}

// firstInstant is when a history begins: with the first snapshot, else with the first job.
func (o *AI4Options) firstInstant(w *ai4World) time.Time {
	switch {
	case len(o.Snapshots) > 0:
		return slices.MinFunc(o.Snapshots, time.Time.Compare)
	case len(w.jobs) > 0 && w.jobs[0].begin.After(w.from):
		return w.jobs[0].begin
	case len(w.jobs) > 0:
		return w.from
	}
	return o.Now.UTC().Truncate(24 * time.Hour)
}

// snapshotTimes are the times of the snapshots of the window.
func (o *AI4Options) snapshotTimes(w *ai4World) (list []time.Time, err error) {
	if o.Snapshots != nil {
		for _, t := range o.Snapshots {
			if !t.Before(w.from) && t.Before(w.to) {
				list = append(list, t)
			}
		}
		slices.SortFunc(list, time.Time.Compare)
		if list = slices.Compact(list); len(list) == 0 {
			return nil, fmt.Errorf("%w: none of the %d snapshots is of the time from %s to %s",
				report.ErrNothing, len(o.Snapshots), w.from.Format(view.MinuteLayout), w.to.Format(view.MinuteLayout))
		}
		return list, nil
	}
	every := cmp.Or(o.Every, ai4Every)
	if every < time.Minute || every > 24*time.Hour {
		return nil, fmt.Errorf("snapshots are %s apart; want from a minute to a day", every)
	}
	end := w.to
	if o.Now.Before(end) {
		end = o.Now
	}
	for day := w.from.UTC().Truncate(24 * time.Hour); day.Before(end); day = day.Add(24 * time.Hour) {
		for t := day.Add(ai4Offset); t.Before(end) && t.Before(day.Add(24*time.Hour)); t = t.Add(every) {
			if !t.Before(w.from) {
				list = append(list, t)
			}
		}
	}
	return list, nil
}
