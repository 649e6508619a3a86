package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// How often the leader looks for stops that have waited for too long, and how many one
// command dismisses.
const (
	stopsEvery  = 10 * time.Minute
	stopsAtOnce = 500
)

// expireStops dismisses stops whose records have not come for as long as the
// configuration says, while this node leads.
func (a *Aggregator) expireStops(ctx context.Context) error {
	tick := time.NewTicker(stopsEvery)
	defer tick.Stop()
	for {
		if err := a.expireOnce(ctx); err != nil && ctx.Err() == nil {
			a.set.Log.Warn("stops that wait for their records could not be dismissed; the next try is in "+stopsEvery.String(), "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *Aggregator) expireOnce(ctx context.Context) error {
	after := time.Duration(a.stopsExpire.Load())
	if after == 0 {
		return nil
	}
	until := int64(record.FromStd(calendar.Now().Add(-after)))
	ids, err := a.stopsUntil(until)
	if err != nil {
		return err
	}
	dismissed := 0
	for len(ids) > 0 {
		n := min(len(ids), stopsAtOnce)
		result, err := a.replica.Write(ctx, &store.DismissStopsCommand{IDs: ids[:n], Until: until})
		if err != nil {
			return err
		}
		done, ok := result.(store.DeleteResult)
		if !ok {
			return fmt.Errorf("dismiss stops: unexpected result %T", result)
		}
		dismissed, ids = dismissed+done.Changed, ids[n:]
	}
	if dismissed > 0 {
		a.set.Log.Info("stops were dismissed, since their records have not come", "stops", dismissed, "after", after.String())
	}
	return nil
}

// stopsUntil lists the stops that wait and were observed by then.
func (a *Aggregator) stopsUntil(until int64) ([]string, error) {
	return store.With(a.store, func(view *store.View) (ids []string, err error) {
		err = view.WaitingStops(func(e *record.Entry) error {
			if h := e.Holding(record.Pushed); h != nil && h.Waiting() && h.StopObserved <= until {
				ids = append(ids, e.ID)
			}
			return nil
		})
		return ids, err
	})
}
