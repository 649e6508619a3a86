package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/google/go-cmp/cmp"
)

func TestIngestThatDoesNotContinueTheCursorChangesNothing(t *testing.T) {
	b := newBox(t)
	b.ingest("head1", t0, put(sample("a", 1), 1), put(sample("b", 2), 2))
	cur := *b.agent["head1"]
	index, before := b.s.Hash()
	for name, c := range map[string]*IngestCommand{
		"again":                       {Epoch: cur.Epoch, From: 1, To: 2, After: cur.Digest},
		"a gap":                       {Epoch: cur.Epoch, From: 4, To: 4, Before: cur.Digest},
		"digest":                      {Epoch: cur.Epoch, From: 3, To: 3, Before: Chain{99}},
		"epoch":                       {Epoch: Epoch{7}, From: 3, To: 3, Before: cur.Digest},
		"backwards":                   {Epoch: cur.Epoch, From: 3, To: 1, Before: cur.Digest},
		"other begin":                 {Epoch: Epoch{7}, From: 1, To: 1, Begin: &Begin{Replaces: Epoch{9}}},
		"no epoch":                    {From: 1, To: 1, Begin: &Begin{Replaces: cur.Epoch, ReplacesSeq: 2, ReplacesDigest: cur.Digest}},
		"begin behind":                {Epoch: Epoch{7}, From: 5, To: 5, Begin: &Begin{Replaces: cur.Epoch, ReplacesSeq: 2, ReplacesDigest: cur.Digest, After: 3}},
		"begin of an earlier cursor":  {Epoch: Epoch{7}, From: 1, To: 1, Begin: &Begin{Replaces: cur.Epoch, ReplacesSeq: 1, ReplacesDigest: cur.Digest}},
		"begin of another digest":     {Epoch: Epoch{7}, From: 1, To: 1, Begin: &Begin{Replaces: cur.Epoch, ReplacesSeq: 2, ReplacesDigest: Chain{99}}},
		"begin of a buffer not begun": {Epoch: cur.Epoch, From: 1, To: 0, Begin: &Begin{}},
	} {
		c.Agent, c.Now = "head1", t0
		r := b.apply(c).(IngestResult)
		if r.Accepted || r.Cursor.Seq != cur.Seq {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if i, h := b.s.Hash(); h != before || i <= index {
		t.Errorf("the state changed")
	}
}

func TestNewEpochBeginsWhereTheAgentSays(t *testing.T) {
	b := newBox(t)
	b.ingest("head1", t0, put(sample("a", 1), 1))
	r := b.apply(&IngestCommand{Agent: "head1", Epoch: Epoch{2}, Now: t0, From: 11, To: 10, Before: Chain{5}, After: Chain{5},
		Begin: &Begin{Replaces: Epoch{1}, ReplacesSeq: 1, ReplacesDigest: Chain{1}, After: 10, Digest: Chain{5}}}).(IngestResult)
	want := Cursor{Agent: "head1", Epoch: Epoch{2}, Seq: 10, Digest: Chain{5}, Pulled: t0}
	if diff := cmp.Diff(want, r.Cursor); !r.Accepted || diff != "" {
		t.Fatal(diff)
	}
}

func TestABeginThatComesAgainLateDoesNotSetTheCursorBack(t *testing.T) {
	b := newBox(t)
	begin := &IngestCommand{Agent: "head1", Epoch: Epoch{1}, Now: t0, From: 1, To: 0, Begin: &Begin{}}
	b.apply(begin)
	b.apply(&IngestCommand{Agent: "head1", Epoch: Epoch{1}, Now: t0, From: 1, To: 9, After: Chain{9}})
	again := &IngestCommand{Agent: "head1", Epoch: Epoch{1}, Now: t0, From: 1, To: 0, Begin: &Begin{Replaces: Epoch{1}}}
	for name, late := range map[string]*IngestCommand{"of the first buffer": begin, "of the same epoch": again} {
		_, before := b.s.Hash()
		r := b.apply(late).(IngestResult)
		if _, after := b.s.Hash(); r.Accepted || r.Cursor.Seq != 9 || after != before {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestWithinACommandFailuresComeBeforeSettles(t *testing.T) {
	b := newBox(t)
	q := Quarantined{Source: slurm, ID: "j1", Reason: "mapping", Raw: []byte("{}")}
	b.apply(&IngestCommand{Agent: "head1", Epoch: Epoch{1}, From: 1, To: 2, Begin: &Begin{}, Now: t0,
		Resolved: []QuarantineKey{{slurm, "j1"}}, Quarantine: []Quarantined{q}})
	b.view(func(v *View) {
		if _, ok, err := v.Quarantined(slurm, "j1"); ok || err != nil {
			t.Error("the settled job is still there", err)
		}
	})
}

func TestCursorCarriesCheckpointsAndWatermarksOfEverySource(t *testing.T) {
	b := newBox(t)
	other := record.Origin{Agent: "head1", Type: "epilog", Label: "x"}
	c := &IngestCommand{Agent: "head1", Epoch: Epoch{1}, From: 1, To: 3, Begin: &Begin{}, Now: t0, Observed: 77,
		Checkpoints: []Checkpoint{{slurm, []byte("s1")}, {other, []byte("e1")}, {slurm, []byte("s2")}},
		Watermarks:  []Watermark{{slurm, t0}, {slurm, t0 - 1}},
		Gaps:        []Gap{{Source: slurm, From: t0, To: t0 + 5, Reason: "lost"}, {Source: slurm, From: t0, To: t0 + 5, Reason: "lost"}},
		Facts:       []Fact{{FactCensus, slurm, t0, []byte("new")}, {FactCensus, slurm, t0 - 1, []byte("old")}, {FactCapacity, slurm, t0, []byte("c")}}}
	b.apply(c)
	b.restart()
	b.view(func(v *View) {
		got, err := v.Cursor("head1")
		want := Cursor{Agent: "head1", Epoch: Epoch{1}, Seq: 3, Observed: 77, Pulled: t0,
			Checkpoints: []Checkpoint{{other, []byte("e1")}, {slurm, []byte("s2")}}, Watermarks: []Watermark{{slurm, t0 - 1}}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
		gaps, err := v.Gaps()
		if err != nil || len(gaps) != 1 || gaps[0].Noticed != t0 {
			t.Error(gaps, err)
		}
		facts, err := v.Facts(FactCensus)
		if err != nil || len(facts) != 1 || string(facts[0].Data) != "new" {
			t.Error(facts, err)
		}
	})
	sound(t, b.s)
}

func TestBadRecordGoesToQuarantineAndCostsNoOther(t *testing.T) {
	b := newBox(t)
	bad := sample("bad", 1)
	bad.Components = []record.Component{{Name: "Cores", Amount: -1}}
	nan := sample("nan", 1)
	nan.Components = []record.Component{{Name: "Cores", Scores: []record.Score{{Name: "s", Value: math.NaN()}}}}
	foreign := put(sample("foreign", 1), 1)
	foreign.Origin.Agent = "head2"
	old := put(sample("old", 1), 0)
	stop := record.Write{ID: "x", Op: record.OpStop, Origin: slurm, Rank: record.RankPush, Version: record.Version{Observed: 1}, Stop: t0}
	r := b.ingest("head1", t0, put(sample("a", 1), 1), put(bad, 1), put(nan, 1), foreign, old, stop, put(sample("b", 1), 1))
	if r.Counts.Added != 2 || r.Counts.Quarantined != 5 || !r.Counts.Conserved() {
		t.Fatalf("%+v", r.Counts)
	}
	b.view(func(v *View) {
		n := 0
		err := v.Quarantine(func(q *Quarantined) error {
			n++
			if q.Source.Agent != "head1" || q.Message == "" || len(q.Raw) == 0 || q.Count != 1 {
				t.Errorf("%+v", q)
			}
			return nil
		})
		if n != 5 || err != nil || v.Count() != 2 {
			t.Error(n, err, v.Count())
		}
	})
	sound(t, b.s)
}

func TestQuarantinedJobIsReplacedSettledAndDropped(t *testing.T) {
	b := newBox(t)
	q := Quarantined{Source: slurm, ID: "j1", Reason: "mapping", Message: "m", Raw: []byte("{}")}
	q2 := q
	q2.ID = "j2"
	b.apply(&IngestCommand{Agent: "head1", Epoch: Epoch{1}, From: 1, To: 3, Begin: &Begin{}, Now: t0, Quarantine: []Quarantined{q, q2, q}})
	b.view(func(v *View) {
		got, ok, err := v.Quarantined(slurm, "j1")
		if !ok || err != nil || got.Count != 2 || got.First != t0 {
			t.Error(got, ok, err)
		}
	})
	b.apply(&IngestCommand{Agent: "head1", Epoch: Epoch{1}, From: 4, To: 4, Now: t0, Resolved: []QuarantineKey{{slurm, "j1"}}})
	r := b.apply(&QuarantineDropCommand{Keys: []QuarantineKey{{slurm, "j1"}, {slurm, "j2"}}}).(DeleteResult)
	if r.Changed != 1 {
		t.Error(r)
	}
	b.view(func(v *View) {
		if err := v.Quarantine(func(q *Quarantined) error { return errors.New(q.ID) }); err != nil {
			t.Error("still there:", err)
		}
		cs, err := v.Counters()
		if err != nil || len(cs) != 1 || cs[0].Counts.Quarantined != 3 {
			t.Error(cs, err)
		}
	})
	sound(t, b.s)
}

func TestSameIDTwiceInOneBulkIsOneRecord(t *testing.T) {
	b := newBox(t)
	var ws []record.Write
	for i := range 2000 {
		ws = append(ws, put(sample(fmt.Sprintf("j%d", i%1500), i), int64(i+1)))
	}
	r := b.ingest("head1", t0, ws...)
	if r.Counts.Added != 1500 || r.Counts.Merged != 500 {
		t.Fatalf("%+v", r.Counts)
	}
	row, ok := b.get("j3")
	if want := sample("j3", 1503); !ok || row.Record.Start != want.Start || row.Supersedes != 0 {
		t.Fatalf("%+v", row)
	}
	sound(t, b.s)
}

func TestEqualContentRaisesTheVersionWithoutANewRow(t *testing.T) {
	b := newBox(t)
	b.ingest("head1", t0, put(sample("a", 1), 1))
	r := b.ingest("head1", t0, put(sample("a", 1), 9))
	b.view(func(v *View) {
		e, err := v.Entry("a")
		if r.Counts.Unchanged != 1 || v.Seq() != 1 || err != nil || e.Best().Version.Observed != 9 {
			t.Errorf("%+v %d %+v %v", r.Counts, v.Seq(), e, err)
		}
	})
	r = b.ingest("head1", t0, put(sample("a", 2), 5))
	if r.Counts.Stale != 1 {
		t.Errorf("an older write won: %+v", r.Counts)
	}
	sound(t, b.s)
}

func TestOriginsWhoseStartsDifferAreListedAsConflict(t *testing.T) {
	b := newBox(t)
	other := put(sample("a", 20), 1)
	other.Origin = record.Origin{Agent: "head1", Type: "epilog", Label: "e"}
	r := b.ingest("head1", t0, put(sample("a", 1), 1), other)
	if r.Counts.Conflicting != 1 {
		t.Errorf("%+v", r.Counts)
	}
	ids := func() (list []string) {
		b.view(func(v *View) {
			err := v.Conflicts(func(e *record.Entry) error { list = append(list, e.ID); return nil })
			if err != nil {
				t.Fatal(err)
			}
		})
		return list
	}
	if got := ids(); len(got) != 1 || got[0] != "a" {
		t.Error(got)
	}
	other.Op, other.Record, other.Version.Observed = record.OpWithdraw, nil, 2
	b.ingest("head1", t0, other)
	if got := ids(); len(got) != 0 {
		t.Error(got)
	}
	sound(t, b.s)
}

func TestStopThatCameFirstWaitsVisiblyAndClosesTheBody(t *testing.T) {
	b := newBox(t)
	b.ingest("head1", t0, record.Write{ID: "a", Op: record.OpStop, Origin: record.Pushed, Rank: record.RankPush,
		Version: record.Version{Ended: true, Observed: 1}, Stop: t0 + record.Hour})
	waiting := func() (n int) {
		b.view(func(v *View) {
			if err := v.WaitingStops(func(*record.Entry) error { n++; return nil }); err != nil {
				t.Fatal(err)
			}
		})
		return n
	}
	if waiting() != 1 {
		t.Error("the stop is not to be seen")
	}
	open := sample("a", 1)
	open.Stop = record.None
	if r := b.post(t0, open); r.Added != 1 {
		t.Errorf("%+v", r)
	}
	row, ok := b.get("a")
	if !ok || row.ShownStop() != t0+record.Hour || waiting() != 0 {
		t.Errorf("%+v", row)
	}
	sound(t, b.s)
}

// Nodes of version 1 can read a command without origins that reuse ids.
func TestIngestCommand_Reusing_NeedsVersion7(t *testing.T) {
	for version, reusing := range map[uint32][]record.Origin{1: nil, 7: {slurm}} {
		c := &IngestCommand{Agent: "head1", From: 1, To: 1, Now: t0, Reusing: reusing}
		if got := VersionOf(c); got != version {
			t.Errorf("version %d, want %d", got, version)
		}
		back, err := Decode(Encode(c))
		if err != nil || !slices.Equal(back.(*IngestCommand).Reusing, reusing) {
			t.Errorf("%+v: %v", back, err)
		}
	}
}
