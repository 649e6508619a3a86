package completeness

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// Keeper compares now and again and remembers what it found, for those who cannot
// wait. It is safe for use by many goroutines.
type Keeper struct {
	// View opens a view of the store, which the keeper closes.
	View func() (*store.View, error)
	Log  *slog.Logger
	// Every is how often it compares; zero is 15 s.
	Every time.Duration
	// Now is the clock; nil is the machine's.
	Now func() time.Time

	mu    sync.Mutex
	days  []Day
	ready bool
}

const (
	compareEvery = 15 * time.Second
	// compareAllEvery is how often all days are compared that were ever counted; those of
	// the last recent days are each time.
	compareAllEvery = time.Hour
	recent          = 35
)

// Run compares until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	told, at := "", progress{}
	repeat.Every(ctx, cmp.Or(k.Every, compareEvery), func() bool {
		err := k.compareChanged(ctx, &at)
		if err != nil && ctx.Err() == nil && err.Error() != told {
			k.Log.Error("the days cannot be compared with what the schedulers have", "error", err)
			told = err.Error()
		}
		return true
	})
	return nil
}

// progress is up to where the days are compared.
type progress struct {
	index uint64    // of the log
	all   time.Time // when all days were compared
}

// compareChanged compares the days that may have changed.
func (k *Keeper) compareChanged(ctx context.Context, at *progress) (err error) {
	view, err := k.View()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	now := k.now()
	index, _ := view.Applied()
	whole := at.all.IsZero() || now.Sub(at.all) >= compareAllEvery
	if index == at.index && !whole {
		return nil
	}
	days, err := compareCounted(ctx, view, now, whole)
	if err != nil {
		return err
	}
	if at.index = index; whole {
		at.all = now
	}
	k.mergeDays(days, whole)
	return nil
}

// compareCounted compares the counted days: the recent ones, or all.
func compareCounted(ctx context.Context, v View, now time.Time, whole bool) ([]Day, error) {
	today := Begin(record.FromStd(now))
	w := Window{From: today - recent*micro, To: today + micro}
	if whole {
		facts, err := v.Facts(store.FactCount)
		if err != nil {
			return nil, err
		}
		for i := range facts {
			w.From = min(w.From, Begin(facts[i].At))
		}
		w.From = max(w.From, today-longest*micro)
	}
	return Look(ctx, v, w)
}

// longest is how many days are compared at most: ten years.
const longest = 3653

// mergeDays remembers days in the place of those of the same time.
func (k *Keeper) mergeDays(days []Day, whole bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !whole && len(days) > 0 {
		first := days[0].From
		for i := range days {
			first = min(first, days[i].From)
		}
		for i := range k.days {
			if k.days[i].From < first {
				days = append(days, k.days[i])
			}
		}
	}
	k.days, k.ready = sortDays(days), true
}

// Days returns what was found last of the days that begin in the window; false
// before the first comparison.
func (k *Keeper) Days(w Window) ([]Day, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []Day
	for i := range k.days {
		if w.hasDay(k.days[i].From) {
			out = append(out, k.days[i])
		}
	}
	return out, k.ready
}

func (k *Keeper) now() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}
