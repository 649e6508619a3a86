package translate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// lacks is a mapper of which only the components matter that a run lacks.
type lacks struct {
	Mapper

	names  []string
	unread []mapping.Unread
}

func (l lacks) Lacking(*bursarv1.Job, *record.Record) []string        { return l.names }
func (l lacks) Unread(*bursarv1.Job, *record.Record) []mapping.Unread { return l.unread }

// TestFindings_Restarts_CountEachRunOnce sends runs in any order, again and again, with
// restarts between, and compares with sets.
func TestFindings_Restarts_CountEachRunOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const entry = `attribute-unreadable component "GPUs:a100"`
		f := &Findings{}
		odd, given := map[string]map[string]bool{"component-missing Cores": {}, "column-unread x": {}, entry: {}}, 0
		now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			run := fmt.Sprint(rapid.IntRange(1, 20).Draw(t, "run"))
			job, m := &bursarv1.Job{Run: run}, lacks{}
			r := record.Record{ID: "n-" + run, Start: record.FromStd(now), Stop: record.FromStd(now.Add(time.Hour))}
			if rapid.Bool().Draw(t, "unread") {
				job.Findings = []*bursarv1.Finding{{Kind: "column-unread", About: "x"}}
			}
			if rapid.Bool().Draw(t, "entry") {
				m.unread = []mapping.Unread{{Component: "GPUs:a100", Problem: "odd"}}
			}
			if rapid.IntRange(0, 3).Draw(t, "lacks") == 0 {
				m.names = []string{"Cores"}
			} else {
				r.Components, given = []record.Component{{Name: "Cores"}}, given+1
			}
			f.Note(m, job, &r, now)
			for key, is := range map[string]bool{"component-missing Cores": m.names != nil, "column-unread x": job.Findings != nil, entry: m.unread != nil} {
				if delete(odd[key], run); is {
					odd[key][run] = true
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
				text := f.Encode()
				if text == nil {
					continue // nothing has changed
				}
				var err error
				if f, err = DecodeFindings(text); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := map[string]int64{}
		for _, x := range f.List() {
			got[x.Kind+" "+x.About] = x.Count
		}
		want := map[string]int64{}
		for _, key := range []string{"column-unread x", entry} {
			if n := len(odd[key]); n > 0 {
				want[key] = int64(n)
			}
		}
		missing := len(odd["component-missing Cores"])
		if shown := got["component-missing Cores"]; shown != 0 && shown != int64(missing) || given == 0 && shown != 0 {
			t.Errorf("%d lack cores, %d of them shown; %d have them", missing, shown, given)
		}
		delete(got, "component-missing Cores")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFindings_AreBoundedAndSaidInALine(t *testing.T) {
	f := &Findings{}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	long := string(make([]byte, 5000))
	for i := range 2000 {
		r := record.Record{ID: fmt.Sprint("n-", i), Start: record.FromStd(at), Stop: record.None}
		job := &bursarv1.Job{Run: fmt.Sprint(i), Findings: []*bursarv1.Finding{{Kind: "k", About: "one", What: "odd"}, {Kind: "k", About: fmt.Sprint(i), What: long, Do: long}}}
		f.Note(lacks{}, job, &r, at)
	}
	list := f.List()
	if len(list) != MaxFindings || list[0].Count != 2000 || len(f.Encode()) > 256<<10 {
		t.Errorf("%d findings, %+v, %d bytes", len(list), list[0], len(f.Encode()))
	}
	others := slices.IndexFunc(list, func(x Finding) bool { return x.Kind == OtherFindings })
	if others < 0 || list[others].Count != 2000-(MaxFindings-2) || list[others].Example != "n-1999" {
		t.Errorf("what is not listed by itself: %d, %+v", others, list)
	}
	if got := list[0].String(); got != "2000 records: odd, from 2026-03-01 12:00 to 2026-03-01 12:00 UTC, for example n-1999" {
		t.Error(got)
	}
}

func TestFindings_AComponentThatMostRecordsLackIsNotMissing(t *testing.T) {
	f := &Findings{}
	note := func(run string, names ...string) {
		r := record.Record{ID: run, Start: 1, Stop: 2}
		if names == nil {
			r.Components = []record.Component{{Name: "GPUs"}}
		}
		f.Note(lacks{names: names}, &bursarv1.Job{Run: run}, &r, time.Unix(1, 0))
	}
	note("1", "GPUs")
	note("2")
	if len(f.List()) != 0 {
		t.Errorf("%+v", f.List())
	}
	note("3")
	if list := f.List(); len(list) != 1 || list[0].Kind != ComponentMissing || list[0].About != "GPUs" || list[0].Example != "1" {
		t.Errorf("%+v", list)
	}
	g, err := DecodeFindings(f.Encode())
	if err != nil || len(g.List()) != 1 {
		t.Errorf("%+v %v after a restart", g.List(), err)
	}
	f.Resolve(&bursarv1.Job{Run: "1"})
	if len(f.List()) != 0 {
		t.Errorf("%+v", f.List())
	}
}

func TestFindings_OfMoreRunsThanAreKept_EndWhenAllAreInOrder(t *testing.T) {
	f, now := &Findings{}, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	note := func(run int, findings ...*bursarv1.Finding) {
		r := record.Record{ID: fmt.Sprint("n-", run), Start: record.FromStd(now), Stop: record.FromStd(now.Add(time.Hour))}
		f.Note(lacks{}, &bursarv1.Job{Run: fmt.Sprint(run), Findings: findings}, &r, now)
	}
	for run := range 3 * maxFindingRuns {
		note(run, &bursarv1.Finding{Kind: "column-unread", About: "x"})
	}
	if list := f.List(); len(list) != 1 || list[0].Count != 3*maxFindingRuns {
		t.Fatal(list)
	}
	for run := range 3 * maxFindingRuns {
		note(run)
	}
	if list := f.List(); len(list) != 0 {
		t.Error(list)
	}
}
