package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Compaction says when what no query shows any more leaves the disk. The zero
// value of everything is a working default.
type Compaction struct {
	// Every is how often the leader looks for blocks that are mostly superseded;
	// zero is a minute. What changed since the last look is left in peace: those
	// who follow the feed may still need it.
	Every time.Duration
	// Whole is how often all superseded rows are dropped, small blocks are merged
	// and values are forgotten that no record has; zero is an hour.
	Whole time.Duration
	// Files is how often this node rewrites its database when something was
	// dropped, so that it is in no file; zero is a day.
	Files time.Duration
}

func (c Compaction) withDefaults() Compaction {
	for _, d := range []struct {
		of   *time.Duration
		zero time.Duration
	}{{&c.Every, time.Minute}, {&c.Whole, time.Hour}, {&c.Files, 24 * time.Hour}} {
		if *d.of == 0 {
			*d.of = d.zero
		}
	}
	return c
}

const (
	// mostly is the share of superseded rows from which on a block is compacted
	// soon: a store then takes at most a quarter more than what it shows.
	mostly = 0.2
	// atOnce is how many blocks one command rewrites: Apply of all nodes waits.
	atOnce = 8
	// forgetAtOnce is how many values one command forgets.
	forgetAtOnce = 4096
)

// compactor proposes what makes the store drop what nothing shows.
type compactor struct {
	Compaction

	view   func() (*store.View, error)
	write  func(context.Context, store.Command) (any, error)
	refuse func() error // why nothing can be written now
	log    *slog.Logger

	dead  map[uint64]int // superseded rows by block, at the last look
	seq   uint64         // the last change at the last look
	free  []uint32       // pairs that no block had at the last whole look
	whole time.Time      // when that was
}

// lead looks until ctx ends.
func (c *compactor) lead(ctx context.Context) error {
	c.dead, c.seq, c.free, c.whole = nil, 0, nil, time.Now()
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if c.refuse() != nil {
			continue
		}
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("superseded rows were not dropped; the leader tries again", "error", err)
		}
	}
}

// look proposes what is due.
func (c *compactor) look(ctx context.Context) error {
	view, err := c.view()
	if err != nil {
		return err
	}
	whole := time.Since(c.whole) >= c.Whole
	blocks, forget, err := c.due(view, whole)
	if err = errors.Join(err, view.Close()); err != nil {
		return err
	}
	for part := range slices.Chunk(blocks, atOnce) {
		if _, err := c.write(ctx, &store.CompactBlockCommand{Blocks: part}); err != nil {
			return err
		}
	}
	if forget != nil {
		if _, err := c.write(ctx, forget); err != nil {
			return err
		}
	}
	if whole {
		c.whole = time.Now()
	}
	return nil
}

// due returns the blocks to compact and, of a whole look, what to forget.
func (c *compactor) due(view *store.View, whole bool) (blocks []uint64, forget *store.ForgetCommand, err error) {
	if _, version := view.Cluster(); version < store.VersionOf(&store.ForgetCommand{}) {
		return nil, nil, nil
	}
	before, changing := c.dead, map[uint64]bool{}
	c.dead = map[uint64]int{}
	for _, k := range view.Candidates(0) {
		c.dead[k.First] = k.Dead
		switch {
		case before[k.First] != k.Dead:
			changing[k.First] = true
		case whole, float64(k.Dead) >= mostly*float64(k.Rows):
			blocks = append(blocks, k.First)
		}
	}
	upTo := c.seq
	c.seq = view.Seq()
	if !whole {
		return blocks, nil, nil
	}
	for _, first := range view.Small() {
		if !changing[first] {
			blocks = append(blocks, first)
		}
	}
	slices.Sort(blocks)
	forget, err = c.forget(view, upTo)
	return slices.Compact(blocks), forget, err
}

// forget returns what no block has for the second time: a view that was opened
// before the last record with a value went asks for the value no more.
func (c *compactor) forget(view *store.View, upTo uint64) (*store.ForgetCommand, error) {
	free, err := view.Unposted(forgetAtOnce)
	if err != nil {
		return nil, err
	}
	var pairs []uint32
	for _, id := range free {
		if _, again := slices.BinarySearch(c.free, id); again {
			pairs = append(pairs, id)
		}
	}
	c.free = free
	if len(pairs) == 0 && view.SupersededWaiting() == 0 {
		return nil, nil
	}
	return &store.ForgetCommand{UpTo: upTo, Pairs: pairs}, nil
}

// compact has this node, while it leads, propose what the store can drop.
func (a *Aggregator) compact() {
	c := &compactor{Compaction: a.set.Compaction.withDefaults(), view: a.replica.view, write: a.replica.Write, refuse: a.replica.refuse, log: a.set.Log}
	a.replica.node.OnLeader(c.lead)
}

// rewrite takes what was dropped out of the node's files, until ctx ends.
func (a *Aggregator) rewrite(ctx context.Context) error {
	tick := time.NewTicker(a.set.Compaction.withDefaults().Files)
	defer tick.Stop()
	done := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		drops := a.store.Drops()
		if drops == done || a.replica.guard.CheckPull() != nil || a.replica.guard.State().Free < 2*a.store.BytesOnDisk() {
			continue
		}
		err := a.store.Compact()
		switch {
		case errors.Is(err, store.ErrHeld): // by a request that goes on: once more at the next tick
			continue
		case err != nil:
			a.set.Log.Warn("the database was not rewritten: what was deleted is in its files until it is; the node tries again", "error", err)
			continue
		}
		done = drops
	}
}
