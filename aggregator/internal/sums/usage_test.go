package sums

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// TestTheIndexSaysWhatTheObviousSlowSumSays writes, changes and deletes, follows now
// and then, and asks.
func TestTheIndexSaysWhatTheObviousSlowSumSays(t *testing.T) {
	t.Parallel()
	ways := map[string]int{}
	for seed := range uint64(racetest.Few(4)) {
		b := newBox(t, seed)
		if seed == 1 || seed == 2 { // no meta has a key that says how the run ended, or is of a part of one
			b.parts = nil
		}
		zone, err := time.LoadLocation([]string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"}[seed%4]) // two of them change their clocks in these days
		if err != nil {
			t.Fatal(err)
		}
		x := newIndex(t, Options{Views: b, Life: life, Zone: zone}, []string{"group", "site", "user"})
		for range 30 {
			b.step()
			if b.rng.IntN(3) == 0 {
				b.follow(x)
			}
			for range 3 {
				ways[b.ask(x)]++
			}
		}
	}
	for _, way := range []string{"index", "index and scan", "scan"} {
		if ways[way] == 0 {
			t.Errorf("no question was answered by %s: %v", way, ways)
		}
	}
}

// The table of days begins in 1970 and ends with 2100; buckets may begin where it does, or end there.
func TestIndex_BucketsBeyondItsDays_SayWhatTheSlowSumSays(t *testing.T) {
	t.Parallel()
	b := newBox(t, 2)
	x := newIndex(t, Options{Views: b, Life: life, Zone: time.UTC}, []string{"group", "site", "user"})
	for i, from := range []record.Time{x.grid.starts[0], x.grid.starts[1] - record.Hour, x.grid.starts[len(x.grid.starts)-2], x.grid.starts[len(x.grid.starts)-1] - 2*record.Hour, t0} {
		b.post(record.Record{ID: fmt.Sprint("edge", i), Start: from, Stop: from + record.Hour, Components: b.components()})
	}
	b.follow(x)
	for _, days := range [][]int{{-365, 0, 365}, {-1, 0, 1, 2}, {-1, 1, 40}, {0, 1, 2}} {
		early := Query{Now: t0, Counts: true, CPU: "TotalCPU", Cores: "Cores"}
		late := early
		for _, d := range days {
			early.Edges = append(early.Edges, x.grid.starts[0]+record.Time(d)*record.Day)
			late.Edges = append([]record.Time{x.grid.starts[len(x.grid.starts)-1] - record.Time(d)*record.Day}, late.Edges...)
		}
		b.compareWithSlow(x, early)
		b.compareWithSlow(x, late)
	}
}

// The rest of a day is left out where nothing of it is known, and only there.
func TestIndex_EndOfTheWindowInADay_IsThatOfTheRows(t *testing.T) {
	of := func(id string, start, stop record.Time) record.Record {
		return record.Record{ID: id, Start: start, Stop: stop, Submit: record.None, Components: []record.Component{{Name: "Cores", Amount: 2}}}
	}
	day := t0 - t0%record.Day
	for _, c := range []struct {
		name    string
		more    record.Record
		to, now record.Time // hours of the day
		way     string
	}{
		{"all ended", of("b", day, day+3*record.Hour), 5, 5, "index"},
		{"a stop at the end", of("b", day, day+5*record.Hour), 5, 5, "index and scan"},
		{"a stop after it", of("b", day, day+6*record.Hour), 5, 5, "index and scan"},
		{"a start after it", of("b", day+6*record.Hour, day), 5, 5, "index and scan"},
		{"one goes on", of("b", day+record.Hour, record.None), 5, 5, "index"},
		{"one goes on, and now is later", of("b", day+record.Hour, record.None), 5, 7, "index and scan"},
		{"one goes on that starts later", of("b", day+6*record.Hour, record.None), 5, 5, "index and scan"},
		{"nothing before today", of("b", day+record.Hour, day+2*record.Hour), 5, 4, "index"},
	} {
		b := newBox(t, 3)
		b.post(of("a", day-record.Day, day-record.Hour), c.more)
		x := newIndex(t, Options{Views: b, Life: life}, []string{"site"})
		q := Query{Edges: []record.Time{day - 2*record.Day, day, day + c.to*record.Hour}, Now: day + c.now*record.Hour, Counts: true, Levels: true, CPU: "TotalCPU", Cores: "Cores"}
		if way := b.compareWithSlow(x, q); way != c.way {
			t.Errorf("%s: %s, want %s", c.name, way, c.way)
		}
	}
}

func life(v *store.View) (string, error) {
	id, _ := v.Cluster()
	return id, nil
}

// ask puts a question, holds the answer against the slow one, and returns its way.
func (b *box) ask(x *Index) string {
	b.t.Helper()
	q := b.question(x.grid)
	return b.compareWithSlow(x, q)
}

// compareWithSlow holds the answer to a question against the slow one, and returns its way.
func (b *box) compareWithSlow(x *Index, q Query) string {
	b.t.Helper()
	a, err := x.Answer(context.Background(), q)
	if err != nil {
		b.t.Fatal(err)
	}
	got, want := flatten(a), b.slow(&q)
	if reflect.DeepEqual(got, want) {
		return a.Way
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got[k] != want[k] {
			b.t.Errorf("%s: got %q, want %q", k, got[k], want[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			b.t.Errorf("%s: got %q, want nothing", k, got[k])
		}
	}
	b.t.Fatalf("%s: %+v", a.Way, q)
	return ""
}

func (b *box) question(g *grid) Query {
	rng := b.rng
	q := Query{Now: t0 + record.Time(rng.Int64N(int64(20*record.Day))), Counts: true, CPU: "TotalCPU", Cores: "Cores"}
	at := t0 + record.Time(rng.Int64N(int64(b.span/4*3)))
	whole := rng.IntN(3)
	if whole > 0 {
		at = g.dayStart(g.dayOf(at))
	}
	q.Edges = append(q.Edges, at)
	for range 1 + rng.IntN(6) {
		if whole > 0 {
			at = g.dayStart(g.dayOf(at) + 1 + day(rng.Int64N(int64(b.span/record.Day/10))))
		} else {
			at += pick(rng, record.Hour, 3*record.Hour+1, record.Day, 2*record.Day)
		}
		q.Edges = append(q.Edges, at)
	}
	if whole == 2 { // the first and last edges lie anywhere
		q.Edges[0] -= record.Time(rng.Int64N(int64(record.Day)))
		last := q.Edges[len(q.Edges)-1] + record.Time(rng.Int64N(int64(record.Day)))
		if q.Edges[len(q.Edges)-1] < last && rng.IntN(2) == 0 { // the last bucket is a part of a day
			q.Edges = append(q.Edges, last)
		}
		q.Edges[len(q.Edges)-1] = last
	}
	if whole > 0 && rng.IntN(8) == 0 { // all that there ever was
		q.Edges[0], q.Edges[len(q.Edges)-1] = record.MinTime, record.MaxTime
	}
	if rng.IntN(6) == 0 { // up to now, and nothing has ended later
		v, err := b.View()
		if err != nil {
			b.t.Fatal(err)
		}
		last := max(q.Edges[len(q.Edges)-2]+1, v.Latest()+record.Time(rng.Int64N(int64(2*record.Day))))
		q.Edges[len(q.Edges)-1] = last
		q.Now = last + pick(rng, -record.Day, 0, record.Hour)
		if err := v.Close(); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, key := range []string{"site", "rack", "group", "user", "note"} { // no record has a rack
		if rng.IntN(4) == 0 {
			q.By = append(q.By, key)
		}
	}
	switch rng.IntN(4) {
	case 0:
		q.Where.Meta = []store.MetaTest{{Key: "site", Any: []string{"site1"}}}
	case 1:
		q.Where.Allowed = [][]store.MetaTest{{{Key: "group", Any: []string{"group0", "group2"}}}, {{Key: "user", Any: []string{"user1"}}}}
	}
	if rng.IntN(3) == 0 {
		q.People = "user"
	}
	if rng.IntN(3) == 0 {
		odd := rng.IntN(2)
		q.Keep = func(values []string, lacks []bool) bool {
			return len(strings.Join(values, ""))/3%2 == odd || slices.Contains(lacks, true)
		}
	}
	q.Counts, q.Levels = rng.IntN(4) > 0, rng.IntN(2) == 0
	if rng.IntN(4) == 0 {
		q.Components = []string{"Memory", "TotalCPU"}
	}
	if rng.IntN(4) == 0 {
		q.Cores = "Memory"
	}
	if rng.IntN(8) == 0 {
		q.Credit = AtStop
	}
	if rng.IntN(4) == 0 {
		q.Unscored = []string{"Cores"}
	}
	if b.ends != nil && b.ends.IntN(3) == 0 {
		for _, key := range record.EndKeys() {
			if b.ends.IntN(2) == 0 {
				q.By = append(q.By, key)
			}
		}
		if b.ends.IntN(2) == 0 {
			q.Where.Meta = append(q.Where.Meta, store.MetaTest{Key: "state", Any: []string{"FAILED", "1"}})
		}
	}
	return q
}

func flatten(a *Answer) map[string]string {
	out := map[string]string{"open": fmt.Sprint(a.Open), "several": fmt.Sprint(a.Several)}
	note(out, "runs", a.Runs)
	for _, c := range a.Components {
		note(out, "runs with "+c.Name, c.Runs)
		for _, s := range c.Scores {
			note(out, "runs with "+c.Name+" "+s.Name, s.Runs)
		}
	}
	n := len(a.Edges) - 1
	for g, group := range a.Groups {
		for b := range n {
			at, cell := g*n+b, fmt.Sprintf("%q %v %d ", group.Values, group.Lacks, b)
			if a.Records != nil {
				note(out, cell+"records", a.Records[at])
				note(out, cell+"begun", a.Begun[at])
				note(out, cell+"jobs", a.Jobs[at])
				note(out, cell+"started", a.Started[at])
				note(out, cell+"stopped", a.Stopped[at])
				note(out, cell+"waiters", a.Waiters[at])
				note(out, cell+"waited", a.Waited[at])
			}
			if a.Running != nil {
				note(out, cell+"running", a.Running[at])
				note(out, cell+"queued", a.Queued[at])
			}
			note(out, cell+"cpu", a.CPU[at])
			note(out, cell+"cores", a.Cores[at])
			if a.People != nil {
				note(out, cell+"people", a.People[at])
			}
			for _, c := range a.Components {
				note(out, cell+c.Name, c.Used[at])
				for _, s := range c.Scores {
					note(out, cell+c.Name+" "+s.Name, fmt.Sprintf("%.9g", s.Used[at]))
					note(out, cell+c.Name+" without "+s.Name, s.Lacking[at])
				}
			}
		}
	}
	return out
}

func note(out map[string]string, key string, v any) {
	if text := fmt.Sprint(v); text != "0" {
		out[key] = text
	}
}

// slow goes through all records and adds up.
func (b *box) slow(q *Query) map[string]string {
	b.t.Helper()
	v, err := b.store.View()
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	agents, err := v.Agents()
	if err != nil {
		b.t.Fatal(err)
	}
	s := &slowSum{q: q, sums: map[string]*big.Float{}, people: map[string]bool{}, complete: record.None}
	for _, a := range agents {
		for _, w := range a.Watermarks {
			s.complete = w.CompleteTo
		}
	}
	if err := v.Query(context.Background(), q.Where, func(row *columns.Row) error { s.add(row); return nil }); err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{"open": "0", "several": "0"}
	maps.DeleteFunc(s.sums, func(key string, _ *big.Float) bool { return strings.HasPrefix(key, "not asked for ") })
	for key, v := range s.sums {
		text := v.Text('f', 0)
		if v.MinPrec() > 64 || !v.IsInt() || s.floats[key] {
			f, _ := v.Float64()
			text = fmt.Sprintf("%.9g", f)
		}
		if i, _ := v.Int(nil); !s.floats[key] {
			text = i.String()
		}
		if text != "0" || key == "open" || key == "several" {
			out[key] = text
		}
	}
	return out
}

type slowSum struct {
	q        *Query
	sums     map[string]*big.Float
	floats   map[string]bool
	people   map[string]bool
	complete record.Time
}

func (s *slowSum) plus(key string, v *big.Float) {
	if s.sums[key] == nil {
		s.sums[key] = new(big.Float).SetPrec(400)
	}
	s.sums[key].Add(s.sums[key], v)
}

func (s *slowSum) asked(name string) bool {
	return s.q.Components == nil || slices.Contains(s.q.Components, name)
}

// level adds the time from from to to, as far as it is in a bucket.
func (s *slowSum) level(b int, key string, from, to record.Time) {
	from, to = max(from, s.q.Edges[b]), min(to, s.q.Edges[b+1])
	if s.q.Levels && from < to {
		s.plus(key, new(big.Float).SetInt64(int64(to-from)))
	}
}

func (s *slowSum) count(key string) { s.plus(key, big.NewFloat(1)) }

func (s *slowSum) add(row *columns.Row) {
	r := row.Shown()
	r.Components = slices.Clone(r.Components)
	for i := range r.Components {
		if slices.Contains(s.q.Unscored, r.Components[i].Name) {
			r.Components[i].Scores = nil
		}
	}
	end := r.Stop
	if end == record.None {
		end = s.q.Now
		if row.Origin == source() && s.complete != record.None {
			end = min(end, s.complete)
		}
		end = max(end, r.Start)
	}
	if end < r.Start {
		return
	}
	values, lacks := make([]string, len(s.q.By)), make([]bool, len(s.q.By))
	several := false
	for i, key := range s.q.By {
		if list := endOrMeta(&r, key); len(list) > 0 {
			values[i], several = list[0], several || len(list) > 1
		} else {
			lacks[i] = true
		}
	}
	if s.q.Keep != nil && !s.q.Keep(values, lacks) {
		return
	}
	touched := false
	for b := range s.q.Edges[1:] {
		touched = s.bucket(&r, end, b, fmt.Sprintf("%q %v %d ", values, lacks, b)) || touched
	}
	if touched && r.Stop == record.None {
		s.count("open")
	}
	if touched && several {
		s.count("several")
	}
	if touched {
		s.runs(&r)
	}
}

// endOrMeta are the values that a record has for a key, the obvious way.
func endOrMeta(r *record.Record, key string) []string {
	list := map[string][]string{}
	if r.State != "" {
		list["state"] = []string{r.State}
	}
	if r.Exit.Known {
		list["exit_code"], list["exit_signal"] = []string{fmt.Sprint(r.Exit.Code)}, []string{fmt.Sprint(r.Exit.Signal)}
	}
	for _, e := range r.Meta {
		list[e.Key] = e.Values
	}
	return list[key]
}

// isPart reports whether a record is no run but a part of one, the obvious way.
func isPart(r *record.Record) bool {
	return slices.ContainsFunc(r.Meta, func(e record.MetaEntry) bool { return e.Key == "run_part" && len(e.Values) > 0 })
}

// runs counts the record once for each thing that it has.
func (s *slowSum) runs(r *record.Record) {
	has := map[string]bool{"runs": true}
	for _, c := range r.Components {
		if !s.asked(c.Name) {
			continue
		}
		has["runs with "+c.Name] = true
		for _, score := range c.Scores {
			has["runs with "+c.Name+" "+score.Name] = true
		}
	}
	for key := range has {
		s.count(key)
	}
}

func (s *slowSum) bucket(r *record.Record, end record.Time, b int, cell string) bool {
	from, to := s.q.Edges[b], s.q.Edges[b+1]
	in := func(t record.Time) bool { return from <= t && t < to }
	started, stopped := in(r.Start), r.Stop != record.None && in(r.Stop)
	is := started || r.Start < from && end > from
	if s.q.Credit == AtStop {
		is = stopped
	}
	part := isPart(r)
	if !part {
		s.level(b, cell+"running", r.Start, end)
	}
	if r.Submit != record.None && !part {
		s.level(b, cell+"queued", r.Submit, r.Start)
	}
	if !s.q.Counts {
		cell = "not asked for " + cell
	}
	if started {
		s.count(cell + "begun")
	}
	if started && !part {
		s.count(cell + "started")
		if r.Submit != record.None && r.Submit <= r.Start {
			s.count(cell + "waiters")
			s.plus(cell+"waited", new(big.Float).SetInt64(int64(r.Start-r.Submit)))
		}
	}
	if stopped && !part {
		s.count(cell + "stopped")
	}
	if is {
		s.count(cell + "records")
	}
	if is && !part {
		s.count(cell + "jobs")
	}
	cell = strings.TrimPrefix(cell, "not asked for ")
	if is {
		who := r.Meta.Get("user")
		if key := cell + fmt.Sprint(who); s.q.People != "" && len(who) > 0 && !s.people[key] {
			s.people[key] = true
			s.count(cell + "people")
		}
	}
	lo, hi := max(r.Start, from), min(end, to)
	switch {
	case s.q.Credit == AtStop && stopped:
		lo, hi = r.Start, end
	case s.q.Credit == AtStop, lo > hi, lo == hi && (r.Start != end || !started):
		return is
	}
	s.used(r, end, lo, hi, cell)
	return is
}

func (s *slowSum) used(r *record.Record, end, lo, hi record.Time, cell string) {
	var cpu, cores *big.Float
	for _, c := range r.Components {
		u := new(big.Float).SetPrec(400).SetInt(integral(&c, r.Start, end, lo, hi))
		switch c.Name {
		case s.q.CPU:
			cpu = u
		case s.q.Cores:
			cores = u
		}
		if !s.asked(c.Name) {
			continue
		}
		s.plus(cell+c.Name, u)
		for _, score := range c.Scores {
			key := cell + c.Name + " " + score.Name
			if s.floats == nil {
				s.floats = map[string]bool{}
			}
			s.floats[key] = true
			s.plus(key, new(big.Float).SetPrec(400).Mul(u, big.NewFloat(score.Value)))
		}
	}
	if cpu != nil && cores != nil {
		s.plus(cell+"cpu", cpu)
		s.plus(cell+"cores", cores)
	}
}

// integral is the definition: a rate times its time; of a total what is given out by
// hi less what is given out by lo, in millionths rounded down.
func integral(c *record.Component, start, end, lo, hi record.Time) *big.Int {
	if c.Kind == record.Rate {
		return new(big.Int).Mul(big.NewInt(c.Amount), big.NewInt(int64(hi-lo)))
	}
	whole := new(big.Int).Mul(big.NewInt(c.Amount), big.NewInt(1e6))
	if start == end {
		return whole
	}
	until := func(t record.Time) *big.Int {
		n := new(big.Int).Mul(whole, big.NewInt(int64(t-start)))
		return n.Div(n, big.NewInt(int64(end-start)))
	}
	return new(big.Int).Sub(until(hi), until(lo))
}
