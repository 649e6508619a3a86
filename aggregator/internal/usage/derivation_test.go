package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// derivedRun is one with cores for some time.
type derivedRun struct {
	group, user, host string // "" for none
	start, stop       record.Time
	cores, joules     int64
	part              bool // of a run
}

// derivedWorld answers questions about runs in the obvious slow way, as package sums does.
type derivedWorld []derivedRun

func (r *derivedRun) get(key string) (string, bool) {
	v := map[string]string{"group": r.group, "user": r.user, "host": r.host}[key]
	return v, v != ""
}

func (r *derivedRun) tuple(keys []string) (values []string, lacks []bool) {
	for _, k := range keys {
		v, has := r.get(k)
		values, lacks = append(values, v), append(lacks, !has)
	}
	return values, lacks
}

// used is what a run used of a component from from to to.
func (r *derivedRun) used(kind record.Kind, from, to record.Time) sums.Sum {
	from, to = max(from, r.start), min(to, r.stop)
	if from >= to {
		return sums.Sum{}
	}
	if kind == record.Rate {
		return sums.SumOf(r.cores * int64(to-from))
	}
	part := func(t record.Time) int64 { return r.joules * 1e6 * int64(t-r.start) / int64(r.stop-r.start) }
	return sums.SumOf(part(to) - part(from))
}

func (w derivedWorld) ask(_ context.Context, q sums.Query) (*sums.Answer, error) {
	buckets := len(q.Edges) - 1
	a := &sums.Answer{Edges: q.Edges, By: q.By, Way: "slow"}
	cores, joules := sums.Component{Name: "Cores", Kind: record.Rate}, sums.Component{Name: "Energy", Kind: record.Total}
	for i := range w {
		r := &w[i]
		values, lacks := r.tuple(q.By)
		if q.Keep != nil && !q.Keep(values, lacks) {
			continue
		}
		g := slices.IndexFunc(a.Groups, func(o sums.Group) bool { return slices.Equal(o.Values, values) })
		if g < 0 {
			g = len(a.Groups)
			a.Groups = append(a.Groups, sums.Group{Values: values, Lacks: lacks})
			a.EachCount(func(list *[]uint64) { *list = grow(*list, buckets) })
			a.Waited = grow(a.Waited, buckets)
			cores.Used, joules.Used = grow(cores.Used, buckets), grow(joules.Used, buckets)
		}
		for b := range buckets {
			from, to, at := q.Edges[b], q.Edges[b+1], g*buckets+b
			cores.Used[at] = cores.Used[at].Add(r.used(record.Rate, from, to))
			joules.Used[at] = joules.Used[at].Add(r.used(record.Total, from, to))
			started := r.start >= from && r.start < to
			jobs := uint64(jobCount(r.part))
			if started {
				a.Begun[at]++
				a.Started[at] += jobs
			}
			if started || r.start < from && r.stop > from {
				a.Records[at]++
				a.Jobs[at] += jobs
			}
		}
	}
	a.Components = []sums.Component{cores, joules}
	return a, nil
}

func grow[T any](list []T, n int) []T { return append(list, make([]T, n)...) }

// projects maps groups by date: g0 is in p0 and from 500 on in p1, g1 is in p1, user
// u0 is in p2 from 300 to 700.
func projects() Key {
	return Key{Name: "project", From: []string{"user", "group"}, Cuts: []record.Time{300, 500, 700}, Of: func(v []string, _ []bool, at record.Time) (string, bool) {
		switch {
		case v[0] == "u0" && at >= 300 && at < 700:
			return "p2", true
		case v[1] == "g0" && at < 500:
			return "p0", true
		case v[1] == "g0", v[1] == "g1":
			return "p1", true
		}
		return "", false
	}}
}

func classes() Key {
	return Key{Name: "class", From: []string{"host"}, Of: func(v []string, lacks []bool, _ record.Time) (string, bool) {
		return "c" + v[0], !lacks[0] && v[0] != "h2"
	}}
}

