package sums

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// restarted is the index of a node that starts with what is stored in the folder.
func restarted(t *testing.T, o Options, dims []string) (x *Index, loaded bool, err error) {
	t.Helper()
	x = newIndex(t, o, dims)
	loaded, err = x.Load(t.Context())
	return x, loaded, err
}

func (b *box) save(x *Index) {
	b.t.Helper()
	b.follow(x)
	if err := x.Save(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// isRight compares an index with another made anew, and asks.
func (b *box) isRight(x *Index) {
	b.t.Helper()
	b.follow(x)
	if found, err := x.Check(b.t.Context()); err != nil || len(found) > 0 {
		b.t.Fatal(found, err)
	}
	b.ask(x)
}

// reopen starts the store again.
func (b *box) reopen() {
	b.t.Helper()
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

func TestStoredSums_RestartsBetweenChanges_EqualTheSlowSum(t *testing.T) {
	t.Parallel()
	loads, anew := 0, 0
	for seed := uint64(0); seed < uint64(max(3, racetest.Few(6))) || (loads < 5 || anew < 3) && seed < 20; seed++ { // until there were some of both
		b := newBox(t, seed)
		zone, err := time.LoadLocation([]string{"UTC", "Europe/Berlin", "Australia/Lord_Howe"}[seed%3])
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Views: b, Life: life, Zone: zone, Dir: t.TempDir()}
		dims := []string{"group", "site", "user"}
		x := newIndex(t, o, dims)
		for range 8 {
			for range 1 + b.rng.IntN(6) {
				b.step()
				if b.rng.IntN(4) == 0 {
					b.follow(x)
				}
			}
			if b.rng.IntN(4) == 0 {
				b.drop()
			}
			if b.rng.IntN(3) > 0 {
				b.save(x)
			}
			for range b.rng.IntN(3) {
				b.step()
			}
			if b.rng.IntN(4) == 0 {
				b.drop()
			}
			if b.rng.IntN(2) == 0 {
				b.reopen()
			}
			if b.rng.IntN(2) == 0 {
				var loaded bool
				x, loaded, err = restarted(t, o, dims)
				if err != nil && !errors.Is(err, errOther) {
					t.Fatal(err)
				}
				if loaded {
					loads++
				} else {
					anew++
				}
			}
			b.isRight(x)
		}
	}
	if loads < 5 || anew < 3 {
		t.Errorf("%d were loaded, %d were not", loads, anew)
	}
}

// copyFolder copies the files of a folder.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// storedIndex is a saved index of a box with some history.
func storedIndex(t *testing.T, seed uint64) (*box, *Index, Options) {
	t.Helper()
	b := newBox(t, seed)
	for range 6 {
		b.step()
	}
	o := Options{Views: b, Life: life, Dir: t.TempDir()}
	x := newIndex(t, o, []string{"site"})
	b.save(x)
	return b, x, o
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

func TestStoredSums_DamagedAnywhere_AreNotLoaded(t *testing.T) {
	b, x, o := storedIndex(t, 21)
	whole := filepath.Join(t.TempDir(), "whole")
	copyFolder(t, x.sumsFolder(), whole)
	for _, name := range filesOf(t, whole) {
		content, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		for range racetest.Few(60) {
			damaged, at := append([]byte{}, content...), b.rng.IntN(len(content))
			what := fmt.Sprintf("%s of %d bytes, byte %d", name, len(content), at)
			switch b.rng.IntN(4) {
			case 0:
				damaged, what = damaged[:at], what+" is the end"
			case 1:
				damaged = append(damaged, byte(at))
			default:
				damaged[at] ^= 1 << b.rng.IntN(8)
			}
			copyFolder(t, whole, x.sumsFolder())
			if err := os.WriteFile(filepath.Join(x.sumsFolder(), name), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			again, loaded, err := restarted(t, o, []string{"site"})
			if loaded || !errors.Is(err, errStored) {
				t.Fatalf("%s: loaded %t, %v", what, loaded, err)
			}
			if _, err := os.Stat(x.sumsFolder()); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("%s: it is left: %v", what, err)
			}
			if b.rng.IntN(20) == 0 {
				b.isRight(again)
			}
		}
		copyFolder(t, whole, x.sumsFolder())
		if err := os.Remove(filepath.Join(x.sumsFolder(), name)); err != nil {
			t.Fatal(err)
		}
		if _, loaded, err := restarted(t, o, []string{"site"}); loaded || name != headFile && err == nil {
			t.Fatalf("without %s: loaded %t, %v", name, loaded, err)
		}
	}
	copyFolder(t, whole, x.sumsFolder())
	again, loaded, err := restarted(t, o, []string{"site"})
	if !loaded || err != nil {
		t.Fatal(loaded, err)
	}
	b.isRight(again)
}

// A crash leaves any of the new files, each cut anywhere, and the old head.
func TestStoredSums_CrashWhileSaving_LeavesThoseBefore(t *testing.T) {
	b, x, o := storedIndex(t, 22)
	before, after := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after")
	for range racetest.Few(10) {
		copyFolder(t, x.sumsFolder(), before)
		seq := x.Seq()
		b.ingest(record.None, b.put(b.next()), b.put(b.some()))
		b.save(x)
		copyFolder(t, x.sumsFolder(), after)
		for range 10 {
			copyFolder(t, before, x.sumsFolder())
			for _, name := range filesOf(t, after) {
				content, err := os.ReadFile(filepath.Join(after, name))
				if err != nil {
					t.Fatal(err)
				}
				if name == headFile {
					name += ".new"
				}
				if b.rng.IntN(3) > 0 {
					content = content[:b.rng.IntN(len(content)+1)]
				}
				_, err = os.Stat(filepath.Join(before, name))
				if b.rng.IntN(4) == 0 || err == nil {
					continue
				}
				if err := os.WriteFile(filepath.Join(x.sumsFolder(), name), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			again, loaded, err := restarted(t, o, []string{"site"})
			if !loaded || err != nil || again.Seq() != seq {
				t.Fatal(loaded, err, again.Seq(), seq)
			}
			b.save(again)
			if names := filesOf(t, x.sumsFolder()); strings.Contains(strings.Join(names, " "), ".new") || len(names) != len(again.months)+1 {
				t.Fatalf("files are left: %q", names)
			}
		}
		copyFolder(t, after, x.sumsFolder())
		b.isRight(x)
	}
}

func TestStoredSums_OfAnotherStore_AreNotLoaded(t *testing.T) {
	t.Parallel()
	b, x, o := storedIndex(t, 23)
	whole := filepath.Join(t.TempDir(), "whole")
	copyFolder(t, x.sumsFolder(), whole)
	refused := func(what string, o Options, dims ...string) {
		t.Helper()
		again := newIndex(t, o, dims)
		copyFolder(t, whole, again.sumsFolder())
		if loaded, err := again.Load(t.Context()); loaded || !errors.Is(err, errOther) {
			t.Errorf("%s: loaded %t, %v", what, loaded, err)
		}
	}
	refused("other dimensions", o, "group")
	berlin := o
	berlin.Zone = time.FixedZone("east", 3600)
	refused("another zone", berlin, "site")
	restored := o
	restored.Life = func(*store.View) (string, error) { return "restored", nil }
	refused("another life", restored, "site")

	// Another history of the same cluster, shorter and longer.
	seq := x.Seq()
	other := newBox(t, 24)
	o.Views = other
	refused("an empty store", o, "site")
	for v := uint64(0); v <= seq; {
		other.step()
		if v == 0 {
			refused("an older store", o, "site")
		}
		view, err := other.View()
		if err != nil {
			t.Fatal(err)
		}
		v = view.Seq()
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
	}
	other.index += 1000
	refused("a longer store", o, "site")

	// The same history, from which was dropped what the sums still have.
	o.Views = b
	for range 30 {
		b.step()
	}
	for range b.ids {
		b.ingest(record.None, b.put(b.some()))
	}
	b.drop()
	refused("a store without the rows", o, "site")
}

func TestStoredSums_SavedWhileTheStoreChanges_AreOfOneState(t *testing.T) {
	b := newBox(t, 25)
	o := Options{Views: b, Life: life, Dir: t.TempDir()}
	x := newIndex(t, o, []string{"site", "user"})
	for range 5 {
		b.step()
	}
	for range 15 {
		done := make(chan error, 1)
		go func() { done <- x.Save(context.Background()) }()
		for range 3 {
			b.step()
			b.follow(x)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		again, loaded, err := restarted(t, o, []string{"site", "user"})
		if !loaded || err != nil {
			t.Fatal(loaded, err)
		}
		b.isRight(again)
	}
}

// Sums begin anew when what must be subtracted is gone, or after a restore.
func TestStoredSums_SavedWhileTheSumsBeginAnew_AreOfOneState(t *testing.T) {
	b := newBox(t, 28)
	var restores atomic.Int64
	o := Options{Views: b, Dir: t.TempDir(), Life: func(*store.View) (string, error) { return strconv.FormatInt(restores.Load(), 10), nil }}
	dims := []string{"site", "user"}
	k := NewKeeper(o, slog.New(slog.DiscardHandler), nil)
	x := newIndex(t, o, dims)
	k.current.Store(&[]*Index{x})
	for range 5 {
		b.step()
	}
	for range 15 {
		done := make(chan error, 1)
		go func() {
			err := x.Save(context.Background())
			k.removeUnwanted()
			done <- err
		}()
		for range 3 {
			restores.Add(1)
			b.follow(x)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		b.step()
		again, _, err := restarted(t, o, dims)
		if err != nil && !errors.Is(err, errOther) {
			t.Fatal(err)
		}
		b.isRight(again)
		b.save(x)
		if again, loaded, err := restarted(t, o, dims); !loaded || err != nil {
			t.Fatal(loaded, err)
		} else {
			b.isRight(again)
		}
	}
}

func TestStoredSums_SaveFails_TheNextHasEverything(t *testing.T) {
	b, x, o := storedIndex(t, 26)
	for range 10 {
		b.step()
		b.follow(x)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := x.Save(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		again, loaded, err := restarted(t, o, []string{"site"})
		if !loaded || err != nil {
			t.Fatal(loaded, err)
		}
		b.isRight(again)
		if b.rng.IntN(2) == 0 {
			b.save(x)
		}
	}
}

func TestKeeper_StopsAndStarts_LoadsWhatItStored(t *testing.T) {
	b := newBox(t, 27)
	for range 5 {
		b.step()
	}
	o := Options{Views: b, Life: life, Dir: t.TempDir()}
	q := Query{Edges: []record.Time{t0, t0 + record.Day}, By: []string{"site"}}
	settings := Settings{Dimensions: []string{"site"}, Zones: []string{"UTC", "Europe/Berlin"}}
	var log strings.Builder
	for i := range 3 {
		log.Reset()
		k := NewKeeper(o, slog.New(slog.NewTextHandler(&log, nil)), nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- k.Run(ctx) }()
		k.Set(settings)
		way(t, k, q, "index")
		b.ingest(record.None, b.put(b.next()))
		way(t, k, q, "index")
		if found, err := k.Check(t.Context()); err != nil || len(found) > 0 {
			t.Fatal(found, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(log.String(), "the stored sums by day are loaded"), 2*min(i, 1); got != want {
			t.Errorf("start %d: %d were loaded, want %d: %s", i, got, want, log.String())
		}
		if names := filesOf(t, o.Dir); len(names) != 2 {
			t.Errorf("start %d: %q", i, names)
		}
		b.reopen()
	}
}

func TestKeeper_RecordsOfAUserDeleted_NameLeavesMemoryAndDisk(t *testing.T) {
	b := newBox(t, 28)
	k := kept(t, b, Options{Dir: t.TempDir()})
	k.Set(Settings{Dimensions: []string{"user"}, Zones: []string{"UTC"}})
	for _, name := range []string{"remains", "vanishing"} {
		b.post(record.Record{ID: name, Start: t0, Stop: t0 + record.Hour, Submit: record.None, Meta: record.Meta{{Key: "user", Values: []string{name}}}})
	}
	way(t, k, Query{Edges: []record.Time{t0, t0 + record.Day}, By: []string{"user"}}, "index")
	stored := func() bool {
		x := k.currentIndexes()[0]
		b.save(x)
		head, err := os.ReadFile(filepath.Join(x.sumsFolder(), headFile))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(head), "remains") {
			t.Fatal("a name is missing")
		}
		return strings.Contains(string(head), "vanishing")
	}
	if !stored() || k.forgetGone() {
		t.Fatal("all names are in use")
	}
	b.apply(&store.DeleteCommand{IDs: []string{"vanishing"}, Now: t0})
	b.follow(k.currentIndexes()[0])
	if !k.forgetGone() {
		t.Fatal("a name is not in use any more")
	}
	for end := time.Now().Add(time.Minute); stored(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the name is still stored")
		}
	}
	if k.forgetGone() {
		t.Fatal("all names are in use again")
	}
}

// The rows of a deleted user can leave the store before the index has heard of it: it begins
// again then, and knows the name no more, but its files do.
func TestKeeper_RowsDroppedBeforeTheIndexFollows_StoredNameIsForgotten(t *testing.T) {
	b := newBox(t, 29)
	x := newIndex(t, Options{Views: b, Life: life, Dir: t.TempDir()}, []string{"user"})
	k := NewKeeper(Options{}, slog.New(slog.DiscardHandler), nil)
	k.current.Store(&[]*Index{x})
	for _, name := range []string{"remains", "vanishing"} {
		b.post(record.Record{ID: name, Start: t0, Stop: t0 + record.Hour, Submit: record.None, Meta: record.Meta{{Key: "user", Values: []string{name}}}})
	}
	b.follow(x)
	b.save(x)
	if k.forgetGone() {
		t.Fatal("all names are in use")
	}
	b.apply(&store.DeleteCommand{IDs: []string{"vanishing"}, Now: t0})
	b.drop()
	b.follow(x)
	if !k.forgetGone() {
		t.Fatal("the files have a name that is not in use any more")
	}
	b.save(x)
	if k.forgetGone() {
		t.Fatal("the files are of now")
	}
}
