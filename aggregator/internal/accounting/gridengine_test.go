package accounting_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"

	"github.com/bursar-accounting/bursar/proto/record"
)

// planOf reads a configuration as nodes do, from what is committed.
func planOf(t *testing.T, name string) *accounting.CapacityPlan {
	t.Helper()
	c, _, diags := config.LoadOffline(name)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	s, err := config.ReadShared(c.Shared())
	if err != nil {
		t.Fatal(err)
	}
	return &s.Capacity
}

// accounting are the records of testdata/gridengine-accounting that ClusterAccountant
// takes: 43 fields of which the last is not empty, an end or CPU time, each job, task and parallel part once.
func gridEngineFile(t *testing.T) (list []record.Record) {
	t.Helper()
	f, err := os.Open("testdata/gridengine-accounting")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		w := strings.Split(lines.Text(), ":")
		if strings.HasPrefix(lines.Text(), "#") || len(w) != 43 || w[42] == "" {
			continue
		}
		number := func(i int) int64 {
			v, err := strconv.ParseFloat(w[i], 64)
			if err != nil || v != math.Trunc(v) {
				t.Fatal(w[i], err)
			}
			return int64(v)
		}
		id := w[5] + "-" + w[35] + "-" + w[41]
		if number(10) == 0 && number(36) == 0 || seen[id] {
			continue
		}
		seen[id] = true
		list = append(list, record.Record{
			ID: id, Start: record.Time(number(9)) * record.Second, Stop: record.Time(number(10)) * record.Second, Submit: record.Time(number(8)) * record.Second,
			Meta:       record.Meta{{Key: "group_id", Values: []string{w[2]}}, {Key: "host", Values: []string{w[1]}}, {Key: "user_id", Values: []string{w[3]}}},
			Components: []record.Component{{Name: "Cores", Amount: number(34)}, {Name: "TotalCPU", Amount: number(36), Kind: record.Total}},
		})
	}
	return list
}

// box is a store.
type box struct{ *store.Store }

func newBox(t *testing.T, list []record.Record) box {
	t.Helper()
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	rows := columns.NewBuilder()
	for _, r := range list {
		rows.Add(&columns.Row{Record: r, Rank: record.RankPush, Stop: record.None})
	}
	if _, err := s.Apply(1, 1, store.Encode(&store.PostCommand{Rows: rows.Bytes(), Now: 1})); err != nil {
		t.Fatal(err)
	}
	return box{s}
}

// serviceUnits are those of CPU time on hosts: the first pattern counts, and 1 where
// none matches.
func serviceUnits() usage.Weight {
	rules := []struct {
		host   *regexp.Regexp
		factor int64
	}{{regexp.MustCompile("^kat-"), 1_000_000_000}, {regexp.MustCompile("^geo-[a-d]"), 1_900_000_000}, {regexp.MustCompile("^kat-gpu"), 2_700_000_000}, {regexp.MustCompile("^old-"), 500_000_000}}
	return usage.Weight{Name: "su", Unit: "SU", Components: []string{"TotalCPU"}, Seconds: []string{"TotalCPU"}, From: []string{"host"},
		Of: func(_ string, _ record.Kind, v []string, _ []bool, _ record.Time) (int64, bool) {
			for _, r := range rules {
				if r.host.MatchString(v[0]) {
					return r.factor, true
				}
			}
			return 1_000_000_000, true
		}}
}

// page is a sheet as JSON has it.
type page struct {
	Groups []struct {
		Values []*string
		Others int
	}
	Measures []struct {
		Name    string
		Values  []*float64
		Totals  []*float64
		Total   *float64
		Lacking *struct{ Total float64 }
	}
}

// at is the figure of a measure for a cluster, nil for null.
func (p *page) at(t *testing.T, measure, cluster string) *float64 {
	t.Helper()
	for _, m := range p.Measures {
		for g := range p.Groups {
			if v := p.Groups[g].Values; m.Name == measure && *v[0] == cluster {
				return m.Values[g]
			}
		}
	}
	t.Fatalf("no %s of %s: %+v", measure, cluster, p)
	return nil
}

// katana is the site of the fixture.
type katana struct {
	t    *testing.T
	box  box
	caps *accounting.Capacities
	book usage.Derivation
}

func newKatana(t *testing.T) *katana {
	caps := accounting.NewCapacities(planOf(t, "testdata/gridengine.hcl"), nil)
	list := gridEngineFile(t)
	if len(list) != 20 {
		t.Fatalf("%d records, want 20", len(list))
	}
	return &katana{t, newBox(t, list), caps, usage.Derivation{Keys: caps.Keys(), Weights: []usage.Weight{serviceUnits()}}}
}

func (k *katana) make(r usage.Request) *page {
	k.t.Helper()
	r.Capacity, r.Weights, r.Now = k.caps, []string{"su"}, record.MaxTime
	ask := func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
		return k.book.Answer(ctx, func(ctx context.Context, q sums.Query) (*sums.Answer, error) { return sums.Rows(ctx, k.box, q) }, q)
	}
	s, err := usage.MakeTable(k.t.Context(), ask, r)
	if err != nil {
		k.t.Fatal(err)
	}
	var p page
	if err := json.Unmarshal(s.AppendJSON(nil, []byte("null")), &p); err != nil {
		k.t.Fatal(err)
	}
	return &p
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(1, math.Abs(b)) }