// cost has a price by class that changes at 400, and by the joule; class ch1 has none
// before.
func cost() Weight {
	return Weight{Name: "cost", Unit: "EUR", Components: []string{"Cores", "Energy"}, From: []string{"class", "user"}, Cuts: []record.Time{400},
		Of: func(c string, _ record.Kind, v []string, lacks []bool, at record.Time) (int64, bool) {
			switch {
			case c == "Energy":
				return 7, true
			case v[0] == "ch1" && at < 400, lacks[0]:
				return 0, false
			case v[1] == "u1":
				return 500, true
			}
			return 1000 + int64(min(at/400, 1)), true
		}}
}

func testDerivation() *Derivation {
	return &Derivation{Keys: []Key{projects(), classes()}, Weights: []Weight{cost()}}
}

func draw(t *rapid.T) derivedWorld {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) derivedRun {
		start := rapid.Int64Range(0, 900).Draw(t, "start")
		return derivedRun{
			group: rapid.SampledFrom([]string{"", "g0", "g1", "g2"}).Draw(t, "group"), user: rapid.SampledFrom([]string{"", "u0", "u1", "u2"}).Draw(t, "user"),
			host: rapid.SampledFrom([]string{"", "h0", "h1", "h2"}).Draw(t, "host"), start: record.Time(start), stop: record.Time(start + rapid.Int64Range(1, 600).Draw(t, "time")),
			cores: rapid.Int64Range(0, 9).Draw(t, "cores"), joules: rapid.Int64Range(0, 99).Draw(t, "joules"),
			part: rapid.IntRange(0, 3).Draw(t, "part") == 0,
		}
	}), 0, 30).Draw(t, "world")
}

// cell is one figure of the slow way: by project and bucket.
type cell struct {
	project string
	bucket  int
}

// slow adds up each run, each instant that can matter by itself.
func slow(w derivedWorld, q sums.Query) (cores, worth map[cell]sums.Sum, records, jobs, people map[cell]int) {
	cores, worth, records, jobs, people = map[cell]sums.Sum{}, map[cell]sums.Sum{}, map[cell]int{}, map[cell]int{}, map[cell]int{}
	met := map[string]bool{}
	key, class, price := projects(), classes(), cost()
	for n := range w {
		r := &w[n]
		been := map[cell]bool{}
		for b := range len(q.Edges) - 1 {
			for at := q.Edges[b]; at < q.Edges[b+1]; at += 50 { // all edges and cuts are multiples
				project, has := key.Of([]string{r.user, r.group}, nil, at)
				if !has {
					project = "-"
				}
				c := cell{project, b}
				if len(q.Having) > 0 && !slices.Contains(q.Having[0].Values, project) {
					continue
				}
				if r.start < at+50 && (r.start >= at || r.stop > at) {
					if !been[c] {
						records[c]++
						jobs[c] += jobCount(r.part)
					}
					if name := fmt.Sprint(c, r.user); r.user != "" && !met[name] {
						met[name] = true
						people[c]++
					}
					been[c] = true
				}
				of, known := class.Of([]string{r.host}, []bool{r.host == ""}, at)
				if !known {
					of = ""
				}
				for kind, name := range map[record.Kind]string{record.Rate: "Cores", record.Total: "Energy"} {
					used := r.used(kind, at, at+50)
					if kind == record.Rate {
						cores[c] = cores[c].Add(used)
					} else {
						used, _ = used.Times(3600)
					}
					if p, ok := price.Of(name, kind, []string{of, r.user}, []bool{!known, r.user == ""}, at); ok {
						value, _ := used.Times(p)
						worth[c] = worth[c].Add(value)
					}
				}
			}
		}
	}
	zero := func(_ cell, s sums.Sum) bool { return s.IsZero() }
	maps.DeleteFunc(cores, zero)
	maps.DeleteFunc(worth, zero)
	maps.DeleteFunc(jobs, func(_ cell, n int) bool { return n == 0 })
	return cores, worth, records, jobs, people
}

