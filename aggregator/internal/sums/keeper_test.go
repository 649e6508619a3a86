package sums

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// kept starts a keeper of the box.
func kept(t *testing.T, b *box, o Options) *Keeper {
	o.Views = b
	if o.Life == nil {
		o.Life = life
	}
	k := NewKeeper(o, slog.New(slog.DiscardHandler), nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return k
}

// way asks until a question is answered that way.
func way(t *testing.T, k *Keeper, q Query, want string) {
	t.Helper()
	eventually(t, k, q, func(a *Answer) bool { return a.Way == want })
}

// eventually asks until an answer is right.
func eventually(t *testing.T, k *Keeper, q Query, right func(*Answer) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		a, err := k.Answer(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if right(a) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the last answer is %+v", a)
		}
	}
}

func TestAKeeperAnswersWhileItsIndexesAreMadeAnew(t *testing.T) {
	b := newBox(t, 3)
	for range 5 {
		b.step()
	}
	k := kept(t, b, Options{})
	day := []record.Time{t0, t0 + record.Day}
	bySite := Query{Edges: day, By: []string{"site"}}
	way(t, k, bySite, "scan")
	k.Set(Settings{Dimensions: []string{"site"}, Zones: []string{"UTC"}})
	way(t, k, bySite, "index")
	berlin := Query{Edges: []record.Time{t0 - record.Hour, t0 + 23*record.Hour}, By: []string{"site"}}
	way(t, k, berlin, "scan")
	k.Set(Settings{Dimensions: []string{"group", "site"}, Zones: []string{"UTC", "Europe/Berlin"}})
	way(t, k, berlin, "index")
	way(t, k, Query{Edges: day, By: []string{"group"}}, "index")
	k.Set(Settings{})
	way(t, k, bySite, "scan")
}

func TestKeeper_KeyThatNoRecordHas_NeedsNoRows(t *testing.T) {
	b := newBox(t, 23)
	for range 5 {
		b.step()
	}
	k := kept(t, b, Options{})
	k.Set(Settings{Dimensions: []string{"site", "user"}, Zones: []string{"UTC"}})
	q := Query{Edges: []record.Time{record.MinTime, record.MaxTime}, By: []string{"site", "rack"}, Now: t0}
	way(t, k, q, "index and scan")
	known := func(a *Answer) bool { return slices.ContainsFunc(a.Groups, func(g Group) bool { return !g.Lacks[1] }) }
	if a := b.answer(q, func(q Query) (*Answer, error) { return k.Answer(t.Context(), q) }); known(a) {
		t.Errorf("%+v", a.Groups)
	}
	for _, stop := range []record.Time{record.None, t0 + record.Hour} { // one goes on, one has ended
		b.post(record.Record{ID: fmt.Sprint("racked", stop), Start: t0, Stop: stop, Meta: record.Meta{{Key: "rack", Values: []string{"r1"}}, {Key: "site", Values: []string{"site1"}}}, Components: b.components()})
		if a := b.answer(q, func(q Query) (*Answer, error) { return k.Answer(t.Context(), q) }); !known(a) || a.Way != "scan" {
			t.Errorf("%s: %+v", a.Way, a.Groups)
		}
	}
}

func TestAnIndexThatIsTooLargeIsGivenUp(t *testing.T) {
	b := newBox(t, 4)
	k := kept(t, b, Options{MaxBytes: 64 << 10})
	k.Set(Settings{Dimensions: []string{"user"}, Zones: []string{"UTC"}})
	q := Query{Edges: []record.Time{t0, t0 + record.Day}, By: []string{"user"}}
	way(t, k, q, "index")
	for b.ids < 4000 {
		b.step()
	}
	way(t, k, q, "scan")
	if err := k.TooLarge(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("it says %v", err)
	}
}

func TestARestoredStateIsCountedAnew(t *testing.T) {
	b := newBox(t, 5)
	name := "first"
	x := newIndex(t, Options{Views: b, Life: func(*store.View) (string, error) { return name, nil }}, []string{"site"})
	for range 8 {
		b.step()
	}
	b.follow(x)
	// What is restored has other rows under the same numbers.
	seq := x.Seq()
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	b.fs, b.index, b.cursor = vfs.NewMem(), 0, nil
	b.open()
	for v := uint64(0); v <= seq; {
		b.step()
		view, err := b.View()
		if err != nil {
			t.Fatal(err)
		}
		v = view.Seq()
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
	}
	name = "second"
	for range 5 {
		b.ask(x)
	}
}

func TestAnIndexThatIsMadeSaysHowFarItIs(t *testing.T) {
	b := newBox(t, 14)
	for b.ids < 12_000 {
		b.step()
	}
	var told []uint64
	all := uint64(0)
	x := newIndex(t, Options{Views: b, Life: life, Progress: func(seq, of uint64) { told, all = append(told, seq), of }}, []string{"site"})
	if err := x.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(told) < 2 || !slices.IsSorted(told) || told[len(told)-1] > all || all != x.Seq() {
		t.Errorf("%d of %d", told, all)
	}
	k := kept(t, b, Options{})
	k.Set(Settings{Dimensions: []string{"site"}, Zones: []string{"UTC", "Europe/Berlin"}})
	way(t, k, Query{Edges: []record.Time{t0, t0 + record.Day}, By: []string{"site"}}, "index")
	b.step()
	way(t, k, Query{Edges: []record.Time{t0, t0 + record.Day}, By: []string{"site"}}, "index")
	if got := math.Float64frombits(k.built.Load()); got != 1 {
		t.Errorf("after it is made, and follows: %v", got)
	}
}
