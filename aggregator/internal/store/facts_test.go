package store

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// oddities are changes of a plain row, most of which make it invalid.
var oddities = map[string]func(r *columns.Row){
	"none":        func(*columns.Row) {},
	"no meta":     func(r *columns.Row) { r.Record.Meta = nil },
	"empty meta":  func(r *columns.Row) { r.Record.Meta = record.Meta{} },
	"no values":   func(r *columns.Row) { r.Record.Meta = record.Meta{{Key: "a"}, {Key: "b", Values: []string{"x"}}} },
	"two values":  func(r *columns.Row) { r.Record.Meta = record.Meta{{Key: "a", Values: []string{"x", "y"}}} },
	"other order": func(r *columns.Row) { r.Record.Meta = record.Meta{{Key: "a", Values: []string{"y", "x"}}} },
	"not sorted":  func(r *columns.Row) { r.Record.Meta = record.Meta{{Key: "b", Values: []string{"x"}}, {Key: "a"}} },
	"key twice": func(r *columns.Row) {
		r.Record.Meta = record.Meta{{Key: "a", Values: []string{"x"}}, {Key: "a", Values: []string{"y"}}}
	},
	"key twice bare": func(r *columns.Row) { r.Record.Meta = record.Meta{{Key: "a"}, {Key: "a", Values: []string{"y"}}} },
	"blank key":      func(r *columns.Row) { r.Record.Meta = record.Meta{{Key: " ", Values: []string{"x"}}} },
	"blank value":    func(r *columns.Row) { r.Record.Meta = record.Meta{{Key: "a", Values: []string{""}}} },
	"large meta": func(r *columns.Row) {
		values := slices.Repeat([]string{strings.Repeat("v", 200)}, 400)
		r.Record.Meta = record.Meta{{Key: "a", Values: values}}
	},
	"no components": func(r *columns.Row) { r.Record.Components = nil },
	"negative":      func(r *columns.Row) { r.Record.Components[1].Amount = -1 },
	"odd kind":      func(r *columns.Row) { r.Record.Components[0].Kind = 77 },
	"no name":       func(r *columns.Row) { r.Record.Components[0].Name = "" },
	"score NaN": func(r *columns.Row) {
		r.Record.Components[0].Scores = []record.Score{{Name: "s", Value: math.NaN()}}
	},
	"many components": func(r *columns.Row) {
		r.Record.Components = slices.Repeat([]record.Component{{Name: "c", Amount: 7}}, 40)
	},
	"wrong beyond the columns": func(r *columns.Row) {
		r.Record.Components = slices.Repeat([]record.Component{{Name: "c", Amount: 7}}, 40)
		r.Record.Components[39].Amount = -1
	},
	"other agent": func(r *columns.Row) { r.Origin.Agent = "elsewhere" },
	"pushed":      func(r *columns.Row) { r.Origin = record.Pushed },
	"no rank":     func(r *columns.Row) { r.Rank = 99 },
	"no time":     func(r *columns.Row) { r.Version.Observed = 0 },
	"tombstone":   func(r *columns.Row) { r.Tombstone = true },
	"register":    func(r *columns.Row) { r.Stop = t0 },
	"no start":    func(r *columns.Row) { r.Record.Start = record.None },
	"far future":  func(r *columns.Row) { r.Record.Stop = record.MaxTime + 1 },
	"far past":    func(r *columns.Row) { r.Record.Submit = record.MinTime - 1 },
	"open":        func(r *columns.Row) { r.Record.Stop = record.None },
	"blank state": func(r *columns.Row) { r.Record.State = " " },
	"an end": func(r *columns.Row) {
		r.Record.State, r.Record.Exit = "FAILED", record.Exit{Known: true, Code: 1, Signal: 9}
	},
	"no id":         func(r *columns.Row) { r.Record.ID = "" },
	"a long id":     func(r *columns.Row) { r.Record.ID = strings.Repeat("i", 3*record.MaxID) },
	"id is no text": func(r *columns.Row) { r.Record.ID = "\xff" },
}

// oddRows has a row for every two oddities.
func oddRows() (rows []columns.Row, odd [][2]string) {
	for _, a := range sortedKeys(oddities) {
		for _, b := range sortedKeys(oddities) {
			r := columns.Row{Record: sample("a", len(rows)+1), Origin: slurm, Rank: record.RankScheduler,
				Version: record.Version{Ended: true, Observed: 3}, Stop: record.None}
			change(&r, a)
			change(&r, b)
			rows, odd = append(rows, r), append(odd, [2]string{a, b})
		}
	}
	return rows, odd
}

func TestWhatTheEntriesSayOfARowIsTrue(t *testing.T) {
	rows, odd := oddRows()
	b := columns.NewBuilder()
	for i := range rows {
		b.Add(&rows[i])
	}
	batch, err := columns.ParseBatch(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	f, check, hasher, plain := newFacts(batch, slurm.Agent, &rowHasher{}), newRowChecker(slurm.Agent), rowHasher{}, map[string]bool{}
	for i := range rows {
		var own columns.Row
		batch.ReadOwn(&own, i)
		whole := batch.Row(i)
		if f.isCertainlyValid(&own, i) {
			if err := check.checkRow(&whole); err != nil {
				t.Errorf("row %v is plain, but %v", odd[i], err)
			}
			plain[odd[i][0]] = true
		}
		own.Seq, own.Received, own.Changed = 5, t0, t0
		whole.Seq, whole.Received, whole.Changed = 5, t0, t0
		if got, want := f.rowHash(&own, i), hasher.hashRow(&whole); got != want {
			t.Errorf("row %v: hash %s, want %s", odd[i], got, want)
		}
	}
	for _, name := range []string{"none", "no meta", "no values", "two values", "open", "an end", "pushed"} {
		if !plain[name] {
			t.Errorf("%s: is never plain", name)
		}
	}
}

// change applies an oddity as far as the row has what it changes.
func change(r *columns.Row, name string) {
	if len(r.Record.Components) < 2 {
		r.Record.Components = []record.Component{{Name: "Cores", Amount: 3}, {Name: "Memory", Amount: 4}}
	}
	oddities[name](r)
}

func TestRecordsThatAreAlikeAreTheSame(t *testing.T) {
	names := sortedKeys(oddities)
	one := func(name string) *record.Record {
		r := columns.Row{Record: sample("a", 1), Stop: record.None}
		change(&r, name)
		return &r.Record
	}
	for _, a := range names {
		for _, b := range names {
			if x, y := one(a), one(b); sameRecord(x, y) != record.Same(x, y) {
				t.Errorf("%s and %s: same is %v", a, b, sameRecord(x, y))
			}
		}
	}
}
