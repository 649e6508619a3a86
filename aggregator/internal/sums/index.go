package sums

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// longest is how many days a run may touch to be in the days of its series. Those
// that touch more are kept one by one: a run from the year 0 to 9999 must not cost
// millions of days.
const longest = 1024

// errBehind means that the store no longer has what the index would have to
// subtract: it must start over.
var errBehind = errors.New("a superseded row is gone")

// Index holds what was used, by day, of every tuple of values of its dimensions.
// It follows the change feed of a store. It is safe for concurrent use.
type Index struct {
	Options
	dims []string
	grid *grid // that of the sums, which are replaced as a whole; this one needs no lock

	mu sync.RWMutex
	sums
	batch batch // of who follows
	begun int   // how often the sums began again, for what had to be subtracted was gone
	saved savedState

	saving sync.Mutex // one stores at a time
	// idle is how many tuples had no run when the index was made, since all that they have
	// used nothing; 0 when it was loaded.
	idle int
}

// Views gives pictures of a store, each not older than the one before.
type Views interface {
	View() (*store.View, error)
}

// Options say what an index is made of.
type Options struct {
	Views Views
	// Life names the history that a view is the present of: it is another one after
	// a restore, whose changes have numbers that were there before.
	Life func(*store.View) (string, error)
	// Zone is whose days sums are kept of; nil is UTC.
	Zone *time.Location
	// Classes are keys that follow from meta keys; dimensions may name them.
	Classes []Class
	// Progress is told up to which change of how many the index has come, now and then
	// while it follows; nil tells no one.
	Progress func(seq, of uint64)
	// Dir is a folder on disk in which the sums are stored; "" stores none.
	Dir string
	// MaySave returns an error while nothing may be written to Dir; nil is always.
	MaySave func() error
	// Whole is how often a [Keeper] looks for values that no record has any more, and Files
	// how often it makes the sums anew for them at most; 0 is an hour, and a day.
	Whole, Files time.Duration
	// MaxBytes bounds the memory of the sums by day; 0 is 512 MiB. The indexes of a
	// [Keeper] share it. Beyond it the oldest days are only in Dir, and questions about them
	// read the disk; without Dir there is no index then.
	MaxBytes int
}

const defaultMaxBytes = 512 << 20

// ErrTooLarge is wrapped when the sums of an index would take more memory than they
// may, even without the days that can be on disk alone: it has too many dimensions, or one
// of them too many values. It is also wrapped when the disk does not take these days.
var ErrTooLarge = errors.New("the usage index takes too much memory")

// NewIndex returns an empty index of a store, which will have sums for every tuple of
// first values of the dimensions. These are meta keys or classes. An error says that the zone has
// no days.
func NewIndex(o Options, dimensions []string) (*Index, error) {
	g, err := newGrid(o.Zone)
	if err != nil {
		return nil, err
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	return &Index{Options: o, dims: dimensions, grid: g, sums: newSums(g, dimensions, o.Classes)}, nil
}

// sums is the state of an index.
type sums struct {
	seq   uint64 // the last change that is in it
	life  string // whose changes: a restored state is another's
	bytes int    // about how much memory the days take

	grid *grid
	*keys
	*layouts
	seriesKeys *seriesKeys
	series     []*series              // by the number of the tuple; nil while it has no days
	slots      map[uint64]*partialSum // by tuple and layout
	lastAdded  *partialSum            // the last to which a run was added
	open       map[string]*run        // by record id
	long       map[uint64]*run        // by seq: closed, but too long for days
	// patience is no less than the longest wait of a run.
	patience record.Time

	// lasting has the runs in days that are not short, by number of a chunk of days,
	// and short from when on the short ones of some changes are, waits included.
	lasting map[int32]*lastingRuns
	short   []record.Time

	// changed says which chunks of days are not in a file as they are, and months which
	// files there are. Who holds the lock for reading and saving may change both.
	changed []bool
	months  map[int32]month

	// away are the files of the chunks whose days are not in memory. What memory has of
	// these adds to the file; what they come to as a whole is in memory.
	away map[int32]month
	// held says of which chunks memory may have days.
	held []bool
	// removed are the changes of the runs that last which a file in away has, and the
	// index has no more.
	removed map[int32]map[uint64]bool
}

func newSums(g *grid, dims []string, classes []Class) sums {
	return sums{
		grid: g, keys: newKeys(dims, classes), layouts: newLayouts(), seriesKeys: newSeriesKeys(),
		slots: map[uint64]*partialSum{}, open: map[string]*run{}, long: map[uint64]*run{},
		changed: make([]bool, g.chunks()), months: map[int32]month{},
		held: make([]bool, g.chunks()), away: map[int32]month{},
		lasting: map[int32]*lastingRuns{}, removed: map[int32]map[uint64]bool{},
	}
}

// Seq is the number of the last change that is in the index.
func (x *Index) Seq() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.seq
}

