package daemon

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

func TestWritesOfEveryKindWaitWhileTheDiskIsNearlyFull(t *testing.T) {
	a, err := Open(Settings{Name: "agg1", DataDir: t.TempDir(), MinFree: 1 << 62, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for !a.replica.node.IsLeader() {
		time.Sleep(time.Millisecond)
	}
	if _, err := a.replica.Write(t.Context(), &store.DeleteCommand{}); !errors.Is(err, api.ErrNotNow) || !errors.Is(err, health.ErrFull) {
		t.Errorf("a write: %v", err)
	}
	if _, err := a.replica.Submit(t.Context(), &store.IngestCommand{}); !errors.Is(err, health.ErrFull) {
		t.Errorf("an ingest: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestASmallDiskIsUsedUpToATwentieth(t *testing.T) {
	dir := t.TempDir()
	registry := prometheus.NewRegistry()
	if _, err := newDiskGuard(dir, 0, registry, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	now, err := health.MeasureDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if got := f.GetMetric()[0].GetGauge().GetValue(); f.GetName() == "bursar_disk_min_free_bytes" && got != float64(min(4<<30, now.Size/100*5)) {
			t.Errorf("%.0f bytes of %d are kept free", got, now.Size)
		}
	}
}
