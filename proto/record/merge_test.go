package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run returns a record of the run that the tests speak of.
func run(start, stop Time, cores int64) *Record {
	return &Record{ID: "run", Start: start, Stop: stop, Submit: None, Components: []Component{{Name: "Cores", Amount: cores}}}
}

func put(o Origin, rank Rank, observed int64, r *Record) Write {
	return Write{ID: "run", Op: OpPut, Origin: o, Rank: rank, Version: Version{Ended: !r.Open(), Observed: observed}, Record: r}
}

func stop(observed int64, at Time) Write {
	return Write{ID: "run", Op: OpStop, Origin: Pushed, Rank: RankPush, Version: Version{Ended: true, Observed: observed}, Stop: at}
}

func withdraw(o Origin, observed int64) Write {
	return Write{ID: "run", Op: OpWithdraw, Origin: o, Rank: RankScheduler, Version: Version{Ended: true, Observed: observed}}
}

// story is a list of writes with their outcomes, and what is shown at the end.
type story struct {
	name     string
	writes   []Write
	outcomes []Outcome
	shown    *Record
	conflict bool
}

func (s story) tell(t *testing.T) {
	e := &Entry{ID: "run"}
	var got []Outcome
	for _, w := range s.writes {
		got = append(got, e.Merge(w))
	}
	if diff := cmp.Diff(s.outcomes, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(s.shown, e.Shown()); diff != "" {
		t.Error(diff)
	}
	if e.Conflict() != s.conflict {
		t.Errorf("conflict is %v", e.Conflict())
	}
}

func TestMergePromises(t *testing.T) {
	open, closed, longer := run(0, None, 8), run(0, Hour, 8), run(0, 2*Hour, 8)
	mended, other := run(0, Hour, 16), run(5*Minute, Hour, 4)
	stories := []story{
		{"a running job is polled and then closed",
			[]Write{put(nemo, RankScheduler, 1, open), put(nemo, RankScheduler, 2, open), put(nemo, RankScheduler, 3, closed)},
			[]Outcome{Added, Unchanged, Merged}, closed, false},
		{"a poll that comes late does not open a closed run",
			[]Write{put(nemo, RankScheduler, 3, closed), put(nemo, RankScheduler, 4, open)},
			[]Outcome{Added, Stale}, closed, false},
		{"a stop closes an open push",
			[]Write{put(Pushed, RankPush, 1, open), stop(2, Hour)},
			[]Outcome{Added, Merged}, closed, false},
		{"a stop waits for its body and closes it",
			[]Write{stop(2, Hour), put(Pushed, RankPush, 1, open)},
			[]Outcome{Merged, Added}, closed, false},
		{"an earlier stop that comes later changes nothing",
			[]Write{put(Pushed, RankPush, 1, open), stop(3, Hour), stop(2, 2*Hour)},
			[]Outcome{Added, Merged, Stale}, closed, false},
		{"the last stop wins also on a closed push",
			[]Write{put(Pushed, RankPush, 1, closed), stop(2, 2*Hour), stop(2, 2*Hour)},
			[]Outcome{Added, Merged, Unchanged}, longer, false},
		{"the first push wins",
			[]Write{put(Pushed, RankPush, 1, closed), put(Pushed, RankPush, 2, mended)},
			[]Outcome{Added, Stale}, closed, false},
		{"the first push wins also when it comes second",
			[]Write{put(Pushed, RankPush, 2, mended), put(Pushed, RankPush, 1, closed)},
			[]Outcome{Added, Merged}, closed, false},
		{"one run from two sources shows the one that knows best",
			[]Write{put(shell, RankEpilog, 2, closed), put(nemo, RankScheduler, 1, longer)},
			[]Outcome{Added, Merged}, longer, false},
		{"what knows less changes nothing that is shown",
			[]Write{put(nemo, RankScheduler, 1, longer), put(shell, RankEpilog, 2, closed)},
			[]Outcome{Added, Merged}, longer, false},
		{"what has ended is shown before what knows best",
			[]Write{put(nemo, RankScheduler, 5, open), put(shell, RankEpilog, 2, closed)},
			[]Outcome{Added, Merged}, closed, false},
		{"one run from two agents is one run",
			[]Write{put(nemo, RankScheduler, 1, closed), put(twin, RankScheduler, 2, closed)},
			[]Outcome{Added, Unchanged}, closed, false},
		{"a recollection under a mended mapping wins by its later observation",
			[]Write{put(nemo, RankScheduler, 1, closed), put(nemo, RankScheduler, 9, mended)},
			[]Outcome{Added, Merged}, mended, false},
		{"a lost buffer sends again what is known",
			[]Write{put(nemo, RankScheduler, 1, closed), put(nemo, RankScheduler, 9, closed), put(nemo, RankScheduler, 1, closed)},
			[]Outcome{Added, Unchanged, Unchanged}, closed, false},
		{"a withdrawn run is not shown",
			[]Write{put(nemo, RankScheduler, 1, open), withdraw(nemo, 2), withdraw(nemo, 2)},
			[]Outcome{Added, Withdrawn, Unchanged}, nil, false},
		{"a withdrawal that comes first holds",
			[]Write{withdraw(nemo, 2), put(nemo, RankScheduler, 1, closed)},
			[]Outcome{Withdrawn, Stale}, nil, false},
		{"a run may come back after a withdrawal",
			[]Write{put(nemo, RankScheduler, 1, open), withdraw(nemo, 2), put(nemo, RankScheduler, 3, closed)},
			[]Outcome{Added, Withdrawn, Added}, closed, false},
		{"a withdrawal shows what another origin says",
			[]Write{put(nemo, RankScheduler, 1, longer), put(shell, RankEpilog, 1, closed), withdraw(nemo, 2)},
			[]Outcome{Added, Merged, Withdrawn}, closed, false},
		{"one id from two clusters is a conflict, and both are kept",
			[]Write{put(nemo, RankScheduler, 1, closed), put(twin, RankScheduler, 2, other)},
			[]Outcome{Added, Conflicting}, other, true},
		{"starts a minute apart are no conflict",
			[]Write{put(nemo, RankScheduler, 2, closed), put(twin, RankScheduler, 1, run(Minute, Hour, 8))},
			[]Outcome{Added, Merged}, closed, false},
		{"a conflict ends when one takes it back",
			[]Write{put(nemo, RankScheduler, 1, closed), put(twin, RankScheduler, 2, other), withdraw(twin, 3)},
			[]Outcome{Added, Conflicting, Withdrawn}, closed, false},
		{"deletion beats what comes later",
			[]Write{put(nemo, RankScheduler, 1, closed), {ID: "run", Op: OpDelete}, put(nemo, RankScheduler, 9, closed), withdraw(nemo, 10), stop(11, Hour)},
			[]Outcome{Added, Deleted, Deleted, Deleted, Deleted}, nil, false},
		{"a source has no stops and pushes are not withdrawn",
			[]Write{put(Pushed, RankPush, 1, open), withdraw(Pushed, 2), {ID: "run", Op: OpStop, Origin: nemo, Version: Version{Observed: 2}, Stop: Hour}},
			[]Outcome{Added, Stale, Stale}, open, false},
	}
	for _, s := range stories {
		t.Run(s.name, s.tell)
	}
}

func TestEqualVersionsAreSettledByTheGreaterDigest(t *testing.T) {
	for cores := range int64(8) { // whichever digest is the greater
		a, b := run(0, Hour, cores), run(0, Hour, cores+1)
		greater, lesser := a, b
		if a.Digest().Compare(b.Digest()) < 0 {
			greater, lesser = b, a
		}
		for _, c := range []struct {
			name string
			o, p Origin
			want *Record
		}{{"of one source", nemo, nemo, greater}, {"of two sources", nemo, twin, greater}, {"of pushes, the lesser", Pushed, Pushed, lesser}} {
			e := merged([]Write{put(c.o, RankScheduler, 1, a), put(c.p, RankScheduler, 1, b)})
			if diff := cmp.Diff(c.want, e.Shown()); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		}
	}
}

func TestUndeleteLetsTheNextPullIn(t *testing.T) {
	e := merged([]Write{put(nemo, RankScheduler, 1, run(0, Hour, 8)), {ID: "run", Op: OpDelete}})
	if len(e.Holdings) > 0 {
		t.Error("an erased record is still held")
	}
	if e.Post(run(0, None, 1), 2) || e.PutStop(Hour, 3) {
		t.Error("a deleted id takes a write")
	}
	e.Undelete()
	if out := e.Merge(put(nemo, RankScheduler, 1, run(0, Hour, 8))); out != Added || e.Shown() == nil {
		t.Errorf("after undelete: %s", out)
	}
}

func TestAPostIsClosedByTheStopThatWaited(t *testing.T) {
	e := merged([]Write{stop(5, Hour)})
	if h := e.Holding(Pushed); !h.Waiting() || e.Shown() != nil || e.HasBody() {
		t.Error("the stop does not wait")
	}
	if !e.Post(run(0, None, 8), 9) {
		t.Fatal("refused")
	}
	if diff := cmp.Diff(run(0, Hour, 8), e.Shown()); diff != "" || e.Holding(Pushed).Waiting() {
		t.Error(diff)
	}
	if e.Post(run(0, None, 8), 10) {
		t.Error("a second POST is taken")
	}
}

func TestAPutWritesTheStopOfTheShownOrigin(t *testing.T) {
	e := merged([]Write{put(shell, RankEpilog, 4, run(0, None, 8)), put(nemo, RankScheduler, 7, run(0, None, 8))})
	if !e.PutStop(Hour, 5) {
		t.Fatal("refused")
	}
	h := e.Best()
	if h.Origin != nemo || h.Version != (Version{Ended: true, Observed: 8}) || h.Record.Stop != Hour || h.Rank != RankScheduler {
		t.Errorf("got %+v", h)
	}
	if !e.Holding(shell).Record.Open() {
		t.Error("another origin's record was stopped")
	}
	if out := e.Merge(put(nemo, RankScheduler, 9, run(0, 2*Hour, 8))); out != Merged || e.Shown().Stop != 2*Hour {
		t.Errorf("the scheduler's own close: %s, stop %s", out, e.Shown().Stop)
	}
}

func TestAPutWorksAgainAndAgain(t *testing.T) {
	e := &Entry{ID: "run"}
	e.Post(run(0, None, 8), 5)
	for _, at := range []Time{Hour, 2 * Hour, Minute} { // with a clock that stands still
		if !e.PutStop(at, 5) || e.Shown().Stop != at {
			t.Errorf("stop at %s, shown %s", at, e.Shown().Stop)
		}
	}
	if v := e.Best().Effective(); v != (Version{Ended: true, Observed: 8}) {
		t.Errorf("version %+v", v)
	}
}

func TestBothRegistersOfAPushSurviveAJoin(t *testing.T) {
	a, b := merged([]Write{put(Pushed, RankPush, 1, run(0, None, 8))}), merged([]Write{stop(9, Hour)})
	a.Join(b)
	if diff := cmp.Diff(run(0, Hour, 8), a.Shown()); diff != "" {
		t.Error(diff)
	}
}

func TestWritesThatNobodyCanSayAreNamed(t *testing.T) {
	good := put(nemo, RankScheduler, 5, run(0, Hour, 8))
	cases := map[string]struct {
		change func(*Write)
		want   string
	}{
		"good":                   {func(*Write) {}, ""},
		"a deletion":             {func(w *Write) { *w = Write{ID: "run", Op: OpDelete} }, ""},
		"no id":                  {func(w *Write) { w.ID = "" }, `record_id: is blank`},
		"no record":              {func(w *Write) { w.Record = nil }, `record "run": record: is missing`},
		"another id":             {func(w *Write) { w.ID = "b" }, `record "b": record_id: is "run" in the record`},
		"a bad record":           {func(w *Write) { w.Record = run(0, Hour, -8) }, `record "run": components[0].amount: -8 is below zero`},
		"no agent":               {func(w *Write) { w.Origin.Agent = "" }, `record "run": origin: /slurm/nemo has no agent or no type`},
		"no rank":                {func(w *Write) { w.Rank = 0 }, `record "run": rank: 0 is no rank`},
		"an unknown rank":        {func(w *Write) { w.Rank = 5 }, `record "run": rank: 5 is no rank`},
		"no observation":         {func(w *Write) { w.Version.Observed = 0 }, `record "run": observed: 0 is no time`},
		"the end of time":        {func(w *Write) { w.Version.Observed = 1<<63 - 1 }, `record "run": observed: 9223372036854775807 is no time`},
		"an unknown operation":   {func(w *Write) { w.Op = 7 }, `record "run": op: 7 is no operation`},
		"a stop by a source":     {func(w *Write) { w.Op, w.Stop = OpStop, Hour }, `record "run": op: head1/slurm/nemo cannot say this`},
		"a stop without time":    {func(w *Write) { *w = stop(5, None) }, `record "run": stop_time: is missing`},
		"a stop beyond all time": {func(w *Write) { *w = stop(5, MaxTime+1) }, `record "run": stop_time: is outside the years 0 to 9999`},
		"a push withdrawn":       {func(w *Write) { *w = withdraw(Pushed, 5) }, `record "run": op: pushed cannot say this`},
	}
	for name, c := range cases {
		w := good
		c.change(&w)
		got := ""
		if err := w.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
