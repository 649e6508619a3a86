package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// entries are those of a store, by id.
type entries map[string]*Entry

func (s entries) take(w Write) {
	w.ID = Locate(&w, func(id string) *Entry { return s[id] })
	if w.Record != nil {
		r := *w.Record
		r.ID, w.Record = w.ID, &r
	}
	if s[w.ID] == nil {
		s[w.ID] = &Entry{ID: w.ID}
	}
	s[w.ID].Merge(w)
}

// shown are the runs that are shown, by the amounts that tell them.
func (s entries) shown() map[int64]int {
	runs := map[int64]int{}
	for _, e := range s {
		if r := e.Shown(); r != nil {
			runs[r.Components[0].Amount]++
		}
	}
	return runs
}

// scheduler gives numbers to runs, again and again, by a clock that may go back.
type scheduler struct{ runs []Record }

func drawScheduler(t *rapid.T) *scheduler {
	s := &scheduler{}
	clock, seen := Time(0), map[[2]int64]bool{}
	for i := range rapid.IntRange(1, 12).Draw(t, "runs") {
		clock += Time(rapid.IntRange(-40, 100).Draw(t, "clock")) * Minute
		number := int64(rapid.IntRange(1, 3).Draw(t, "number"))
		if clock <= 0 || seen[[2]int64{number, int64(clock)}] {
			continue // slurmdbd has one row for a number and a time of submission
		}
		seen[[2]int64{number, int64(clock)}] = true
		start := clock + Time(rapid.IntRange(0, 5).Draw(t, "wait"))*Minute
		s.runs = append(s.runs, Record{ID: fmt.Sprint("nemo-", number), Submit: clock, Start: start,
			Stop: start + Time(rapid.IntRange(0, 50).Draw(t, "takes"))*Minute, Components: []Component{{Name: "Cores", Amount: int64(i + 1)}}})
	}
	return s
}

// say returns what a source says that knows of some of the runs: the first of a number
// by the number, later ones with their submission. So do sources that look again later,
// when the scheduler knows of others.
func (s *scheduler) say(t *rapid.T, origin Origin, rank Rank, observed int64) (said []Write) {
	first := map[string]Time{}
	var known []Record
	for _, r := range s.runs {
		if rapid.IntRange(0, 2).Draw(t, "forgotten") > 0 {
			known = append(known, r)
			if at, ok := first[r.ID]; !ok || r.Submit < at {
				first[r.ID] = r.Submit
			}
		}
	}
	for i := range known {
		r := known[i]
		if r.Submit != first[r.ID] {
			r.ID += fmt.Sprintf("-%d", r.Submit.Std().Unix())
		}
		said = append(said, Write{ID: r.ID, Op: OpPut, Origin: origin, Rank: rank, Version: Version{Ended: true, Observed: observed}, Record: &r, IDReused: true})
	}
	return said
}

func TestLocate_SchedulerForgetsAndRepeatsNumbers_EachRunIsOneRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, held, want := drawScheduler(t), entries{}, map[int64]int{}
		told := map[int64]Write{} // by the amount of its run: what the last look said
		for look := range rapid.IntRange(1, 6).Draw(t, "looks") {
			for _, w := range rapid.Permutation(s.say(t, Origin{Agent: "head", Type: "slurm", Label: "nemo"}, RankScheduler, int64(look+1))).Draw(t, "order") {
				held.take(w)
				want[w.Record.Components[0].Amount] = 1
				told[w.Record.Components[0].Amount] = w
			}
			if diff := cmp.Diff(want, held.shown()); diff != "" {
				t.Fatalf("after look %d: %s", look, diff)
			}
		}
		for _, amount := range slices.Sorted(maps.Keys(told)) { // a filter leaves one out
			w := told[amount]
			r := Record{ID: w.ID, Start: w.Record.Start, Stop: None, Submit: w.Record.Submit}
			held.take(Write{ID: w.ID, Op: OpWithdraw, Origin: w.Origin, Rank: w.Rank, Version: Version{Ended: true, Observed: 99}, Record: &r, IDReused: true})
			delete(want, amount)
			if diff := cmp.Diff(want, held.shown()); diff != "" {
				t.Fatalf("after the withdrawal of %d: %s", amount, diff)
			}
		}
	})
}

