package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/bursar-accounting/bursar/proto/benchmark"
)

// trioSingle measures POST /record at the leader of three nodes on this machine, and how
// many entries and syncs of the log each node needs for it.
func (b *bench) trioSingle(ctx context.Context) (err error) {
	t, err := b.newTrio("trio-single", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	leader, err := t.start(ctx)
	if err != nil {
		return err
	}
	gen := benchmark.Generator(3, b.n, b.kinds()[0])
	for _, c := range singleClients() {
		b.progress.begin("POST /record at three nodes, %d clients", c.clients)
		before, err := t.logged(ctx)
		if err != nil {
			return err
		}
		took, seconds, err := writeSingles(ctx, c.clients, gen, func(ctx context.Context) (writer, error) { return newPoster(ctx, leader.url()) })
		if err != nil {
			return err
		}
		after, err := t.logged(ctx)
		if err != nil {
			return err
		}
		var syncs [3]float64
		for i := range syncs {
			syncs[i] = (after[i] - before[i]) / float64(len(took))
		}
		b.add(overRuns(fmt.Sprintf("trio_single_%d", c.clients), fmt.Sprintf("POST /record at three nodes, %d clients", c.clients),
			"rec/s", goal{}, []float64{float64(len(took)) / seconds}).
			noted("p50 %.2f, p99 %.2f, max %.1f ms; syncs a record %.2f", median(took), percentile(took, 99), percentile(took, 100), syncs))
	}
	return nil
}

// logged is how often each node has synced its log.
func (t *trioSite) logged(ctx context.Context) (syncs [3]float64, err error) {
	for i, n := range t.nodes {
		if syncs[i], err = n.metric(ctx, "bursar_raft_log_syncs_total"); err != nil {
			return syncs, err
		}
	}
	return syncs, nil
}