func TestDerivedKeysAndWorthAreThoseOfTheObviousSlowSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		q := sums.Query{Weights: []string{"cost"}, By: []string{"project"}, Edges: []record.Time{100, 350, 600, 1200}, Counts: true, People: "user", Components: []string{"Cores"}}
		if rapid.Bool().Draw(t, "having") {
			q.Having = []sums.Filter{{Key: "project", Values: []string{"p1"}}}
		}
		a, err := testDerivation().Answer(t.Context(), w.ask, q)
		if err != nil {
			t.Fatal(err)
		}
		cores, worth, records, jobs, people := map[cell]sums.Sum{}, map[cell]sums.Sum{}, map[cell]int{}, map[cell]int{}, map[cell]int{}
		for g, group := range a.Groups {
			if g > 0 && sums.CompareValues(a.Groups[g-1].Values, group.Values, a.Groups[g-1].Lacks, group.Lacks) >= 0 {
				t.Fatalf("groups are out of order: %v", a.Groups)
			}
			name := group.Values[0]
			if group.Lacks[0] {
				name = "-"
			}
			for b := range 3 {
				c, at := cell{name, b}, g*3+b
				if len(a.Components) > 0 && !a.Components[0].Used[at].IsZero() {
					cores[c] = a.Components[0].Used[at]
				}
				if s := a.Worths[0].Sum[at]; !s.IsZero() {
					worth[c] = s
				}
				if n := int(a.Records[at]); n > 0 {
					records[c] = n
				}
				if n := int(a.Jobs[at]); n > 0 {
					jobs[c] = n
				}
				if n := int(a.People[at]); n > 0 {
					people[c] = n
				}
			}
		}
		wantCores, wantWorth, wantRecords, wantJobs, wantPeople := slow(w, q)
		if !maps.Equal(cores, wantCores) {
			t.Errorf("cores %v, want %v", cores, wantCores)
		}
		if !maps.Equal(worth, wantWorth) {
			t.Errorf("worth %v, want %v", worth, wantWorth)
		}
		if !maps.Equal(records, wantRecords) {
			t.Errorf("records %v, want %v", records, wantRecords)
		}
		if !maps.Equal(jobs, wantJobs) {
			t.Errorf("jobs %v, want %v", jobs, wantJobs)
		}
		if !maps.Equal(people, wantPeople) {
			t.Errorf("people %v, want %v", people, wantPeople)
		}
		if len(a.Components) != 1 || a.Components[0].Name != "Cores" {
			t.Errorf("components that nobody asked for: %v", a.Components)
		}
	})
}

func TestRecordsAndJobs_OfGroupsThatChange_CountOnceInAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		q := sums.Query{By: []string{"project"}, Edges: []record.Time{100, 350, 600, 1200}, Counts: true}
		if rapid.Bool().Draw(t, "one bucket") {
			q.Edges = []record.Time{100, 1200}
		}
		by, err := testDerivation().Answer(t.Context(), w.ask, q)
		if err != nil {
			t.Fatal(err)
		}
		runs, jobs, of, jobsOf := uint64(0), uint64(0), map[string]uint64{}, map[string]uint64{}
		for i := range w {
			r := &w[i]
			if r.start >= 1200 || r.stop <= 100 && r.start < 100 {
				continue
			}
			runs++
			jobs += uint64(jobCount(r.part))
			been := map[string]int{} // how often it came into a project
			last := ""
			for at := record.Time(100); at < 1200; at += 50 {
				if r.start >= at+50 || r.start < at && r.stop <= at {
					continue
				}
				project, has := projects().Of([]string{r.user, r.group}, nil, at)
				if !has {
					project = "-"
				}
				if project != last {
					been[project]++
				}
				last = project
			}
			for project, times := range been {
				of[project] += uint64(times)
				jobsOf[project] += uint64(times * jobCount(r.part))
			}
		}
		if by.AllRecords.All != runs || by.AllJobs.All != jobs {
			t.Errorf("all groups have %d records and %d jobs, want %d and %d", by.AllRecords.All, by.AllJobs.All, runs, jobs)
		}
		for g, group := range by.Groups {
			name := group.Values[0]
			if group.Lacks[0] {
				name = "-"
			}
			if records, jobs := by.AllRecords.Groups[g], by.AllJobs.Groups[g]; records != of[name] || jobs != jobsOf[name] {
				t.Errorf("%s has %d records and %d jobs in all, want %d and %d", name, records, jobs, of[name], jobsOf[name])
			}
		}
	})
}

