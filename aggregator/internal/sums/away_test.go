package sums

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// wideBox is a box whose records are in many months.
func wideBox(t *testing.T, seed uint64) *box {
	b := newBox(t, seed)
	b.span = 400 * record.Day
	return b
}

// crash leaves of the files that no head names any part, as a loss of power does.
func (b *box) crash(x *Index) {
	b.t.Helper()
	named := map[string]bool{headFile: true}
	if content, err := os.ReadFile(filepath.Join(x.sumsFolder(), headFile)); err == nil {
		h, err := x.readHead(content)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, m := range h.months {
			named[m.name] = true
		}
	}
	list, err := os.ReadDir(x.sumsFolder())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	for _, f := range list {
		path := filepath.Join(x.sumsFolder(), f.Name())
		switch {
		case named[f.Name()]:
		case b.rng.IntN(2) == 0:
			err = os.Remove(path)
		default:
			err = os.Truncate(path, b.rng.Int64N(100))
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// compare asks for most of the days of a box, and holds the answers against those that the
// rows give.
func (b *box) compare(x *Index) {
	b.t.Helper()
	q := Query{Counts: b.rng.IntN(4) > 0, Levels: b.rng.IntN(2) == 0, Now: t0 + b.span, CPU: "TotalCPU", Cores: "Cores"}
	if b.rng.IntN(2) == 0 {
		q.By = []string{"site"}
	}
	if b.rng.IntN(2) == 0 {
		q.People = "site"
	}
	step := day(pick(b.rng, 1, 1, 2, 10, 45, 120))
	for d := x.grid.dayOf(t0 + record.Time(b.rng.Int64N(int64(b.span/4)))); x.grid.dayStart(d) < t0+b.span; d += step {
		q.Edges = append(q.Edges, x.grid.dayStart(d))
	}
	if b.rng.IntN(2) == 0 {
		q.Edges[0] -= record.Time(b.rng.Int64N(int64(record.Day)))
		q.Edges[len(q.Edges)-1] += record.Time(b.rng.Int64N(int64(record.Day)))
	}
	if len(q.Edges) < 2 {
		return
	}
	a, err := x.Answer(b.t.Context(), q)
	if err != nil {
		b.t.Fatal(err)
	}
	want, err := Rows(b.t.Context(), b, q)
	if err != nil {
		b.t.Fatal(err)
	}
	if got, want := flatten(a), flatten(want); !reflect.DeepEqual(got, want) {
		for _, key := range unionNames(got, want) {
			if got[key] != want[key] {
				b.t.Errorf("%s: %q, want %q", key, got[key], want[key])
			}
		}
		b.t.Fatalf("%s: %+v", a.Way, q)
	}
	if a.Way == "scan" {
		b.t.Fatal("the rows were read")
	}
}

// happens lets something happen to an index, and returns the one that there is then.
func (b *box) happens(x *Index, o Options, dims []string) *Index {
	b.t.Helper()
	switch b.rng.IntN(7) {
	case 0:
		b.drop()
	case 1, 2:
		b.save(x)
	case 3:
		ctx, cancel := context.WithCancel(b.t.Context())
		cancel()
		if err := x.Save(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.t.Fatal(err)
		}
	case 4:
		b.reopen()
		b.crash(x)
		again, err := NewIndex(o, dims)
		if err == nil {
			_, err = again.Load(b.t.Context())
		}
		if err != nil && !errors.Is(err, errOther) {
			b.t.Fatal(err)
		}
		return again
	default:
		b.follow(x)
	}
	return x
}

func TestDaysOnDisk_AnyOrderOfChanges_EqualTheSlowSum(t *testing.T) {
	t.Parallel()
	away, merged, loaded := 0, 0, 0
	seeds := racetest.Few(6)
	for seed := range uint64(seeds) {
		b := wideBox(t, 100+seed)
		dims := pick(b.rng, []string{"site"}, []string{"group", "site"})
		dir, limit := t.TempDir(), len(dims)*len(dims)*pick(b.rng, 90<<10, 120<<10, 200<<10)
		var list []*Index
		var options []Options
		for _, name := range []string{"UTC", "Australia/Lord_Howe"} {
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Views: b, Life: life, Zone: zone, Dir: dir, MaxBytes: limit}
			options, list = append(options, o), append(list, newIndex(t, o, dims))
		}
		for range 6 {
			for range 1 + b.rng.IntN(4) {
				b.step()
			}
			for i, x := range list {
				x = b.happens(x, options[i], dims)
				loaded += oneIf(x != list[i] && x.Seq() > 0)
				list[i] = x
				b.follow(x)
				if found, err := x.Check(t.Context()); err != nil || len(found) > 0 {
					t.Fatal(found, err)
				}
				for range 4 {
					b.compare(x)
				}
				if x.bytes > limit {
					t.Fatalf("%d bytes in memory, limit %d", x.bytes, limit)
				}
				away += len(x.away)
				for n := range x.away {
					merged += oneIf(x.held[n])
				}
			}
		}
	}
	if away < 8*seeds || merged < seeds || loaded < seeds/6 {
		t.Errorf("%d months were on disk, %d had changes in memory, %d indexes were loaded", away, merged, loaded)
	}
}

func TestDaysOnDisk_FilesReplacedWhileAsked_AnswersStayRight(t *testing.T) {
	b := wideBox(t, 120)
	x := newIndex(t, Options{Views: b, Life: life, Dir: t.TempDir(), MaxBytes: 80 << 10}, []string{"site"})
	for b.ids < 2500 {
		b.step()
	}
	b.save(x)
	if len(x.away) < 5 {
		t.Fatalf("%d months are on disk alone", len(x.away))
	}
	var asked []Query
	var want []map[string]string
	for range 30 {
		q := b.question(x.grid)
		q.By = slices.DeleteFunc(q.By, func(key string) bool { return key != "site" })
		asked, want = append(asked, q), append(want, b.slow(&q))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			x.mu.Lock()
			for n := range x.away {
				x.changed[n], x.held[n] = true, true
			}
			x.mu.Unlock()
			if err := x.Save(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			for i, q := range asked {
				a, err := x.Answer(t.Context(), q)
				if err != nil {
					t.Error(err)
				} else if got := flatten(a); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("%s: %v, want %v: %+v", a.Way, got, want[i], q)
				}
			}
		})
	}
	clients.Wait()
	cancel()
	others.Wait()
}