// Follow brings the index to the present state of the store. After an error it is
// empty and starts over with the next call.
func (x *Index) Follow(ctx context.Context) error {
	v, err := x.followView(ctx)
	if err != nil {
		return err
	}
	return v.Close()
}

// followView returns the view that the index has followed; the caller closes it.
func (x *Index) followView(ctx context.Context) (*store.View, error) {
	if v, err := x.presentView(); v != nil || err != nil {
		return v, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	v, err := x.Views.View()
	if err != nil {
		return nil, err
	}
	if err := x.advanceTo(ctx, v); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// presentView returns a view at which the index is already, nil when it is behind: while
// nothing changes, questions do not wait for one another.
func (x *Index) presentView() (*store.View, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	v, err := x.Views.View()
	if err != nil {
		return nil, err
	}
	life, err := x.Life(v)
	if err == nil && v.Seq() == x.seq && life == x.sums.life {
		return v, nil
	}
	return nil, errors.Join(err, v.Close())
}

// advanceTo brings the index to the state of a view.
func (x *Index) advanceTo(ctx context.Context, v *store.View) error {
	life, err := x.Life(v)
	if err != nil {
		return err
	}
	if life != x.sums.life || v.Seq() < x.seq || x.seq < v.Floor() {
		x.resetSums()
	}
	if v.Seq() == x.seq {
		return nil
	}
	err = x.applyChanges(ctx, v)
	if errors.Is(err, errBehind) {
		x.resetSums()
		err = x.applyChanges(ctx, v)
	}
	if err != nil {
		x.resetSums() // half of the changes may be in it
		return fmt.Errorf("usage index: %w", err)
	}
	x.seq, x.sums.life = v.Seq(), life
	return nil
}

// resetSums empties the sums.
func (x *Index) resetSums() {
	x.sums = newSums(x.grid, x.dims, x.Classes)
	x.begun++
}

func (x *Index) applyChanges(ctx context.Context, v *store.View) error {
	f := &follower{sums: &x.sums, view: v, makeRoom: x.makeRoom, progress: x.Progress, batch: &x.batch}
	return firstError(v.Changes(ctx, x.seq, f.followBlock, f.followRow), x.makeRoom())
}

// partialSumFor returns where runs of a tuple with a layout go.
func (s *sums) partialSumFor(tuple uint32, sh *layout) *partialSum {
	if sl := s.lastAdded; sl != nil && sl.tuple == tuple && sl.layout == sh {
		return sl
	}
	key := uint64(tuple)<<32 | uint64(sh.id)
	sl, ok := s.slots[key]
	if !ok {
		sl = s.seriesFor(tuple).addPartialSum(sh, s.seriesKeys.ofLayout(sh))
		s.slots[key] = sl
		s.bytes += partialSumBytes
	}
	s.lastAdded = sl
	return sl
}

func (s *sums) seriesFor(tuple uint32) *series {
	if int(tuple) >= len(s.series) {
		s.series = append(s.series, make([]*series, int(tuple)+1-len(s.series))...)
	}
	se := s.series[tuple]
	if se == nil {
		se = &series{tuple: tuple}
		s.series[tuple] = se
		s.bytes += seriesBytes
	}
	return se
}

// addToSeries adds a closed run to its series, or with sign -1 takes it out.
func (s *sums) addToSeries(r *run, sign int64) {
	sl := s.partialSumFor(r.tuple, r.layout)
	before := sl.bytes
	first, last := sl.addToDays(s.grid, r, sign)
	s.bytes += sl.bytes - before
	for n := int32(first >> 5); n <= int32(last>>5); n++ {
		s.changed[n], s.held[n] = true, true
	}
	s.recordSpan(r, sign, first, last)
}

// addShown puts a shown run into the sums.
func (s *sums) addShown(r *run) {
	s.noteWait(r)
	switch {
	case r.stop == record.None:
		s.open[r.id] = r
	case r.isNegative():
	case !s.grid.holdsRun(r):
		s.long[r.seq] = r
	default:
		s.addToSeries(r, 1)
	}
}

// noteWait notes how long a run waited.
func (s *sums) noteWait(r *run) {
	if wait, known := r.waitTime(); known {
		s.patience = max(s.patience, record.Time(wait))
	}
}

// subtractRun takes a closed run out of the sums.
func (s *sums) subtractRun(r *run) {
	switch {
	case r.isNegative():
	case !s.grid.holdsRun(r):
		delete(s.long, r.seq)
	default:
		s.addToSeries(r, -1)
	}
}
