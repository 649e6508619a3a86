package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	nemo  = Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	twin  = Origin{Agent: "head2", Type: "slurm", Label: "nemo"}
	shell = Origin{Agent: "head1", Type: "epilog", Label: "nemo"}
	files = Origin{Agent: "head1", Type: "import", Label: "old"}
)

// writes draws statements about one run, so few different ones that they meet:
// equal versions with other content, equal content with other versions, what no
// origin should say, and observations that are no time.
func writes() *rapid.Generator[Write] {
	return rapid.Custom(func(t *rapid.T) Write {
		w := Write{
			ID:      "run",
			Op:      rapid.SampledFrom([]Op{OpPut, OpPut, OpPut, OpPut, OpStop, OpStop, OpWithdraw, 9}).Draw(t, "op"),
			Origin:  rapid.SampledFrom([]Origin{Pushed, Pushed, Pushed, nemo, nemo, nemo, twin, shell, files}).Draw(t, "origin"),
			Rank:    rapid.SampledFrom([]Rank{RankScheduler, RankScheduler, RankScheduler, RankPush, 0, 5}).Draw(t, "rank"),
			Version: Version{Ended: rapid.Bool().Draw(t, "ended"), Observed: rapid.SampledFrom([]int64{1, 1, 1, 2, 2, 3, -7, 1<<63 - 1}).Draw(t, "observed")},
			Stop:    rapid.SampledFrom([]Time{10 * Minute, 20 * Minute, 30 * Minute, None}).Draw(t, "stop"),
		}
		if rapid.IntRange(0, 19).Draw(t, "absent") > 0 {
			w.Record = contents().Draw(t, "record")
		}
		return w
	})
}

func contents() *rapid.Generator[*Record] {
	return rapid.Custom(func(t *rapid.T) *Record {
		return &Record{
			ID:         "run",
			Start:      rapid.SampledFrom([]Time{0, 30 * Second, 5 * Minute}).Draw(t, "start"),
			Stop:       rapid.SampledFrom([]Time{None, 10 * Minute}).Draw(t, "stop"),
			Submit:     None,
			Components: []Component{{Name: "Cores", Amount: rapid.Int64Range(1, 2).Draw(t, "cores")}},
		}
	})
}

// dump is all that an entry is.
func dump(e *Entry) string {
	var b strings.Builder
	say := func(r *Record) string {
		if r == nil {
			return "-"
		}
		return fmt.Sprintf("%x", r.Digest())
	}
	for i := range e.Holdings {
		h := &e.Holdings[i]
		fmt.Fprintf(&b, "%s rank %d %+v body %s stop %d@%d\n", h.Origin, h.Rank, h.Version, say(h.Record), h.Stop, h.StopObserved)
	}
	fmt.Fprintf(&b, "shown %s deleted %v conflict %v", say(e.Shown()), e.Deleted, e.Conflict())
	return b.String()
}

func merged(list []Write) *Entry {
	e := &Entry{ID: "run"}
	for _, w := range list {
		e.Merge(w)
	}
	return e
}

// shuffled draws an order of the list in which some come again.
func shuffled(t *rapid.T, list []Write) []Write {
	again := rapid.SliceOfN(rapid.SampledFrom(list), 0, 4).Draw(t, "again")
	return rapid.Permutation(append(slices.Clone(list), again...)).Draw(t, "order")
}

// grouped merges the list in random groups and joins those in a random tree.
func grouped(t *rapid.T, list []Write) *Entry {
	if len(list) < 2 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return merged(list)
	}
	cut := rapid.IntRange(1, len(list)-1).Draw(t, "cut")
	left, right := grouped(t, list[:cut]), grouped(t, list[cut:])
	left.Join(right)
	return left
}

func TestOrderGroupingAndRepetitionNeverMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(writes(), 2, 14).Draw(t, "writes")
		if rapid.IntRange(0, 9).Draw(t, "deleting") == 0 {
			list = append(list, Write{ID: "run", Op: OpDelete})
		}
		want := dump(merged(list))
		if got := dump(merged(shuffled(t, list))); got != want {
			t.Fatalf("in another order\n%s\nwant\n%s", got, want)
		}
		joined := grouped(t, shuffled(t, list))
		if got := dump(joined); got != want {
			t.Fatalf("in groups\n%s\nwant\n%s", got, want)
		}
		joined.Join(merged(list))
		if got := dump(joined); got != want {
			t.Fatalf("joined twice\n%s\nwant\n%s", got, want)
		}
	})
}

func TestEveryWriteHasOneOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &Entry{ID: "run"}
		for _, w := range rapid.SliceOfN(writes(), 1, 12).Draw(t, "writes") {
			before, was := dump(e), e.Shown()
			out := e.Merge(w)
			after, is := dump(e), e.Shown()
			switch out {
			case Added:
				if was != nil || is == nil {
					t.Fatal("added, but shown before or not after")
				}
			case Unchanged, Stale:
				if (was == nil) != (is == nil) || was != nil && !Same(was, is) || out == Stale && before != after {
					t.Fatalf("%s, but\n%s\nbecame\n%s", out, before, after)
				}
			case Merged, Conflicting, Withdrawn:
				if before == after {
					t.Fatalf("%s, but nothing changed", out)
				}
			default:
				t.Fatalf("outcome %s", out)
			}
			if err := w.Validate(); err == nil && is == nil && w.Op == OpPut && out != Stale {
				t.Fatalf("a valid record is %s and nothing is shown", out)
			}
		}
	})
}

func TestAMergeLeavesRecordsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(writes(), 1, 8).Draw(t, "writes")
		digests := make([]Digest, len(list))
		for i := range list {
			digests[i] = digestOf(list[i].Record)
		}
		e := merged(list)
		copied := e.Clone()
		kept := dump(&copied)
		e.PutStop(Hour, 5)
		e.Merge(Write{ID: "run", Op: OpDelete})
		for i := range list {
			if digestOf(list[i].Record) != digests[i] {
				t.Fatal("a record changed")
			}
		}
		if dump(&copied) != kept {
			t.Fatal("a copy changed with the entry")
		}
	})
}

func TestPutStopStopsWhateverIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := merged(rapid.SliceOfN(writes(), 1, 10).Draw(t, "writes"))
		shown := e.Shown()
		if done := e.PutStop(Hour, rapid.Int64Range(0, 5).Draw(t, "observed")); done != (shown != nil) {
			t.Fatalf("PutStop says %v, shown was %v", done, shown)
		}
		if shown == nil {
			return
		}
		want := *shown
		want.Stop = Hour
		if got := e.Shown(); !Same(got, &want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestPostIsRefusedWhereAnyOriginHasABody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := merged(rapid.SliceOfN(writes(), 0, 6).Draw(t, "writes"))
		before, body := dump(e), e.HasBody()
		r := contents().Draw(t, "posted")
		if done := e.Post(r, 6); done == body {
			t.Fatalf("posted %v, body there %v", done, body)
		}
		if body && dump(e) != before {
			t.Fatal("a refused POST changed something")
		}
		if !body && (e.Shown() == nil || e.Shown().Start != r.Start) {
			t.Fatal("an accepted POST is not shown")
		}
	})
}

func TestCorrection_AnyOrder_TakesThePlaceOfThePushedBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(writes(), 2, 14).Draw(t, "writes")
		e := merged(list)
		h := e.Holding(Pushed)
		r := contents().Draw(t, "instead")
		w, ok := e.Correction(r)
		if want := h != nil && h.Record != nil && h.Version.Observed > 1; ok != want {
			t.Fatalf("a correction: %v, want %v", ok, want)
		}
		if !ok {
			return
		}
		all := append(slices.Clone(list), w)
		want := dump(merged(all))
		if got := dump(merged(shuffled(t, all))); got != want {
			t.Fatalf("in another order\n%s\nwant\n%s", got, want)
		}
		after := merged(all).Holding(Pushed)
		if !Same(after.Record, r) || after.Stop != h.Stop || after.Version.Ended != h.Version.Ended {
			t.Fatalf("got %+v, was %+v", after, h)
		}
	})
}

func TestDismissStop_OnlyOneThatWaitsAndWasSeenByThen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := merged(rapid.SliceOfN(writes(), 1, 10).Draw(t, "writes"))
		until := rapid.Int64Range(0, 3).Draw(t, "until")
		h := e.Holding(Pushed)
		want := h != nil && h.Waiting() && h.StopObserved <= until
		kept := e.Clone()
		if before := dump(&kept); e.DismissStop(until) != want || dump(&kept) != before || !want && dump(e) != before {
			t.Fatalf("want %v; %s became %s", want, before, dump(e))
		}
		if h := e.Holding(Pushed); want && h != nil {
			t.Fatalf("%+v is still held", h)
		}
	})
}

func TestKinds_Apply_ChangesOnlyWhatTheyNameAndNotTheRecord(t *testing.T) {
	r := Record{ID: "r", Components: []Component{{Name: "Cores", Amount: 8}, {Name: "TotalCPU", Amount: 7200}, {Name: "J", Kind: Total}}}
	got, changed := Kinds{"TotalCPU": Total, "J": Rate, "other": Total}.Apply(&r)
	if !changed || got.Components[0].Kind != Rate || got.Components[1].Kind != Total || got.Components[2].Kind != Rate {
		t.Errorf("%v, %+v", changed, got)
	}
	if r.Components[1].Kind != Rate || r.Components[2].Kind != Total {
		t.Errorf("the record changed: %+v", r)
	}
	if _, again := (Kinds{"TotalCPU": Total, "J": Rate}).Apply(&got); again {
		t.Error("the second time it changed again")
	}
}
