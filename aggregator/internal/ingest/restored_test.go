package ingest_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// awaitStanding polls until ok.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

// goBack takes the store back to an image of it.
func (l *log) goBack(t *testing.T, image string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.store.Restore(image); err != nil {
		t.Fatal(err)
	}
}

func TestAnAgentWithNothingNewHandsOverAgainWhatARestoreTookBack(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	a.idle = 5 * time.Millisecond
	a.add(t, rec(1))
	follow(t, a, l)
	image := filepath.Join(t.TempDir(), "image")
	if err := l.store.Checkpoint(image); err != nil {
		t.Fatal(err)
	}
	a.add(t, rec(2), rec(3))
	_, stop := run(t, a, l)
	await(t, "the newer records", func() bool { return l.count(t) == 3 })
	l.goBack(t, image)
	await(t, "the newer records once more", func() bool { return l.count(t) == 3 })
	stop()
}

func TestAClusterThatWentBackTellsTheAgentWhereItIsSoThatNothingIsTrimmed(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	a.add(t, rec(1))
	follow(t, a, l)
	image := filepath.Join(t.TempDir(), "image")
	if err := l.store.Checkpoint(image); err != nil {
		t.Fatal(err)
	}
	a.add(t, rec(2))
	follow(t, a, l)
	if len(a.resumed) != 1 { // the first time ever
		t.Fatalf("told without a restore: %v", a.resumed)
	}
	l.goBack(t, image)
	a.chance, l.chance = nil, nil
	loop, stop := runWith(t, a, l, func(loop *ingest.Loop) { loop.Restored = true })
	await(t, "the newer record", func() bool { return l.count(t) == 2 })
	await(t, "its acknowledgement", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.acked == a.last })
	stop()
	if len(a.resumed) != 2 || a.resumed[1].GetKnownAfter() != 1 {
		t.Errorf("told %v", a.resumed)
	}
	if loop.Status().Err != nil {
		t.Error(loop.Status().Err)
	}
}

func TestAGapIsAnAlarm(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	a.add(t, rec(1), &wire.Frame{Kind: wire.KindGap, Gap: wire.Gap{Reason: "frames 1 to 9 are gone"}})
	registry := prometheus.NewRegistry()
	_, stop := runWith(t, a, l, func(loop *ingest.Loop) { loop.Metrics = ingest.NewMetrics(registry) })
	await(t, "the alarm", func() bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "bursar_pull_gaps_total" && f.GetMetric()[0].GetCounter().GetValue() == 1 {
				return true
			}
		}
		return false
	})
	stop()
}
