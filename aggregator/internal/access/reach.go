package access

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Reach says how far back records reach. [record.None] is not known.
type Reach struct {
	// Start is the earliest of all records. FirstStart and FirstStop are those of the
	// record that stopped first.
	Start, FirstStart, FirstStop record.Time
	// CompleteFrom is the earliest time from which on a source has all runs that ended;
	// None where a source with records does not say it.
	CompleteFrom record.Time
	// Sources are those with records; first those that do not say when they begin, then by that.
	Sources []SourceBegin
}

// SourceBegin says from when on a source has all runs that ended; None where it does not say.
type SourceBegin struct {
	Source record.Origin
	At     record.Time
}

// Reaches remembers how far back records reached, since it takes a look at every block and
// seldom changes. It is safe for use by many goroutines.
type Reaches struct {
	last atomic.Pointer[reached]
}

type reached struct {
	Reach

	index uint64 // of the log
	at    time.Time
}

// reachedFor is how long a [Reach] is taken for that of later changes.
const reachedFor = 2 * time.Second

// Reach returns how far back the records of the cluster reach, also to a principal that
// does not see them all. Earlier records that have just come may not be in it yet.
func (v *View) Reach(ctx context.Context) (Reach, error) {
	if v.reaches == nil {
		return v.reachOf(ctx)
	}
	last, now := v.reaches.last.Load(), time.Now()
	index, _ := v.Applied()
	if last != nil && (last.index == index || last.Start != record.None && now.Sub(last.at) < reachedFor) {
		return last.Reach, nil
	}
	r, err := v.reachOf(ctx)
	if err == nil {
		v.reaches.last.Store(&reached{r, index, now})
	}
	return r, err
}

func (v *View) reachOf(ctx context.Context) (Reach, error) {
	// Of a block or two at a time: a request that held memory while it waits for that of its
	// answer could wait for others that do.
	ctx = store.WithLease(ctx, nil)
	r := Reach{Start: record.None, FirstStart: record.None, FirstStop: record.None, CompleteFrom: record.None}
	earliest := store.Query{Order: store.ByStart, Limit: 1, ReuseRows: true}
	err := v.view.Query(ctx, earliest, func(row *columns.Row) error {
		r.Start = row.Record.Start
		return nil
	})
	if err != nil {
		return r, err
	}
	first := store.Query{Order: store.ByStop, Open: store.OnlyClosed, Limit: 1, ReuseRows: true}
	err = v.view.Query(ctx, first, func(row *columns.Row) error {
		r.FirstStart, r.FirstStop = row.Record.Start, row.Record.Stop
		return nil
	})
	if err != nil {
		return r, err
	}
	begins, err := v.view.Facts(store.FactBegin)
	if err != nil {
		return r, err
	}
	said := map[record.Origin]record.Time{}
	for _, f := range begins {
		said[f.Source] = f.At
		if r.CompleteFrom == record.None || f.At < r.CompleteFrom {
			r.CompleteFrom = f.At
		}
	}
	counters, err := v.view.Counters()
	for _, c := range counters {
		at, ok := said[c.Source]
		switch {
		case c.Counts.Pulled == 0:
		case ok:
			r.Sources = append(r.Sources, SourceBegin{c.Source, at})
		default:
			r.Sources = append(r.Sources, SourceBegin{c.Source, record.None})
			r.CompleteFrom = record.None
		}
	}
	slices.SortFunc(r.Sources, func(a, b SourceBegin) int { return cmp.Or(cmp.Compare(a.At, b.At), a.Source.Compare(b.Source)) })
	return r, err
}
