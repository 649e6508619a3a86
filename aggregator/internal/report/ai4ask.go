package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ask reads what the cluster did, and says when ai4-accounting looked at it.
func (o *AI4Options) ask(ctx context.Context, r v1.API) (*ai4World, error) {
	w := &ai4World{}
	var err error
	if w.window, err = o.window(ctx, r); err != nil {
		return nil, err
	}
	if w.namespaces, err = o.namespaces(ctx, r); err != nil {
		return nil, err
	}
	if err := w.read(ctx, r); err != nil {
		return nil, err
	}
	if o.Period == "" {
		w.window.From = o.first(w)
	}
	w.instants, err = o.instants(w.window)
	return w, err
}

// window asks what the period is.
func (o *AI4Options) window(ctx context.Context, r v1.API) (span, error) {
	var a usageAnswer
	var err error
	if a.Usage, err = r.Usage(ctx, &v1.UsageQuery{Window: cmp.Or(o.Period, "2000..today"), Measure: "records"}); err != nil {
		return span{}, err
	}
	if a.Complete.Limited {
		return span{}, errors.New("ai4-accounting's figures are those of all users, and this principal may see some records only; report summary and report usage without -compat are for these")
	}
	return a.window(), nil
}

// namespaces are those that records have ever had, and those of the options.
func (o *AI4Options) namespaces(ctx context.Context, r v1.API) ([]string, error) {
	var a usageAnswer
	var err error
	for _, key := range []string{keyNamespace, keyGroup} {
		a.Usage, err = r.Usage(ctx, &v1.UsageQuery{Window: "2000..today", By: key, Measure: "records"})
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusBadRequest {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	list := slices.Clone(o.Namespaces)
	for g := range a.Groups {
		if v := a.Groups[g].Values; len(v) == 1 && v[0] != nil {
			list = append(list, *v[0])
		}
	}
	list = slices.DeleteFunc(list, func(n string) bool { return n == "default" || n == "tutorials" })
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 0 {
		return nil, fmt.Errorf("%w: no record has a namespace", ErrNothing)
	}
	return list, nil
}

// read reads the runs that touch the window, and those that waited in it.
func (w *ai4World) read(ctx context.Context, r v1.API) error {
	b := ai4Builder{world: w, jobs: map[string]*ai4Job{}, allocations: map[string]*allocation{}}
	started := v1.TimeTest{Lt: v1.Time{Time: w.window.To.Add(ai4Waits)}}
	for _, q := range []v1.ListRecordsQuery{
		{Open: new(true), StartTime: started},
		{Open: new(false), StartTime: started, StopTime: v1.TimeTest{Gte: v1.Time{Time: w.window.From.Add(-ai4Listed)}}},
	} {
		q.Limit = ai4Page
		for more := true; more; more = q.Cursor != "" {
			page, err := r.ListRecords(ctx, &q)
			if err != nil {
				return fmt.Errorf("the records of ai4: %w", err)
			}
			for i := range page.Records {
				b.add((*job)(&page.Records[i]))
			}
			q.Cursor = string(page.Next)
		}
	}
	b.finish()
	return nil
}

// first is when a history begins: with the first snapshot, else with the first job.
func (o *AI4Options) first(w *ai4World) time.Time {
	switch {
	case len(o.Snapshots) > 0:
		return slices.MinFunc(o.Snapshots, time.Time.Compare)
	case len(w.jobs) > 0 && w.jobs[0].begin.After(w.window.From):
		return w.jobs[0].begin
	case len(w.jobs) > 0:
		return w.window.From
	}
	return o.Now.UTC().Truncate(24 * time.Hour)
}

// instants are the times of the snapshots of a window.
func (o *AI4Options) instants(w span) ([]time.Time, error) {
	end := w.To
	if o.Now.Before(end) {
		end = o.Now
	}
	var list []time.Time
	if o.Snapshots != nil {
		for _, t := range o.Snapshots {
			if !t.Before(w.From) && t.Before(w.To) {
				list = append(list, t)
			}
		}
		slices.SortFunc(list, time.Time.Compare)
		if list = slices.Compact(list); len(list) == 0 {
			return nil, fmt.Errorf("%w: none of the %d snapshots is of the time from %s to %s", ErrNothing, len(o.Snapshots), w.From.Format(MinuteLayout), w.To.Format(MinuteLayout))
		}
		return list, nil
	}
	every := cmp.Or(o.Every, ai4Every)
	if every < time.Minute || every > 24*time.Hour {
		return nil, fmt.Errorf("snapshots are %s apart; want from a minute to a day", every)
	}
	for day := w.From.UTC().Truncate(24 * time.Hour); day.Before(end); day = day.Add(24 * time.Hour) {
		for t := day.Add(ai4Offset); t.Before(end) && t.Before(day.Add(24*time.Hour)); t = t.Add(every) {
			if !t.Before(w.From) {
				list = append(list, t)
			}
		}
	}
	return list, nil
}