// TestTheUtilizationOfOctoberIsThatOfClusterAccountant compares with what that program
// printed, where it is right: it counts nodes for the whole of the interval in which
// they come, and of an interval without capacity it prints what was used as per cent.
func TestTheUtilizationOfOctoberIsThatOfClusterAccountant(t *testing.T) {
	var want struct {
		Oct struct {
			Utilization map[string][]float64 `json:"utilization_pct"`
			Capacity    map[string][]float64 `json:"capacity_cu_per_interval"`
		}
	}
	text, err := os.ReadFile("testdata/gridengine-october.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	k := newKatana(t)
	const interval = 178560 * record.Second
	first := record.FromStd(time.Date(2012, 10, 1, 0, 0, 0, 0, time.UTC))
	// In seconds of a core with the factor 1; nil: what the program says is right.
	exact := map[string]map[int]float64{
		"scluster": {0: 0, 1: 45.6 * 11520},
		"katana":   {7: 32*178560 + 43.2*132480},
	}
	for i := range 15 {
		from := first + record.Time(i)*interval
		p := k.make(usage.Request{Window: calendar.Window{From: from, To: from + interval}, By: []string{"cluster"}, Credit: sums.AtStop, Measures: []string{"capacity*su", "utilization*su", "su"}})
		for cluster, capacities := range want.Oct.Capacity {
			units, special := exact[cluster][i]
			if !special {
				units = capacities[i]
			}
			if cluster == "scluster" && i == 0 {
				if v := p.at(t, "utilization*su", cluster); v != nil {
					t.Errorf("%s without capacity is used to %g", cluster, *v)
				}
				if used := p.at(t, "su", cluster); used == nil || !near(*used, 1900.0/3600) || !near(p.Measures[2].Lacking.Total, 1900.0/3600) {
					t.Errorf("what was used without capacity is not told: %+v", p.Measures)
				}
				continue
			}
			if got := p.at(t, "capacity*su", cluster); got == nil || !near(*got*3600, units) {
				t.Errorf("capacity of %s in interval %d: %v, want %g", cluster, i, got, units)
			}
			pct := want.Oct.Utilization[cluster][i] * capacities[i] / units
			if got := p.at(t, "utilization*su", cluster); got == nil || !near(*got*100, pct) {
				t.Errorf("utilization of %s in interval %d: %v, want %g %%", cluster, i, got, pct)
			}
		}
	}
}

// TestTheWholeIsAllThatWasUsedOfAllThatWasThere has October by hand: 25.9136 service
// units on scluster, of which 0.5278 before it was there, and 39.5 on katana.
func TestTheWholeIsAllThatWasUsedOfAllThatWasThere(t *testing.T) {
	k := newKatana(t)
	october := calendar.Window{From: record.FromStd(time.Date(2012, 10, 1, 0, 0, 0, 0, time.UTC)), To: record.FromStd(time.Date(2012, 11, 1, 0, 0, 0, 0, time.UTC))}
	r := usage.Request{Window: october, Zone: time.UTC, By: []string{"cluster"}, Credit: sums.AtStop, Measures: []string{"utilization*su", "su", "capacity"}, Hours: true}
	there := map[string]float64{"scluster": 45.6 * 27 * 24, "katana": 32*31*24 + 43.2*16*24}
	used := map[string]float64{"scluster": 0, "katana": 0}
	p := k.make(r)
	for name := range used {
		used[name] = *p.at(t, "su", name)
		if name == "scluster" {
			used[name] -= 1900.0 / 3600
		}
		if got := p.at(t, "utilization*su", name); got == nil || math.Abs(*got-used[name]/there[name]) > 1e-8 {
			t.Errorf("%s: %v, want %g", name, got, used[name]/there[name])
		}
	}
	whole := (used["scluster"] + used["katana"]) / (there["scluster"] + there["katana"])
	ratio := func(p *page) float64 {
		for _, m := range p.Measures {
			if m.Name == "utilization*su" && m.Total != nil {
				return *m.Total
			}
		}
		return math.NaN()
	}
	days, groups, others, users, science := r, r, r, r, r
	days.Bucket = calendar.Day
	groups.By = nil
	others.Top, others.Order = 1, "su"
	users.By = []string{"user_id"}
	science.Having = []sums.Filter{{Key: "cluster", Values: []string{"science"}}}
	for name, r := range map[string]usage.Request{"by cluster": r, "by day": days, "all": groups, "with others": others, "by user": users, "of the group": science} {
		if got := ratio(k.make(r)); math.Abs(got-whole) > 1e-8 {
			t.Errorf("%s: %g, want %g", name, got, whole)
		}
	}
	if p := k.make(groups); len(p.Groups) != 1 || p.Measures[1].Name != "utilization*su" && p.Measures[0].Name != "su" {
		t.Errorf("%+v", p)
	}
}
