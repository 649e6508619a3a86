package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// diskSpace measures what a record takes in a store that is compacted, with all
// its indexes. The node is stopped for it.
func (b *bench) diskSpace(ctx context.Context) error {
	for _, ids := range b.measuredKinds() {
		s, err := b.pulledSet(ctx, ids)
		if err != nil {
			return err
		}
		if err := s.node.stopNode(); err != nil {
			return err
		}
		b.progress.beginPiece("compacting %d records, %s ids", b.n, ids)
		before, after, err := compactStore(filepath.Join(s.node.dir, "store"))
		if err != nil {
			return err
		}
		most := 60.0
		if ids == "uuid" {
			most = 130
		}
		value := float64(after) / float64(b.n)
		b.addLine(overRuns("disk_"+ids, "disk, compacted, all indexes, "+ids+" ids", "B/rec", goalUnder(most), []float64{value}).
			addNote("%.0f B before", float64(before)/float64(b.n)))
	}
	return nil
}

// compactStore rewrites the store in dir and returns its bytes before and after. Both
// are counted right after opening: then no file is there that waits for its
// removal.
func compactStore(dir string) (before, after uint64, err error) {
	if before, err = withOpenStore(dir, (*store.Store).Compact); err != nil {
		return 0, 0, err
	}
	after, err = withOpenStore(dir, func(*store.Store) error { return nil })
	return before, after, err
}

// withOpenStore opens the store, counts its bytes, does something with it and closes it.
func withOpenStore(dir string, do func(*store.Store) error) (size uint64, err error) {
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		return 0, err
	}
	size = s.BytesOnDisk()
	return size, errors.Join(do(s), s.Close())
}

// measureRestart measures how long a node that holds all records takes from its start
// until it says that it is healthy.
func (b *bench) measureRestart(ctx context.Context) error {
	s, err := b.firstSet(ctx)
	if err != nil {
		return err
	}
	var times []float64
	for range b.runs {
		if err := s.node.stopNode(); err != nil {
			return err
		}
		b.progress.beginPiece("restart with %d records", b.n)
		begun := time.Now()
		if err := s.node.startUntilHealthy(ctx); err != nil {
			return err
		}
		times = append(times, time.Since(begun).Seconds())
	}
	b.addLine(overRuns("restart", fmt.Sprintf("restart of a node with %d records, until it is healthy", b.n), "s", goalUnder(5), times))
	return nil
}

// startUntilHealthy starts the node and asks until it says that it is healthy.
func (n *nodeSite) startUntilHealthy(ctx context.Context) error {
	if err := n.ensureRunning(ctx); err != nil {
		return err
	}
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(3 * time.Millisecond) {
		resp, err := http.Get(n.baseURL() + "/health_check")
		if err != nil {
			continue
		}
		if resp.Body.Close() == nil && resp.StatusCode == http.StatusOK {
			return nil
		}
	}
	return errPatience
}
