package completeness

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

var (
	nemo = record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	epi  = record.Origin{Agent: "head1", Type: "slurm-epilog", Label: "nemo"}
	t0   = record.FromStd(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
)

// box is a store that an agent sends to.
type box struct {
	store    *store.Store
	index    uint64
	cursor   store.Cursor
	observed int64
}

type tester interface {
	Helper()
	Fatal(args ...any)
	Cleanup(fn func())
}

func newBox(t tester) *box {
	t.Helper()
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &box{store: s}
}

func (b *box) apply(t tester, c store.Command) {
	t.Helper()
	b.index++
	if _, err := b.store.Apply(b.index, 1, store.Encode(c)); err != nil {
		t.Fatal(err)
	}
}

// send has the agent hand over rows, writes that are no puts, and facts.
func (b *box) send(t tester, rows []columns.Row, writes []record.Write, facts ...store.Fact) {
	t.Helper()
	c := &store.IngestCommand{Agent: "head1", Now: t0, Epoch: store.Epoch{1}, Writes: writes, Facts: facts, From: b.cursor.Seq + 1, To: b.cursor.Seq + 1, Before: b.cursor.Digest}
	if b.cursor.Seq == 0 {
		c.Begin = &store.Begin{}
	}
	c.After = store.Chain{byte(c.To), byte(c.To >> 8)}
	if len(rows) > 0 {
		all := columns.NewBuilder()
		for i := range rows {
			all.Add(&rows[i])
		}
		c.Rows = all.Bytes()
	}
	b.index++
	r, err := b.store.Apply(b.index, 1, store.Encode(c))
	if result, ok := r.(store.IngestResult); err != nil || !ok || !result.Accepted {
		t.Fatal(r, err)
	} else {
		b.cursor = result.Cursor
	}
}

// row is a run that the source says.
func (b *box) row(id string, stop record.Time, from record.Origin, rank record.Rank) columns.Row {
	b.observed++
	return columns.Row{
		Record: record.Record{ID: id, Start: stop - record.Hour, Stop: stop, Submit: record.None, Components: []record.Component{{Name: "Cores", Amount: 1}}},
		Origin: from, Rank: rank, Version: record.Version{Ended: true, Observed: b.observed}, Stop: record.None,
	}
}

func fact(c wire.Count) store.Fact {
	f := wire.Frame{SourceType: nemo.Type, SourceLabel: nemo.Label, Kind: wire.KindCount, Count: c}
	return store.Fact{Kind: store.FactCount, Source: nemo, At: c.From, Data: wire.AppendFrame(nil, &f)}
}

// said is what the agent says of the day that begins at from.
func said(from record.Time, runs, filtered, quarantined int64) wire.Count {
	return wire.Count{From: from, To: from + record.Day, At: from + record.Day, Counted: runs, Records: runs - filtered - quarantined, Filtered: filtered, Quarantined: quarantined}
}

func (b *box) look(t tester, w Window) []Day {
	t.Helper()
	v, err := b.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	days, err := Look(context.Background(), v, w)
	if err != nil {
		t.Fatal(err)
	}
	return days
}

// say is a day in a line.
func say(days []Day, now record.Time) (out []string) {
	for i := range days {
		d := &days[i]
		out = append(out, fmt.Sprintf("%s %s: %s, %d of %d, missing %d, surplus %d, deleted %d", d.Source, d.From.Std().Format("01-02"), d.State(now), d.Stored, d.Runs(), d.Missing(), d.Surplus(), d.Deleted))
	}
	return out
}

func TestADaySaysWhatBecameOfItsRuns(t *testing.T) {
	b := newBox(t)
	b.send(t, []columns.Row{
		b.row("a", t0, nemo, 4), b.row("b", t0+record.Day-1, nemo, 4), b.row("c", t0+record.Day, nemo, 4),
		b.row("d", t0+2*record.Day, nemo, 4), b.row("e", t0+2*record.Day, nemo, 4),
	}, nil,
		fact(said(t0, 4, 1, 1)), fact(said(t0+record.Day, 3, 0, 0)), fact(said(t0+2*record.Day, 1, 0, 0)))
	want := []string{
		"head1/slurm/nemo 03-01: ok, 2 of 4, missing 0, surplus 0, deleted 0",
		"head1/slurm/nemo 03-02: missing, 1 of 3, missing 2, surplus 0, deleted 0",
		"head1/slurm/nemo 03-03: surplus, 2 of 1, missing 0, surplus 1, deleted 0",
		"head1/slurm/nemo 03-04: unchecked, 0 of 0, missing 0, surplus 0, deleted 0",
		"head1/slurm/nemo 03-05: open, 0 of 0, missing 0, surplus 0, deleted 0",
	}
	days := b.look(t, Window{t0, t0 + 5*record.Day})
	if diff := cmp.Diff(want, say(days, t0+5*record.Day)); diff != "" {
		t.Error(diff)
	}
	list := Stretches(days)
	if len(list) != 1 || list[0].Remedy() != "bursar-agent recollect -source slurm/nemo -from 2026-03-02 -to 2026-03-03" || list[0].Lost != 2 {
		t.Errorf("%+v", list)
	}
}

// Rows of several sources and days follow each other in any order, in blocks and loose.
func TestCountStored_SourcesInAnyOrder_CountsEachDay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := newBox(t)
	want := map[record.Origin]dayCounts{nemo: {}, epi: {}, {Agent: "head1", Type: "htcondor", Label: "ap"}: {}}
	sources := slices.SortedFunc(maps.Keys(want), record.Origin.Compare)
	for part := range 3 {
		var rows []columns.Row
		for len(rows) < 1500 {
			source, day := sources[rng.IntN(len(sources))], t0+record.Time(rng.Int64N(3))*record.Day
			for range 1 + rng.IntN(5) {
				rows = append(rows, b.row(fmt.Sprint("r-", part, "-", len(rows)), day+record.Time(rng.Int64N(int64(record.Day))), source, 4))
				want[source][day]++
			}
		}
		b.send(t, rows, nil)
	}
	var rows []columns.Row // of so many sources that they are in the rows
	for i := range 1500 {
		source := record.Origin{Agent: "head1", Type: "slurm", Label: fmt.Sprint("cluster", i)}
		rows = append(rows, b.row(fmt.Sprint("other-", i), t0+record.Hour, source, 4))
		want[source] = dayCounts{t0: 1}
	}
	b.send(t, rows, nil)
	v, err := b.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	got, err := countStored(t.Context(), v, Window{t0, t0 + 3*record.Day})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestTheLastCountOfADayCounts(t *testing.T) {
	b := newBox(t)
	b.send(t, nil, nil, fact(said(t0, 4, 0, 0)))
	b.send(t, []columns.Row{b.row("a", t0+1, nemo, 4)}, nil, fact(said(t0, 1, 0, 0)))
	if got := say(b.look(t, Window{t0, t0 + 1}), t0); got[0] != "head1/slurm/nemo 03-01: ok, 1 of 1, missing 0, surplus 0, deleted 0" {
		t.Error(got)
	}
}

func TestWhatAnotherSourceSaidFirstOrBetterIsNotMissing(t *testing.T) {
	b := newBox(t)
	same := b.row("same", t0+record.Hour, epi, 3)
	b.send(t, []columns.Row{same, b.row("only", t0+record.Hour, epi, 3)}, nil)
	same.Origin, same.Rank, same.Version.Observed = nemo, 4, 99
	b.send(t, []columns.Row{same}, nil, fact(said(t0, 1, 0, 0)))
	if got := say(b.look(t, Window{t0, t0 + 1}), t0); got[0] != "head1/slurm/nemo 03-01: ok, 1 of 1, missing 0, surplus 0, deleted 0" {
		t.Error(got)
	}
}

func TestWhatAnOperatorDeletedIsNotMissing(t *testing.T) {
	b := newBox(t)
	rows := make([]columns.Row, 1200)
	for i := range rows {
		rows[i] = b.row(fmt.Sprint("r-", i), t0+record.Time(i), nemo, 4)
	}
	b.send(t, rows, nil, fact(said(t0, 1201, 0, 0)))
	b.apply(t, &store.DeleteCommand{IDs: []string{"r-1", "r-7"}, By: "me", Now: t0})
	if got := say(b.look(t, Window{t0, t0 + 1}), t0); got[0] != "head1/slurm/nemo 03-01: missing, 1198 of 1201, missing 1, surplus 0, deleted 2" {
		t.Error(got)
	}
}

func TestARunThatTheSourceDoesNotGiveIsToldFromOneThatWasLost(t *testing.T) {
	for _, c := range []struct {
		count                wire.Count
		stored               int64
		unread, shared, lost int64
	}{
		{wire.Count{Counted: 10, Records: 10}, 7, 0, 0, 3},
		{wire.Count{Counted: 10, Records: 8}, 8, 2, 0, 0},
		{wire.Count{Counted: 10, Records: 8}, 7, 2, 0, 1},
		{wire.Count{Counted: 10, Records: 6, Shared: 4}, 6, 0, 4, 0},
		{wire.Count{Counted: 10, Records: 5, Shared: 3, Filtered: 1}, 4, 1, 3, 1},
		{wire.Count{Counted: 8, Records: 10}, 8, 0, 0, 2}, // it gives more than it counts
	} {
		d := Day{Count: c.count, Stored: c.stored}
		if d.Unread() != c.unread || d.Shared() != c.shared || d.Lost() != c.lost {
			t.Errorf("%+v stored %d: unread %d, shared %d, lost %d", c.count, c.stored, d.Unread(), d.Shared(), d.Lost())
		}
	}
}

// TestWhateverIsLostIsFoundAndGoesWithTheRecollection drops random runs between an
// agent and the store.
func TestWhateverIsLostIsFoundAndGoesWithTheRecollection(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBox(rt)
		const days = 4
		lost, runs := map[record.Time][]columns.Row{}, map[record.Time]int64{}
		var sent []columns.Row
		for i := range rapid.IntRange(0, 80).Draw(rt, "runs") {
			stop := t0 + record.Time(rapid.Int64Range(0, int64(days*record.Day)-1).Draw(rt, "stop"))
			row := b.row(fmt.Sprint("r-", i), stop, nemo, 4)
			runs[Begin(stop)]++
			if rapid.IntRange(0, 4).Draw(rt, "fate") == 0 {
				lost[Begin(stop)] = append(lost[Begin(stop)], row)
			} else {
				sent = append(sent, row)
			}
		}
		var facts []store.Fact
		for d := range record.Time(days) {
			facts = append(facts, fact(said(t0+d*record.Day, runs[t0+d*record.Day], 0, 0)))
		}
		b.send(rt, sent, nil, facts...)
		w := Window{t0, t0 + days*record.Day}
		for _, d := range b.look(rt, w) {
			if d.Missing() != int64(len(lost[d.From])) || d.Surplus() != 0 {
				rt.Fatalf("%s: missing %d, lost %d, surplus %d", d.From, d.Missing(), len(lost[d.From]), d.Surplus())
			}
		}
		for _, from := range slices.Sorted(maps.Keys(lost)) {
			b.send(rt, lost[from], nil)
		}
		for _, d := range b.look(rt, w) {
			if d.State(w.To) != OK {
				rt.Fatalf("%s after the recollection: %+v", d.From, d)
			}
		}
	})
}

func TestTheKeeperFindsWhatChanges(t *testing.T) {
	b := newBox(t)
	b.send(t, []columns.Row{b.row("a", t0, nemo, 4)}, nil, fact(said(t0, 2, 0, 0)), fact(said(t0-400*record.Day, 1, 0, 0)))
	k := &Keeper{View: b.store.View, Now: func() time.Time { return (t0 + 3*record.Day).Std() }}
	var at progress
	missing := func(want int) {
		t.Helper()
		if err := k.compareChanged(t.Context(), &at); err != nil {
			t.Fatal(err)
		}
		days, ready := k.Days(Window{t0 - 500*record.Day, t0 + 5*record.Day})
		if list := Stretches(days); len(list) != want || !ready {
			t.Fatalf("%+v", list)
		}
	}
	missing(2)
	b.send(t, []columns.Row{b.row("b", t0+1, nemo, 4)}, nil)
	missing(1) // the one of long ago stays
}
