package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// longest is how many days a run may touch to be in the days of its series. Those
// that touch more are kept one by one: a run from the year 0 to 9999 must not cost
// millions of days.
const longest = 1024

// errBehind means that the store no longer has what the index would have to
// subtract: it must begin anew.
var errBehind = errors.New("a superseded row is gone")

// Index holds what was used, by day, of every tuple of values of its dimensions.
// It follows the change feed of a store. It is safe for concurrent use.
type Index struct {
	dims []string

	mu sync.RWMutex
	sums
}

// NewIndex returns an empty index in memory, which has sums for every tuple of first
// values of the dimensions, which are meta keys.
func NewIndex(dimensions []string) *Index {
	return &Index{dims: dimensions, sums: newSums(dimensions)}
}

// sums is the state of an index.
type sums struct {
	seq     uint64 // the last change that is in it
	cluster string // whose changes: a restored state is another's

	*keys
	*shapes
	series   []*series
	seriesOf map[uint64]*series // by tuple and shape
	open     map[string]*run    // by record id
	long     map[uint64]*run    // by seq: closed, but too long for days
}

func newSums(dims []string) sums {
	return sums{
		keys: newKeys(dims), shapes: newShapes(),
		seriesOf: map[uint64]*series{}, open: map[string]*run{}, long: map[uint64]*run{},
	}
}

// Seq is the number of the last change that is in the index.
func (x *Index) Seq() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.seq
}

// Dimensions are the keys by which the index keeps sums.
func (x *Index) Dimensions() []string { return x.dims }

// Follow brings the index to the state of the view, whose store must be the one that
// it followed before. An index that is further already stays as it is. After an
// error it is empty and begins anew with the next call.
func (x *Index) Follow(ctx context.Context, v *store.View) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.follow(ctx, v)
}

func (x *Index) follow(ctx context.Context, v *store.View) error {
	cluster, _ := v.Cluster()
	if x.cluster != "" && cluster != x.cluster {
		x.sums = newSums(x.dims)
	}
	if v.Seq() <= x.seq {
		return nil
	}
	err := x.advance(ctx, v)
	if errors.Is(err, errBehind) {
		x.sums = newSums(x.dims)
		err = x.advance(ctx, v)
	}
	if err != nil {
		x.sums = newSums(x.dims) // half of the changes may be in it
		return fmt.Errorf("usage index: %w", err)
	}
	x.seq, x.cluster = v.Seq(), cluster
	return nil
}

func (x *Index) advance(ctx context.Context, v *store.View) error {
	f := &follower{sums: &x.sums, view: v, inline: inline(v, x.dims)}
	return v.Changes(ctx, x.seq, f.block, f.loose)
}

// inline reports whether rows with the same meta set can differ in one of the keys.
func inline(v *store.View, names []string) bool {
	for _, name := range names {
		if v.Inline(name) {
			return true
		}
	}
	return false
}

func (s *sums) seriesFor(tuple uint32, sh *shape) *series {
	key := uint64(tuple)<<32 | uint64(sh.id)
	se, ok := s.seriesOf[key]
	if !ok {
		se = &series{tuple: tuple, shape: sh}
		s.seriesOf[key] = se
		s.series = append(s.series, se)
	}
	return se
}

// add puts a shown run into the sums.
func (s *sums) add(r *run) {
	switch {
	case r.stop == record.None:
		s.open[r.id] = r
	case r.negative():
	case r.tooLong():
		s.long[r.seq] = r
	default:
		s.seriesFor(r.tuple, r.shape).book(r, 1)
	}
}

// subtract takes a closed run out of the sums.
func (s *sums) subtract(r *run) {
	switch {
	case r.negative():
	case r.tooLong():
		delete(s.long, r.seq)
	default:
		s.seriesFor(r.tuple, r.shape).book(r, -1)
	}
}

func (r *run) tooLong() bool {
	first, last := days(r.start, r.stop)
	return last-first >= longest
}
