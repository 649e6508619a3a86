package usage

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Keeper has the index of a node, and makes a new one when its dimensions change:
// meanwhile the old one answers.
type Keeper struct {
	opt     Options
	log     *slog.Logger
	current atomic.Pointer[Index] // nil: there is none yet, or none can be

	mu      sync.Mutex
	wanted  []string
	changed chan struct{}
}

// NewKeeper returns a keeper without an index: until Run has made one, and when
// there can be none, questions are answered from the rows. The registry may be nil.
func NewKeeper(o Options, log *slog.Logger, metrics prometheus.Registerer) *Keeper {
	k := &Keeper{opt: o, log: log, changed: make(chan struct{}, 1)}
	if metrics != nil {
		metrics.MustRegister(k.gauges()...)
	}
	return k
}

// Set says by which meta keys sums are kept. None keeps none.
func (k *Keeper) Set(dimensions []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted = slices.Clone(dimensions)
	k.again()
}

// followEvery is how far an index that nobody asks may be behind. A question brings it
// to the present by itself; it must not find much to do.
const followEvery = 200 * time.Millisecond

// Run makes the index and follows the store until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.changed:
			k.renew(ctx)
		case <-tick.C:
			k.follow(ctx)
		}
	}
}

// renew makes the index that is wanted.
func (k *Keeper) renew(ctx context.Context) {
	k.mu.Lock()
	wanted := k.wanted
	k.mu.Unlock()
	old := k.current.Load()
	if len(wanted) == 0 {
		k.current.Store(nil)
		return
	}
	if old != nil && slices.Equal(old.dims, wanted) {
		return
	}
	began := time.Now()
	x := NewIndex(k.opt, wanted)
	if err := x.Follow(ctx); err != nil {
		k.failed(ctx, err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return
	}
	k.current.Store(x)
	k.log.Info("the usage index is made", "dimensions", wanted, "changes", x.Seq(), "seconds", time.Since(began).Seconds())
}

func (k *Keeper) follow(ctx context.Context) {
	x := k.current.Load()
	if x == nil {
		return
	}
	if err := x.Follow(ctx); err != nil {
		k.failed(ctx, err)
	}
}

// failed gives the index up: without one answers are slower, not wrong. What is not
// the size may pass, so it is made again.
func (k *Keeper) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	k.current.Store(nil)
	k.log.Error("there is no usage index: usage is added up from the records, which takes longer", "error", err)
	if !errors.Is(err, ErrTooLarge) {
		k.again()
	}
}

func (k *Keeper) again() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Answer answers a question of the present state of the store.
func (k *Keeper) Answer(ctx context.Context, q Question) (*Answer, error) {
	if x := k.current.Load(); x != nil {
		a, err := x.Answer(ctx, q)
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrQuestion) {
			return a, err
		}
		k.failed(ctx, err)
	}
	return Rows(ctx, k.opt.Views, q)
}

// gauges are what the keeper says of itself.
func (k *Keeper) gauges() []prometheus.Collector {
	gauge := func(name, help string, of func(*Index) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			x := k.current.Load()
			if x == nil {
				return 0
			}
			x.mu.RLock()
			defer x.mu.RUnlock()
			return of(x)
		})
	}
	return []prometheus.Collector{
		gauge("bursar_usage_index_ready", "1 while usage is answered from sums by day, 0 while records are added up for each question.", func(*Index) float64 { return 1 }),
		gauge("bursar_usage_series", "Tuples of dimensions and components of which sums by day are kept.", func(x *Index) float64 { return float64(len(x.series)) }),
		gauge("bursar_usage_bytes", "About how much memory the sums by day take.", func(x *Index) float64 { return float64(x.bytes) }),
	}
}