// nearlyAll asks for all days of a wide box, and needs most of its months.
func nearlyAll(g *grid) Query {
	q := Query{By: []string{"site"}, Counts: true, Now: t0, CPU: "TotalCPU", Cores: "Cores"}
	for d := g.dayOf(t0); len(q.Edges) < 400; d++ {
		q.Edges = append(q.Edges, g.dayStart(d))
	}
	return q
}

func TestDaysOnDisk_FileDamagedOrGone_IndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := wideBox(t, 121)
	for b.ids < 2500 {
		b.step()
	}
	k := kept(t, b, Options{Dir: t.TempDir(), MaxBytes: 80 << 10})
	k.Set(Settings{Dimensions: []string{"site"}, Zones: []string{"UTC"}})
	g, err := newGrid(nil)
	if err != nil {
		t.Fatal(err)
	}
	q := nearlyAll(g)
	want := b.slow(&q)
	for i := range max(3, racetest.Few(6)) {
		way(t, k, q, "index")
		x := k.currentIndexes()[0]
		x.mu.RLock()
		away := maps.Clone(x.away)
		x.mu.RUnlock()
		if len(away) < 5 {
			t.Fatalf("%d months are on disk alone", len(away))
		}
		path := filepath.Join(x.sumsFolder(), pick(b.rng, slices.Collect(maps.Values(away))...).name)
		content, err := os.ReadFile(path)
		if err == nil {
			switch i % 3 {
			case 0:
				err = os.Remove(path)
			case 1:
				err = os.Truncate(path, b.rng.Int64N(int64(len(content))))
			default:
				content[b.rng.IntN(len(content))] ^= 1 << b.rng.IntN(8)
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		a, err := k.Answer(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if got := flatten(a); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v, want %v", a.Way, got, want)
		}
		way(t, k, q, "index")
		if k.currentIndexes()[0] == x {
			t.Fatal("the index is the one before")
		}
	}
}

func TestDaysOnDisk_KeeperRestarts_AnswersAsOneThatHasAllInMemory(t *testing.T) {
	t.Parallel()
	b := wideBox(t, 122)
	small, large := Options{Views: b, Life: life, Dir: t.TempDir(), MaxBytes: 160 << 10}, Options{Views: b, Life: life}
	settings := Settings{Dimensions: []string{"site"}, Zones: []string{"UTC", "Europe/Berlin"}}
	for range max(2, racetest.Few(3)) {
		var list []*Keeper
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, o := range []Options{small, large} {
			k := NewKeeper(o, slog.New(slog.DiscardHandler), nil)
			running.Go(func() { _ = k.Run(ctx) })
			k.Set(settings)
			list = append(list, k)
		}
		for range max(4, racetest.Few(8)) {
			for range 3 {
				b.step()
			}
			g, err := newGrid(nil)
			if err != nil {
				t.Fatal(err)
			}
			q := nearlyAll(g)
			q.People = "site"
			way(t, list[0], q, "index")
			way(t, list[1], q, "index")
			a, err := list[0].Answer(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			want, err := list[1].Answer(t.Context(), q)
			if err != nil || !reflect.DeepEqual(a, want) {
				t.Fatalf("%v: %+v, want %+v", err, a, want)
			}
		}
		if found, err := list[0].Check(t.Context()); err != nil || len(found) > 0 {
			t.Fatal(found, err)
		}
		cancel()
		running.Wait()
		b.reopen()
	}
}