// AUDITOR does not know when a job was submitted. Its record of an earlier life of the
// cluster is another run than the scheduler's, whichever comes first; that of the same
// run is the same.
func TestLocate_ImportBesideASource_TellsTheLivesApart(t *testing.T) {
	run := func(submit, start, stop Time, amount int64) *Record {
		return &Record{ID: "nemo-7", Submit: submit, Start: start, Stop: stop, Components: []Component{{Name: "Cores", Amount: amount}}}
	}
	put := func(typ string, rank Rank, r *Record) Write {
		return Write{ID: r.ID, Op: OpPut, Origin: Origin{Agent: "head", Type: typ, Label: "nemo"}, Rank: rank, Version: Version{Ended: true, Observed: 5}, Record: r, IDReused: true}
	}
	old, now := run(None, 10*Minute, 20*Minute, 1), run(100*Minute, 101*Minute, 120*Minute, 2)
	same := run(None, 101*Minute, 120*Minute, 2)
	pushed := Write{ID: "nemo-7", Op: OpPut, Origin: Pushed, Rank: RankPush, Version: Version{Ended: true, Observed: 5}, Record: old}
	for _, c := range []struct {
		name   string
		writes []Write
		want   map[int64]int
	}{
		{"import first", []Write{put("auditor", RankImport, old), put("slurm", RankScheduler, now)}, map[int64]int{1: 1, 2: 1}},
		{"import last", []Write{put("slurm", RankScheduler, now), put("auditor", RankImport, old)}, map[int64]int{1: 1, 2: 1}},
		{"import again", []Write{put("slurm", RankScheduler, now), put("auditor", RankImport, old), put("auditor", RankImport, old)}, map[int64]int{1: 1, 2: 1}},
		{"a client of long ago", []Write{pushed, put("slurm", RankScheduler, now)}, map[int64]int{1: 1, 2: 1}},
		{"one run", []Write{put("auditor", RankImport, same), put("slurm", RankScheduler, now)}, map[int64]int{2: 1}},
		{"one run, the other way round", []Write{put("slurm", RankScheduler, now), put("auditor", RankImport, same)}, map[int64]int{2: 1}},
	} {
		held := entries{}
		for _, w := range c.writes {
			held.take(w)
		}
		if diff := cmp.Diff(c.want, held.shown()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// An epilog of which slurmdbd has no run, and AUDITOR, know no submit times: runs of one number
// that follow each other are told apart by their times, whoever says which of them first.
func TestLocate_NoSubmitTimes_EachRunIsOneRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var said []Write
		want := map[int64]int{}
		clock, amount := Time(0), int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			amount++
			start := clock + Time(rapid.IntRange(0, 500).Draw(t, "pause"))*Minute
			clock = start + Time(rapid.IntRange(1, 500).Draw(t, "takes"))*Minute
			r := Record{ID: "nemo-7", Start: start, Stop: clock, Submit: None, Components: []Component{{Name: "Cores", Amount: amount}}}
			for _, typ := range rapid.SampledFrom([][]string{{"slurm-epilog"}, {"auditor"}, {"slurm-epilog", "auditor"}}).Draw(t, "by") {
				rank := map[string]Rank{"slurm-epilog": RankEpilog, "auditor": RankImport}[typ]
				said = append(said, Write{ID: r.ID, Op: OpPut, Origin: Origin{Agent: "head", Type: typ, Label: "nemo"}, Rank: rank, Version: Version{Ended: true, Observed: 5}, Record: &r, IDReused: true})
			}
			want[amount] = 1
		}
		held := entries{}
		for range 2 {
			for _, w := range rapid.Permutation(said).Draw(t, "order") {
				held.take(w)
			}
			if diff := cmp.Diff(want, held.shown()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// An epilog is believed before slurmdbd has the run, without its submit time; what slurmdbd says
// of it later, under whatever id, is of the same run, and no run takes the place of another.
func TestLocate_SubmitTimeComesLater_EachRunIsOneRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type run struct {
			Record

			epilog, recorded bool
		}
		var runs []run
		want, clock := map[int64]int{}, Hour
		for i := range rapid.IntRange(1, 5).Draw(t, "runs") {
			submit := clock + Time(rapid.IntRange(1, 300).Draw(t, "pause"))*Minute
			start := submit + Time(rapid.IntRange(0, 300).Draw(t, "wait"))*Minute
			clock = start + Time(rapid.IntRange(2, 300).Draw(t, "takes"))*Minute
			r := run{Record: Record{ID: "nemo-7", Submit: submit, Start: start, Stop: clock, Components: []Component{{Name: "Cores", Amount: int64(i + 1)}}}}
			r.epilog = rapid.Bool().Draw(t, "epilog")
			r.recorded = !r.epilog || rapid.Bool().Draw(t, "recorded")
			runs = append(runs, r)
		}
		held := entries{}
		say := func(r *run, submit bool, suffix bool) {
			said := r.Record
			if !submit {
				said.Submit = None
			}
			if suffix {
				said.ID = string(appendSecond([]byte(said.ID), r.Submit))
			}
			held.take(Write{ID: said.ID, Op: OpPut, Origin: Origin{Agent: "head", Type: "slurm", Label: "nemo"}, Rank: RankScheduler, Version: Version{Ended: true, Observed: 5}, Record: &said, IDReused: true})
			want[r.Components[0].Amount] = 1
			if diff := cmp.Diff(want, held.shown()); diff != "" {
				t.Fatalf("after %s, submitted %v: %s", said.ID, said.Submit, diff)
			}
		}
		var late []*run
		for i := range runs {
			r := &runs[i]
			if r.epilog {
				say(r, false, false)
			}
			if r.recorded {
				late = append(late, r)
			}
			for len(late) > 0 && rapid.Bool().Draw(t, "slurmdbd catches up") {
				say(late[0], true, rapid.Bool().Draw(t, "suffix"))
				late = late[1:]
			}
		}
		for range 2 {
			for _, i := range rapid.Permutation(indices(len(runs))).Draw(t, "order") {
				if r := &runs[i]; r.recorded {
					say(r, true, rapid.Bool().Draw(t, "suffix"))
				}
			}
		}
	})
}

func indices(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

func TestLocate_DeletedRun_KeepsNoLaterRunOfItsNumberOut(t *testing.T) {
	held := entries{}
	at := func(submit Time, amount int64) Write {
		r := &Record{ID: "nemo-7", Submit: submit, Start: submit, Stop: submit + Minute, Components: []Component{{Name: "Cores", Amount: amount}}}
		return Write{ID: r.ID, Op: OpPut, Origin: Origin{Agent: "head", Type: "slurm", Label: "nemo"}, Rank: RankScheduler, Version: Version{Ended: true, Observed: 5}, Record: r, IDReused: true}
	}
	held.take(at(10*Minute, 1))
	held["nemo-7"].Merge(Write{ID: "nemo-7", Op: OpDelete})
	held["nemo-7"].DeletedAt = 50 * Minute
	held.take(at(10*Minute, 1))
	held.take(at(90*Minute, 2))
	if diff := cmp.Diff(map[int64]int{2: 1}, held.shown()); diff != "" {
		t.Error(diff)
	}
}

// An id that a suffix would make too long is a hash, and the same each time.
func TestLocate_LongID_StaysValid(t *testing.T) {
	long, held := strings.Repeat("x", 256), entries{}
	for _, submit := range []Time{Minute, Hour, Minute, Hour} {
		held.take(Write{ID: long, Op: OpPut, Origin: Origin{Agent: "head", Type: "slurm", Label: "nemo"}, Rank: RankScheduler, Version: Version{Ended: true, Observed: 5}, IDReused: true,
			Record: &Record{ID: long, Submit: submit, Start: submit, Stop: submit, Components: []Component{{Name: "Cores", Amount: int64(submit)}}}})
	}
	if want := map[int64]int{int64(Minute): 1, int64(Hour): 1}; !cmp.Equal(want, held.shown()) {
		t.Error(held.shown())
	}
	for id := range held {
		if err := ValidateID(id); err != nil {
			t.Error(err)
		}
	}
}

// What is told by an id alone, and what clients push, stays under its id.
func TestLocate_OtherWrites_KeepTheirIDs(t *testing.T) {
	held := func(string) *Entry {
		return &Entry{Holdings: []Holding{{Stop: None, Record: &Record{Submit: 1, Start: 1, Stop: 2}}}}
	}
	r := &Record{ID: "x", Submit: 9, Start: 9, Stop: 9}
	for _, w := range []Write{
		{ID: "x", Op: OpPut, Record: r},
		{ID: "x", Op: OpStop, Stop: 9, IDReused: true},
		{ID: "x", Op: OpWithdraw, IDReused: true},
	} {
		if id := Locate(&w, held); id != "x" {
			t.Errorf("%+v: %s", w, id)
		}
	}
}
