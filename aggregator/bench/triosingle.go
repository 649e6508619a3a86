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
	defer func() { err = errors.Join(err, t.stopNodes()) }()
	leader, err := t.startNodes(ctx)
	if err != nil {
		return err
	}
	gen := benchmark.Generator(3, b.n, b.measuredKinds()[0])
	for _, c := range singleClients() {
		b.progress.beginPiece("POST /record at three nodes, %d clients", c.clients)
		before, err := t.countSyncs(ctx)
		if err != nil {
			return err
		}
		took, seconds, err := writeSingles(ctx, c.clients, gen, func(ctx context.Context) (writer, error) { return newPoster(ctx, leader.baseURL()) })
		if err != nil {
			return err
		}
		after, err := t.countSyncs(ctx)
		if err != nil {
			return err
		}
		var syncs [3]float64
		for i := range syncs {
			syncs[i] = (after[i] - before[i]) / float64(len(took))
		}
		b.addLine(overRuns(fmt.Sprintf("trio_single_%d", c.clients), fmt.Sprintf("POST /record at three nodes, %d clients", c.clients),
			"rec/s", goal{}, []float64{float64(len(took)) / seconds}).
			addNote("p50 %.2f, p99 %.2f, max %.1f ms; syncs a record %.2f", medianOf(took), percentileOf(took, 99), percentileOf(took, 100), syncs))
	}
	return nil
}

// countSyncs is how often each node has synced its log.
func (t *trioSite) countSyncs(ctx context.Context) (syncs [3]float64, err error) {
	for i, n := range t.nodes {
		if syncs[i], err = n.readMetric(ctx, "bursar_raft_log_syncs_total"); err != nil {
			return syncs, err
		}
	}
	return syncs, nil
}
