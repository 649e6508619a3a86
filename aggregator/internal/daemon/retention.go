package daemon

import (
	"context"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
)

// How often the leader looks for names that are kept no longer, since late records come on
// any day, and whether the configuration says something else.
const (
	retentionEvery = 6 * time.Hour
	retentionTick  = time.Minute
)

// retentionPolicy says how long records keep names.
func (a *Aggregator) retentionPolicy() erasure.Policy {
	if p := a.retention.Load(); p != nil {
		return *p
	}
	return erasure.Policy{}
}

// removeOldNames removes names after the time that the configuration says, while this node leads.
func (a *Aggregator) removeOldNames(ctx context.Context) error {
	tick := time.NewTicker(retentionTick)
	defer tick.Stop()
	var did *erasure.Policy
	var last time.Time
	for {
		if p := a.retention.Load(); p != did || time.Since(last) >= retentionEvery {
			if err := a.removeNamesOnce(ctx); err != nil && ctx.Err() == nil {
				a.set.Log.Warn("not all names of persons were removed from old records; the next try is in "+retentionTick.String(), "error", err)
			} else {
				did, last = p, time.Now()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *Aggregator) removeNamesOnce(ctx context.Context) error {
	policy := a.retentionPolicy()
	if policy.Months == 0 {
		return nil
	}
	if err := a.replica.checkWritable(); err != nil {
		return err
	}
	r := &erasure.Retainer{Views: a.store, Write: a.replica.Write, Policy: policy, Directory: a.accounts.Now().Directory, Now: calendar.Now()}
	done, err := r.Run(ctx)
	if err != nil {
		return err
	}
	until := policy.Until(r.Now)
	runs, err := a.actions.ForgetRuns(ctx, until.Std())
	if done.Records > 0 || done.Quarantined > 0 || runs > 0 {
		a.set.Log.Info("names of persons were removed from old records", "records", done.Records, "quarantined_dropped", done.Quarantined,
			"archived_kept", done.Archived, "action_runs_removed", runs, "until", until.String())
	}
	return err
}