func TestWhatHasNoPriceIsCountedApart(t *testing.T) {
	w := derivedWorld{{host: "h1", start: 0, stop: 800, cores: 2}, {host: "h0", start: 0, stop: 800, cores: 1}}
	a, err := testDerivation().Answer(t.Context(), w.ask, sums.Query{Weights: []string{"cost"}, Edges: []record.Time{0, 800}})
	if err != nil {
		t.Fatal(err)
	}
	got := a.Worths[0]
	if len(got.Lacking) != 1 || got.Lacking[0].Component != "Cores" || got.Lacking[0].Used[0] != sums.SumOf(2*400) {
		t.Errorf("lacking %+v", got.Lacking)
	}
	if got.Sum[0] != sums.SumOf(400*1000+400*1001+2*400*1001) || got.Unit != "EUR" {
		t.Errorf("worth %v", got)
	}
}

func TestAQuestionWithoutDerivedKeysIsAskedAsItIs(t *testing.T) {
	asked := 0
	q := sums.Query{By: []string{"group"}, Edges: []record.Time{0, 1}}
	_, err := testDerivation().Answer(t.Context(), func(_ context.Context, got sums.Query) (*sums.Answer, error) {
		asked++
		if !slices.Equal(got.By, q.By) || !slices.Equal(got.Edges, q.Edges) {
			t.Errorf("%+v", got)
		}
		return &sums.Answer{}, nil
	}, q)
	if err != nil || asked != 1 {
		t.Error(asked, err)
	}
}

func TestUnknownNamesAndTooManyCellsAreRefused(t *testing.T) {
	w := derivedWorld{{group: "g0", stop: 10}, {group: "g1", stop: 10}}
	for want, q := range map[string]sums.Query{
		`unknown weight "x"`: {Edges: []record.Time{0, 10}, Weights: []string{"x"}},
		"too many":           {Edges: []record.Time{0, 10}, By: []string{"project"}, MaxCells: 1},
	} {
		if _, err := testDerivation().Answer(t.Context(), w.ask, q); !errors.Is(err, sums.ErrQuery) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestATotalHasItsPriceByTheUnit(t *testing.T) {
	w := derivedWorld{{start: 0, stop: 1000, joules: 3_000_000}}
	a, err := testDerivation().Answer(t.Context(), w.ask, sums.Query{Weights: []string{"cost"}, Edges: []record.Time{0, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if got := sums.Millionths(a.Worths[0].Sum[0]); got != sums.SumOf(21_000) { // 3 000 000 × 7 billionths = 0.021
		t.Error(got)
	}
}

func TestATotalInSecondsHasItsPriceByTheHour(t *testing.T) {
	b := &Derivation{Weights: []Weight{{
		Name: "su", Unit: "SU", Components: []string{"Energy"}, Seconds: []string{"Energy"},
		Of: func(string, record.Kind, []string, []bool, record.Time) (int64, bool) { return 1_900_000_000, true },
	}}}
	a, err := b.Answer(t.Context(), derivedWorld{{start: 0, stop: 1000, joules: 7}}.ask, sums.Query{Weights: []string{"su"}, Edges: []record.Time{0, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := sums.SumOf(7 * 1_000_000).Times(1_900_000_000); a.Worths[0].Sum[0] != want { // 7 s × 1.9 ÷ 3600
		t.Error(a.Worths[0].Sum[0], want)
	}
}

// jobCount is how many jobs a record is.
func jobCount(isPart bool) int {
	if isPart {
		return 0
	}
	return 1
}
