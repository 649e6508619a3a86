package sums

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
)

// Keeper has the indexes of a node, one for each time zone, and makes new ones when
// they shall be others: meanwhile the old ones answer.
type Keeper struct {
	opt     Options
	log     *slog.Logger
	current atomic.Pointer[[]*Index] // nil: there are none yet, or none can be
	classes atomic.Pointer[[]Class]  // with which rows are read
	built   atomic.Uint64            // how far new ones are: the bits of a share of 1
	large   atomic.Pointer[error]    // why none can be: the sums take too much memory
	anew    atomic.Bool              // whether all are to be made from the records

	mu      sync.Mutex
	wanted  Settings
	changed chan struct{}

	// disk is held by who writes files of more than one month: a new index may have the
	// folder of one that there is.
	disk sync.Mutex
}

// Settings say of what sums are kept.
type Settings struct {
	// Dimensions are meta keys or classes; none keeps no sums.
	Dimensions []string
	// Classes are keys that follow from meta keys.
	Classes []Class
	// Zones are the names of the time zones whose days sums are kept of, as the
	// time zone database has them.
	Zones []string
}

// equal reports whether the same sums are kept.
func (s Settings) equal(o Settings) bool {
	return slices.Equal(s.Dimensions, o.Dimensions) && slices.Equal(s.Zones, o.Zones) && equalClasses(s.indexedClasses(), o.indexedClasses())
}

// indexedClasses are the classes that are dimensions.
func (s Settings) indexedClasses() (list []Class) {
	for _, c := range s.Classes {
		if slices.Contains(s.Dimensions, c.Name) {
			list = append(list, c)
		}
	}
	return list
}

// NewKeeper returns a keeper without an index: until Run has made one, and when
// there can be none, questions are answered from the rows. The registry may be nil.
func NewKeeper(o Options, log *slog.Logger, metrics prometheus.Registerer) *Keeper {
	k := &Keeper{opt: o, log: log, changed: make(chan struct{}, 1)}
	k.built.Store(math.Float64bits(1))
	if metrics != nil {
		metrics.MustRegister(k.newGauges()...)
	}
	return k
}

// Set says of what sums are kept.
func (k *Keeper) Set(s Settings) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted = Settings{Dimensions: slices.Clone(s.Dimensions), Zones: slices.Clone(s.Zones), Classes: slices.Clone(s.Classes)}
	if k.current.Load() == nil {
		classes := k.wanted.Classes
		k.classes.Store(&classes)
	}
	k.requestRenewal()
}

// followEvery is how far an index that no one asks may be behind. A question brings it
// to the present by itself; it must not find much to do.
const followEvery = 200 * time.Millisecond

// Run makes the indexes, follows the store until ctx ends, and stores the sums.
func (k *Keeper) Run(ctx context.Context) error {
	var saver sync.WaitGroup
	saver.Go(func() { k.saveLoop(ctx) })
	defer saver.Wait()
	var has Settings
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.changed:
			has = k.renewIndexes(ctx, has)
		case <-tick.C:
			k.followAll(ctx)
		}
	}
}

