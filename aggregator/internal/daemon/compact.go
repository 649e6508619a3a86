package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Compaction says when what no query shows any more leaves the disk. The zero
// value of everything is a working default.
type Compaction struct {
	// Every is how often the leader looks for blocks that are mostly superseded;
	// zero is a minute.
	Every time.Duration
	// Keep is how long superseded rows stay: whoever follows the changes and asks
	// again within this time misses nothing. Zero is 36 h: a day, and room for who asks once a day.
	Keep time.Duration
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
	}{{&c.Every, time.Minute}, {&c.Keep, 36 * time.Hour}, {&c.Whole, time.Hour}, {&c.Files, 24 * time.Hour}} {
		if *d.of == 0 {
			*d.of = d.zero
		}
	}
	return c
}

const (
	// mostly is the share of superseded rows from which on a block is compacted
	// soon: a store then takes at most a quarter more than what it shows and keeps.
	mostly = 0.2
	// atOnce is how many blocks one command rewrites: Apply of all nodes waits.
	atOnce = 8
	// forgetAtOnce is how many values one command forgets.
	forgetAtOnce = 4096
	// again is how long a rewriting of the files waits that could not be done.
	again = time.Minute
)

// compactor proposes what makes the store drop what nothing shows.
type compactor struct {
	Compaction

	view          func() (*store.View, error)
	write         func(context.Context, store.Command) (any, error)
	checkWritable func() error // why nothing can be written now
	log           *slog.Logger

	free  []uint32  // pairs that no block had at the last whole look
	whole time.Time // when that was
}

// leadCompaction proposes what is due, again and again, until ctx ends.
func (c *compactor) leadCompaction(ctx context.Context) error {
	c.free, c.whole = nil, time.Now()
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if c.checkWritable() != nil {
			continue
		}
		if err := c.proposeDue(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("superseded rows were not dropped; the leader tries again", "error", err)
		}
	}
}

// proposeDue proposes once what is due.
func (c *compactor) proposeDue(ctx context.Context) (err error) {
	view, err := c.view()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	whole := time.Since(c.whole) >= c.Whole
	share := mostly
	if whole {
		share = 0
	}
	_, version := view.Cluster()
	switch {
	case version < store.VersionOf(&store.CompactBlockCommand{}): // not all nodes can apply it yet
		return nil
	case !whole && len(view.Candidates(share)) == 0:
		return nil
	}
	old, err := view.Droppable(ctx, record.FromStd(time.Now().Add(-c.Keep)))
	if err != nil {
		return err
	}
	if err := c.compactBlocks(ctx, view, old, share); err != nil || !whole {
		return err
	}
	if err := c.forgetValues(ctx, view, old); err != nil {
		return err
	}
	c.whole = time.Now()
	return nil
}

// compactBlocks proposes the blocks of which a share can be dropped and, where the share is 0,
// those that are small.
func (c *compactor) compactBlocks(ctx context.Context, view *store.View, old *store.Droppable, share float64) error {
	candidates, err := old.Candidates(share)
	if err != nil {
		return err
	}
	var blocks []uint64
	for _, k := range candidates {
		blocks = append(blocks, k.First)
	}
	if share == 0 {
		blocks = append(blocks, view.Small()...)
		slices.Sort(blocks)
		blocks = slices.Compact(blocks)
	}
	for part := range slices.Chunk(blocks, atOnce) {
		of, err := old.Of(part)
		if err == nil {
			_, err = c.write(ctx, &store.CompactBlockCommand{Blocks: part, Of: of})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetValues proposes what waits for a block and can be dropped, and what no block has for the
// second time: a view that was opened before the last record with a value went asks for
// the value no more.
func (c *compactor) forgetValues(ctx context.Context, view *store.View, old *store.Droppable) error {
	free, err := view.Unposted(forgetAtOnce)
	if err != nil {
		return err
	}
	var pairs []uint32
	for _, id := range free {
		if _, again := slices.BinarySearch(c.free, id); again {
			pairs = append(pairs, id)
		}
	}
	c.free = free
	waiting := old.Waiting()
	if len(pairs) == 0 && len(waiting.Rows) == 0 {
		return nil
	}
	_, err = c.write(ctx, &store.ForgetCommand{UpTo: view.Seq(), Pairs: pairs, Of: waiting})
	return err
}

// startCompaction has this node, while it leads, propose what the store can drop.
func (a *Aggregator) startCompaction() {
	c := &compactor{Compaction: a.set.Compaction.withDefaults(), view: a.replica.openView, write: a.replica.Write, checkWritable: a.replica.checkWritable, log: a.set.Log}
	a.replica.node.OnLeader(c.leadCompaction)
}

// rewriteFiles takes what was dropped out of the node's files, until ctx ends: out of the database,
// and once more a time later out of the log of Raft, so that members that were away for less
// than that need no image.
func (a *Aggregator) rewriteFiles(ctx context.Context) error {
	files := a.set.Compaction.withDefaults().Files
	done, logged := uint64(0), uint64(0) // logged: the last entry when the database was rewritten, until the log is cut
	for wait := files; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = files
		if logged > 0 {
			if err := a.replica.node.ForgetLog(ctx, logged); err != nil {
				wait = min(files, again)
				a.set.Log.Warn("the raft log was not rewritten: what was deleted is in its files until it is; the node tries again", "error", err)
				continue
			}
			logged = 0
		}
		drops := a.store.Drops()
		if drops == done || a.replica.guard.CheckPull() != nil || a.replica.guard.State().Free < 2*a.store.BytesOnDisk() {
			continue
		}
		err := a.store.Compact()
		switch {
		case errors.Is(err, store.ErrHeld): // by a request that goes on
			wait = min(files, again)
			continue
		case err != nil:
			wait = min(files, again)
			a.set.Log.Warn("the database was not rewritten: what was deleted is in its files until it is; the node tries again", "error", err)
			continue
		}
		done, logged = drops, a.replica.node.Stats().Applied
	}
}
