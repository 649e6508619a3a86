package archive_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
)

// round is a schedule over a store, with a clock that goes on by a second whenever
// it is looked at.
type round struct {
	*archive.Schedule

	t     *testing.T
	bench *bench
	dir   string
	ticks atomic.Int64
	fails atomic.Pointer[error]
}

var dawn = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func newRound(t *testing.T) *round {
	t.Helper()
	r := &round{t: t, bench: newBench(t), dir: t.TempDir()}
	r.bench.Now = func() time.Time { return dawn.Add(time.Duration(r.ticks.Add(1)) * time.Second) }
	r.bench.post(t, "r1")
	r.Schedule = r.schedule()
	return r
}

func (r *round) schedule() *archive.Schedule {
	return &archive.Schedule{
		Archiver: r.bench.Archiver, Log: slog.New(slog.DiscardHandler), Cluster: func() string { return "CLUSTER" },
		Current: func(context.Context) error {
			if err := r.fails.Load(); err != nil {
				return *err
			}
			return nil
		},
	}
}

// during runs the schedule while f waits.
func (r *round) during(f func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	var end sync.WaitGroup
	end.Go(func() {
		if err := r.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	f()
	cancel()
	end.Wait()
	r.bench.empty(r.t)
}

func (r *round) until(what string, ok func(archive.Status) bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(r.Status()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain: %s: %+v", what, r.Status())
		}
	}
}

// names are the files in the directory of the backups.
func (r *round) names() (names []string) {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// sound verifies the archive with a name as whoever restores it does.
func (r *round) sound(name string) {
	r.t.Helper()
	f, err := os.Open(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	taken, err := r.bench.Take(r.t.Context(), f, nil)
	if err != nil {
		r.t.Fatal(name, err)
	}
	if taken.Meta.Records != 1 {
		r.t.Errorf("%+v", taken.Meta)
	}
	if err := taken.Close(); err != nil {
		r.t.Error(err)
	}
}

// plan is one whose backups are always due.
func (r *round) plan(keep int) archive.Plan {
	return archive.Plan{Dir: r.dir, Every: time.Millisecond, Keep: keep}
}

func TestBackupsAreMadeAndOnlyOldOnesOfThisNodeAndClusterGo(t *testing.T) {
	r := newRound(t)
	others := []string{
		"bursar-agg1-OTHER-20200101T000000Z.snapshot", "bursar-agg1-x-CLUSTER-20200101T000000Z.snapshot", "bursar-agg2-CLUSTER-20200101T000000Z.snapshot",
		"bursar-agg2-CLUSTER-20200101T000000Z.snapshot.tmp", "bursar.snapshot",
	}
	for _, name := range append(others, "bursar-agg1-CLUSTER-20200101T000000Z.snapshot", "bursar-agg1-CLUSTER-20200101T000000Z.snapshot.tmp") {
		write(t, filepath.Join(r.dir, name))
	}
	r.Set(r.plan(2))
	made := map[string]bool{}
	r.during(func() {
		r.until("four backups", func(s archive.Status) bool { made[s.Path] = true; return len(made) > 4 })
	})
	var own []string
	for _, name := range r.names() {
		if !slices.Contains(others, name) {
			own = append(own, name)
		}
	}
	if len(own) != 2 || len(r.names()) != len(others)+2 {
		t.Fatalf("left are %q", r.names())
	}
	for _, name := range own {
		if !strings.HasPrefix(name, "bursar-agg1-CLUSTER-2026030") {
			t.Error(name)
		}
		r.sound(name)
	}
	s := r.Status()
	info, err := os.Stat(s.Path)
	if err != nil || s.Bytes != info.Size() || s.Err != nil || s.Failures != 0 || filepath.Base(s.Path) != own[1] || s.Last.Before(dawn) || s.Took <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("something"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestABackupThatFailsSaysWhatToDoAndIsTriedAgain(t *testing.T) {
	r := newRound(t)
	if err := os.Remove(r.dir); err != nil { // a disk that is not mounted: it is not made
		t.Fatal(err)
	}
	r.Set(r.plan(3))
	r.during(func() {
		r.until("two failures", func(s archive.Status) bool { return s.Failures > 1 })
		s := r.Status()
		if !errors.Is(s.Err, os.ErrNotExist) || s.Remedy != "install -d -o bursar -g bursar -m 0750 "+r.dir || s.Failing.IsZero() || !s.Last.IsZero() {
			t.Errorf("%+v", s)
		}
		if err := os.Mkdir(r.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r.until("a backup", func(s archive.Status) bool { return s.Err == nil && !s.Last.IsZero() })
	})
	if s := r.Status(); !s.Failing.IsZero() || s.Remedy != "" || s.Failures < 2 {
		t.Errorf("%+v", s)
	}
}

func TestABackupForWhichThereIsNoRoomIsNotBegun(t *testing.T) {
	r := newRound(t)
	r.Room = func(dir string) (int64, error) { return int64(len(dir)), nil }
	r.Set(r.plan(3))
	r.during(func() { r.until("a failure", func(s archive.Status) bool { return s.Failures > 0 }) })
	if s := r.Status(); !errors.Is(s.Err, archive.ErrNoSpace) || s.Remedy != "df -h "+r.dir || len(r.names()) != 0 {
		t.Errorf("%+v, %q", s, r.names())
	}
}

// tainted is a store whose images are not what the store is.
type tainted struct {
	archive.Checkpointer

	bad atomic.Bool
}

func (c *tainted) Checkpoint(dir string) error {
	if err := c.Checkpointer.Checkpoint(dir); err != nil || !c.bad.Load() {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, log := range logs {
		text, readErr := os.ReadFile(log)
		if len(text) > 32 {
			text[32] ^= 1 // in the first batch: what follows is not replayed, and its end may hold marks of checkpoints only
		}
		err = errors.Join(err, readErr, os.Remove(log), os.WriteFile(log, text, 0o600)) // not the store's own file
	}
	return err
}

func TestNoGoodBackupIsRemovedForOneThatIsNotSound(t *testing.T) {
	r := newRound(t)
	store := &tainted{Checkpointer: r.bench.store}
	r.Archiver.Store = store
	r.Set(r.plan(1))
	r.during(func() { r.until("a good backup", func(s archive.Status) bool { return !s.Last.IsZero() }) })
	good := r.names()
	store.bad.Store(true)
	r.during(func() { r.until("failures", func(s archive.Status) bool { return s.Failures > 2 }) })
	if s := r.Status(); !errors.Is(s.Err, archive.ErrState) || !strings.HasPrefix(s.Remedy, "bursar operator check") {
		t.Errorf("%+v", s)
	}
	if got := r.names(); len(good) != 1 || !slices.Equal(got, good) {
		t.Errorf("left are %q, and %q was good", got, good)
	}
	r.sound(good[0])
}

func TestAfterARestartTheNextBackupIsDueWhenItWasBefore(t *testing.T) {
	r := newRound(t)
	r.Set(r.plan(3))
	r.during(func() { r.until("a backup", func(s archive.Status) bool { return !s.Last.IsZero() }) })
	before, names := r.Status(), r.names()
	r.Schedule = r.schedule()
	r.Set(archive.Plan{Dir: r.dir, Every: 24 * 365 * time.Hour, Keep: 1})
	r.during(func() { r.until("what is there", func(s archive.Status) bool { return !s.Last.IsZero() }) })
	if s := r.Status(); !s.Last.Equal(before.Last) || s.Path != before.Path || s.Bytes != before.Bytes || !slices.Equal(names, r.names()) {
		t.Errorf("%+v, was %+v; %q", s, before, r.names())
	}
}

func TestABackupFromTheFutureHoldsUpNoOtherAndIsNotCountedForIt(t *testing.T) {
	r := newRound(t)
	r.Set(r.plan(1))
	r.during(func() { r.until("a backup", func(s archive.Status) bool { return !s.Last.IsZero() }) })
	far := "bursar-agg1-CLUSTER-20990101T000000Z.snapshot"
	if err := os.Rename(r.Status().Path, filepath.Join(r.dir, far)); err != nil {
		t.Fatal(err)
	}
	r.Schedule = r.schedule()
	r.Set(archive.Plan{Dir: r.dir, Every: time.Hour, Keep: 1})
	r.bench.Now = func() time.Time { return dawn.Add(-time.Hour) } // the clock was fixed
	r.during(func() {
		r.until("another one", func(s archive.Status) bool { return s.Last.Equal(dawn.Add(-time.Hour)) })
	})
	if got := r.names(); len(got) != 1 || got[0] == far {
		t.Errorf("left are %q", got)
	}
}

func TestAPlanTakesEffectAtOnce(t *testing.T) {
	r := newRound(t)
	r.during(func() {
		r.Set(r.plan(1))
		r.until("a backup", func(s archive.Status) bool { return !s.Last.IsZero() })
		r.Set(archive.Plan{})
		r.until("no plan", func(s archive.Status) bool { return s.Plan.None() && s.Last.IsZero() })
	})
}

func TestANodeThatIsNotReadyIsAFailureOnlyAfterAWhile(t *testing.T) {
	r := newRound(t)
	nobody := errors.New("no leader")
	r.fails.Store(&nobody)
	r.Set(r.plan(1))
	r.during(func() {
		r.until("a failure", func(s archive.Status) bool { return s.Failures > 0 })
		if s := r.Status(); !errors.Is(s.Err, nobody) || s.Failing.Sub(s.Began) < time.Minute {
			t.Errorf("%+v", s)
		}
		r.fails.Store(nil)
		r.until("a backup", func(s archive.Status) bool { return s.Err == nil && !s.Last.IsZero() })
	})
}

func TestBackupsAreMeasured(t *testing.T) {
	r := newRound(t)
	registry := prometheus.NewPedanticRegistry()
	archive.NewMetrics(r.Schedule, registry)
	if got, err := registry.Gather(); err != nil || len(got) != 0 {
		t.Error("without a plan:", got, err)
	}
	r.Set(r.plan(1))
	r.during(func() { r.until("a backup", func(s archive.Status) bool { return !s.Last.IsZero() }) })
	got, err := registry.Gather()
	if err != nil || len(got) != 6 {
		t.Fatal(got, err)
	}
	for _, f := range got {
		v := f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		if zero := strings.Contains(f.GetName(), "fail"); zero != (v == 0) {
			t.Errorf("%s is %v", f.GetName(), v)
		}
	}
}