// renewIndexes makes the indexes that are wanted, and returns what there is then.
func (k *Keeper) renewIndexes(ctx context.Context, has Settings) Settings {
	k.mu.Lock()
	wanted := k.wanted
	k.mu.Unlock()
	anew := k.anew.Swap(false)
	if anew {
		has = Settings{}
	}
	if k.current.Load() == nil || has.equal(wanted) || len(wanted.Dimensions) == 0 {
		k.classes.Store(&wanted.Classes)
	}
	if k.current.Load() != nil && has.equal(wanted) {
		return wanted
	}
	if len(wanted.Dimensions) == 0 {
		k.current.Store(nil)
		k.large.Store(nil)
		return wanted
	}
	began := time.Now()
	list, err := k.buildIndexes(ctx, wanted, anew)
	if err != nil {
		k.dropIndexes(ctx, err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return Settings{}
	}
	k.current.Store(&list)
	k.large.Store(nil)
	k.classes.Store(&wanted.Classes)
	k.log.Info("the usage index is made", "dimensions", wanted.Dimensions, "zones", wanted.Zones, "changes", list[0].Seq(), "seconds", time.Since(began).Seconds())
	return wanted
}

func (k *Keeper) buildIndexes(ctx context.Context, wanted Settings, anew bool) ([]*Index, error) {
	var list []*Index
	defer k.built.Store(math.Float64bits(1))
	k.disk.Lock()
	defer k.disk.Unlock()
	for i, name := range wanted.Zones {
		zone, err := calendar.Zone(name)
		if err != nil {
			return nil, err
		}
		opt := k.opt
		opt.Zone, opt.Classes = zone, wanted.indexedClasses()
		opt.MaxBytes = cmp.Or(opt.MaxBytes, defaultMaxBytes) / len(wanted.Zones)
		opt.Progress = k.progressFunc(i, len(wanted.Zones))
		x, err := NewIndex(opt, wanted.Dimensions)
		if err == nil {
			loaded := !anew && k.loadSums(ctx, x)
			if err = x.Follow(ctx); !loaded {
				x.idle = x.countGone()
			}
		}
		if err != nil {
			return nil, err
		}
		x.Progress = nil // from here on it follows
		list = append(list, x)
	}
	return list, nil
}

// sayEvery is how often the log says how far new indexes are.
const sayEvery = 5 * time.Second

// progressFunc returns a function that notes how far index i of n is.
func (k *Keeper) progressFunc(i, n int) func(seq, of uint64) {
	said := time.Now()
	return func(seq, of uint64) {
		share := (float64(i) + float64(seq)/float64(max(of, 1))) / float64(n)
		k.built.Store(math.Float64bits(share))
		if time.Since(said) >= sayEvery {
			said = time.Now()
			k.log.Info("the usage index is being made; meanwhile questions are answered as before", "percent", int(100*share))
		}
	}
}

// currentIndexes are the indexes that there are.
func (k *Keeper) currentIndexes() []*Index {
	if list := k.current.Load(); list != nil {
		return *list
	}
	return nil
}

func (k *Keeper) followAll(ctx context.Context) {
	for _, x := range k.currentIndexes() {
		if err := x.Follow(ctx); err != nil {
			k.dropIndexes(ctx, err)
			return
		}
	}
}

// dropIndexes gives the indexes up: without any answers are slower, not wrong. What is not
// the size may pass, so it is made again.
func (k *Keeper) dropIndexes(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	k.current.Store(nil)
	k.log.Error("there is no usage index: usage is added up from the records, which takes longer", "error", err)
	if errors.Is(err, ErrTooLarge) {
		k.large.Store(&err)
		return
	}
	k.anew.Store(true) // what is stored may be the reason
	k.requestRenewal()
}

// TooLarge returns why there is no usage index and will be none with these dimensions:
// an error that wraps [ErrTooLarge]. It is nil otherwise. Every question is then
// answered from the records until the dimensions change or the node starts again.
func (k *Keeper) TooLarge() error {
	if err := k.large.Load(); err != nil {
		return *err
	}
	return nil
}

func (k *Keeper) requestRenewal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Answer answers a question of the present state of the store.
func (k *Keeper) Answer(ctx context.Context, q Query) (*Answer, error) {
	if err := q.checkQuery(); err != nil {
		return nil, err
	}
	if c := k.classes.Load(); c != nil {
		q.classes = *c
	}
	for _, x := range k.currentIndexes() {
		if can, err := x.canAnswer(ctx, &q); err != nil {
			return nil, err
		} else if !can {
			continue
		}
		a, err := x.Answer(ctx, q)
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrQuery) || isOutOfMemory(err) {
			return a, err
		}
		if slices.Contains(k.currentIndexes(), x) { // the files of one before are gone
			k.dropIndexes(ctx, err)
		}
		break
	}
	return Rows(ctx, k.opt.Views, q)
}

// newGauges are the metrics of the keeper.
func (k *Keeper) newGauges() []prometheus.Collector {
	gauge := func(name, help string, of func(*Index) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			n := 0
			for _, x := range k.currentIndexes() {
				x.mu.RLock()
				n += of(x)
				x.mu.RUnlock()
			}
			return float64(n)
		})
	}
	return []prometheus.Collector{
		gauge("bursar_usage_indexes", "Time zones of whose days sums of usage are kept; without any, records are added up for each question.", func(*Index) int { return 1 }),
		gauge("bursar_usage_series", "Tuples of dimensions and components of which sums by day are kept.", func(x *Index) int { return len(x.slots) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_usage_build_ratio", Help: "How far sums by day are that are being made, 1 when none are. Meanwhile the old ones answer, or the records."},
			func() float64 { return math.Float64frombits(k.built.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_usage_too_large", Help: "1 while the sums by day take too much memory to be kept, so that every question reads the records; otherwise 0."},
			func() float64 {
				if k.TooLarge() != nil {
					return 1
				}
				return 0
			}),
		gauge("bursar_usage_stored_bytes", "Bytes that the stored sums by day take on disk; 0 before they are first stored.", func(x *Index) int { return int(x.saved.size) }),
		gauge("bursar_usage_bytes", "About how much memory the sums by day take.", func(x *Index) int { return x.bytes }),
		gauge("bursar_usage_limit_bytes", "How much memory the sums by day may take; beyond it the oldest days are only on disk.", func(x *Index) int { return x.MaxBytes }),
		gauge("bursar_usage_away_bytes", "Bytes that those of the stored sums by day take that are only on disk, so that questions about them read it.", func(x *Index) int { return int(x.awayBytes()) }),
	}
}
