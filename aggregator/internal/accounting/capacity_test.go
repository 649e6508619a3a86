package accounting

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func src(agent, label string) record.Origin {
	return record.Origin{Agent: agent, Type: "slurm", Label: label}
}

func cores(n int64) map[string]int64 { return map[string]int64{Cores: n} }

// anyTime is one of few instants, so that they often coincide.
func anyTime(t *rapid.T, name string) record.Time {
	return record.Time(rapid.Int64Range(0, 12).Draw(t, name))
}

// capacityWorld is a plan with facts.
func capacityWorld(t *rapid.T) (*CapacityPlan, []CapacityFact) {
	p := &CapacityPlan{}
	for i := range rapid.IntRange(0, 3).Draw(t, "clusters") {
		c := Cluster{Name: fmt.Sprint("c", i), Match: []NodeMatch{{Key: siteKey, Values: []string{fmt.Sprint("c", i)}}}, Factor: rapid.SampledFrom([]int64{0, FactorOne / 2}).Draw(t, "factor")}
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			part := ClusterPart{From: record.None, To: record.None, Components: map[string]int64{}, Factor: rapid.SampledFrom([]int64{0, 1_900_000_000}).Draw(t, "factor")}
			if rapid.Bool().Draw(t, "begins") {
				part.From = anyTime(t, "from")
			}
			if rapid.Bool().Draw(t, "ends") {
				part.To = max(part.From, 0) + 1 + anyTime(t, "length")
			}
			for _, name := range []string{Cores, "Memory"} {
				if rapid.Bool().Draw(t, name) {
					part.Components[name] = rapid.Int64Range(0, 9).Draw(t, "amount")
				}
			}
			c.Parts = append(c.Parts, part)
		}
		p.Clusters = append(p.Clusters, c)
	}
	var facts []CapacityFact
	for range rapid.IntRange(0, 5).Draw(t, "facts") {
		f := CapacityFact{Source: src(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent"), rapid.SampledFrom([]string{"c0", "c1", "x"}).Draw(t, "label")), From: anyTime(t, "at"), Components: map[string]int64{}}
		if slices.ContainsFunc(facts, func(o CapacityFact) bool { return o.Source == f.Source && o.From == f.From }) {
			continue
		}
		for _, name := range []string{Cores, "Memory"} {
			if rapid.Bool().Draw(t, name) {
				f.Components[name] = rapid.Int64Range(0, 9).Draw(t, "amount")
			}
		}
		facts = append(facts, f)
	}
	return p, facts
}

// slow is what a cluster has at an instant by the rules alone.
func slow(p *CapacityPlan, facts []CapacityFact, name, component string, at record.Time) (amount int64, known bool) {
	said, factor := component, func(f int64) int64 { return 1 }
	cl := Cluster{Name: name}
	for _, c := range p.Clusters {
		if c.Name == name {
			cl = c
		}
	}
	if component == SU {
		said = Cores
		factor = func(f int64) int64 {
			for _, one := range []int64{f, cl.Factor} {
				if one != 0 {
					return one
				}
			}
			return FactorOne
		}
	}
	named, parts := false, 0
	for _, p := range cl.Parts {
		n, has := p.Components[said]
		named = named || has
		if has && (p.From == record.None || p.From <= at) && (p.To == record.None || p.To > at) {
			parts++
			amount += n * factor(p.Factor)
		}
	}
	var last *CapacityFact
	some := false
	for i := range facts {
		f := &facts[i]
		if f.Source.Label != name {
			continue
		}
		some = true
		_, has := f.Components[said]
		named = named || has
		if f.From <= at && (last == nil || f.From > last.From || f.From == last.From && f.Source.Agent > last.Source.Agent) {
			last = f
		}
	}
	switch {
	case !named:
		return 0, false
	case parts > 0 || !some:
		return amount, true
	case last == nil:
		return 0, false
	}
	return last.Components[said] * factor(0), true
}

func TestTheIntegralIsWhatTheObviousSlowSumSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, facts := capacityWorld(t)
		c := NewCapacities(p, facts)
		clusters, err := c.Clusters(nil)
		if err != nil {
			t.Fatal(err)
		}
		from := anyTime(t, "from") - 1
		to := from + anyTime(t, "to")
		for _, component := range []string{Cores, "Memory", SU, "GPUs"} {
			whole, all := new(big.Int), true
			for _, name := range clusters {
				want, known := new(big.Int), true
				for at := from; at < to; at++ {
					n, ok := slow(p, facts, name, component, at)
					want.Add(want, big.NewInt(n))
					known = known && ok
					if step := c.At(name, component, at); step.Known != ok || ok && step.Amount != sums.SumOf(n) {
						t.Fatalf("%s of %s at %d: %v, want %d %t", component, name, at, step, n, ok)
					}
				}
				got, ok := c.Of([]string{name}, component, from, to)
				if ok != known || ok && got.Big().Cmp(want) != 0 {
					t.Fatalf("%s of %s from %d to %d: %v %t, want %v %t", component, name, from, to, got, ok, want, known)
				}
				whole, all = whole.Add(whole, want), all && known
			}
			if got, ok := c.Of(clusters, component, from, to); ok != all || ok && got.Big().Cmp(whole) != 0 {
				t.Fatalf("%s of all: %v %t, want %v %t", component, got, ok, whole, all)
			}
		}
	})
}

func TestBetweenCutsAClusterHasSomethingAllTheTimeOrNever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, facts := capacityWorld(t)
		c := NewCapacities(p, facts)
		clusters, _ := c.Clusters(nil)
		edges := slices.Concat([]record.Time{-1}, c.Cuts(clusters, Cores, -1, 30), []record.Time{30})
		for i := range edges[1:] {
			for _, name := range clusters {
				first := c.At(name, Cores, edges[i])
				for at := edges[i]; at < edges[i+1]; at++ {
					if s := c.At(name, Cores, at); s.hasAmount() != first.hasAmount() {
						t.Fatalf("%s at %d: %v, at %d: %v, cuts %v", name, edges[i], first, at, s, edges)
					}
				}
			}
		}
	})
}

func TestAGroupHasEachOfItsClustersOnce(t *testing.T) {
	p := &CapacityPlan{Groups: []NodeGroup{
		{Name: "grid", Clusters: []string{"a"}, Groups: []string{"south", "east"}},
		{Name: "south", Clusters: []string{"b"}, Groups: []string{"east"}},
		{Name: "east", Clusters: []string{"a", "c"}},
		{Name: "vague", Clusters: []string{"a", "nobody"}},
	}}
	for i, name := range []string{"a", "b", "c"} {
		p.Clusters = append(p.Clusters, Cluster{Name: name, Parts: []ClusterPart{{From: record.None, To: record.None, Components: cores(int64(1) << (4 * i))}}})
	}
	c := NewCapacities(p, nil)
	for name, want := range map[string]string{"grid": "273 true", "south": "273 true", "east": "257 true", "a": "1 true", "vague": "0 false", "nobody": "0 false"} {
		sum, known := c.Of([]string{name}, Cores, 0, 1)
		if got := fmt.Sprint(sum, known); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		step := c.At(name, Cores, 0)
		if got := fmt.Sprint(step.Amount, step.Known); got != want {
			t.Errorf("%s now: %s, want %s", name, got, want)
		}
	}
	if got, err := c.Clusters([]string{"east", "grid"}); err != nil || strings.Join(got, " ") != "a c b" {
		t.Error(got, err)
	}
	if _, err := c.Clusters([]string{"b", "west"}); err == nil || !strings.Contains(err.Error(), `"west"; there are a, b, c, grid, south, east, vague`) {
		t.Error(err)
	}
	if _, unknown := c.Members("vague"); !slices.Equal(unknown, []string{"nobody"}) {
		t.Error(unknown)
	}
}

func TestGroupsThatIncludeOneAnotherAreFound(t *testing.T) {
	groups := []NodeGroup{{Name: "x", Groups: []string{"a"}}, {Name: "a", Groups: []string{"none", "b"}}, {Name: "b", Groups: []string{"c", "d"}}, {Name: "c"}, {Name: "d", Groups: []string{"a"}}}
	if got := strings.Join(GroupCycle(groups), " "); got != "a b d" {
		t.Error(got)
	}
	groups[4].Groups = nil
	if got := GroupCycle(groups); got != nil {
		t.Error(got)
	}
	c := NewCapacities(&CapacityPlan{Groups: []NodeGroup{{Name: "self", Groups: []string{"self"}}}}, nil)
	if _, known := c.Of([]string{"self"}, Cores, 0, 1); !known {
		t.Error("a group of itself") // it ends, and has nothing
	}
}

func TestWithoutConfigurationASourceIsACluster(t *testing.T) {
	c := NewCapacities(&CapacityPlan{}, []CapacityFact{{src("head1", "nemo"), 5, cores(10)}, {src("head2", "nemo"), 7, cores(12)}, {src("head1", "atlas"), 0, cores(1)}})
	got := ""
	for _, a := range c.List() {
		got += fmt.Sprintf("%s %v %v %t;", a.Name, a.Match, a.From, a.Configured)
	}
	if want := "atlas [{site_id [atlas]}] [head1/slurm/atlas] false;nemo [{site_id [nemo]}] [head1/slurm/nemo head2/slurm/nemo] false;"; got != want {
		t.Error(got)
	}
	if step := c.At("nemo", Cores, 8); step.Amount != sums.SumOf(12) {
		t.Error("two agents of one scheduler count twice:", step)
	}
	key := c.Keys()[0]
	for value, want := range map[string]string{"nemo": "nemo true", "atlas": "atlas true", "else": " false"} {
		name, has := key.Of([]string{value}, []bool{false}, 0)
		if got := fmt.Sprint(name, " ", has); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
	if _, has := key.Of([]string{""}, []bool{true}, 0); has {
		t.Error("a record without a site is of a cluster")
	}
	if keys := NewCapacities(&CapacityPlan{}, nil).Keys(); keys != nil {
		t.Error("without clusters the key hides a meta key of its name")
	}
}

func TestASourceBelongsWhereItIsListedOrWhereItsRecordsGo(t *testing.T) {
	site := func(name string, sources []string) Cluster {
		return Cluster{Name: name, Match: []NodeMatch{{siteKey, []string{name}}}, Sources: sources}
	}
	for _, c := range []struct {
		name string
		plan CapacityPlan
		want string
	}{
		{"listed", CapacityPlan{Clusters: []Cluster{site("nemo", nil), site("big", []string{"h/slurm/nemo"})}}, "big"},
		{"by its records", CapacityPlan{Clusters: []Cluster{{Name: "south", Match: []NodeMatch{{siteKey, []string{"a", "n*"}}}}}}, "south"},
		{"the first of two", CapacityPlan{Clusters: []Cluster{{Name: "two", Match: []NodeMatch{{siteKey, []string{"*"}}}}, site("nemo", nil)}}, "two"},
		{"others are listed", CapacityPlan{Clusters: []Cluster{site("nemo", []string{"h/slurm/other"})}}, ""},
		{"none counts", CapacityPlan{Clusters: []Cluster{site("nemo", []string{})}}, ""},
		{"its records go elsewhere", CapacityPlan{Clusters: []Cluster{{Name: "gpu", Match: []NodeMatch{{"partition", []string{"gpu"}}}}}}, "nemo"},
		{"a group has its name", CapacityPlan{Groups: []NodeGroup{{Name: "nemo"}}}, "h/slurm/nemo"},
	} {
		all := NewCapacities(&c.plan, []CapacityFact{{src("h", "nemo"), 0, cores(1)}})
		got := ""
		for _, a := range all.List() {
			if len(a.From) > 0 {
				got += a.Name
			}
		}
		if got != c.want {
			t.Errorf("%s: counts for %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAPatternTakesWhatItDescribes(t *testing.T) {
	for _, c := range []struct {
		pattern, yes, no string
	}{
		{"nemo", "nemo", "nemo1 nem NEMO"}, {"*", "x nemo", ""}, {"geo-*", "geo-a1 geo-", "geo xgeo-a"}, {"*.hpc", "a.hpc .hpc", "a.hpc2"},
		{"a*b*c", "abc aXbXc abbcc", "ac acb bc"}, {"ab*ba", "abba abxba", "aba"},
	} {
		for v := range strings.FieldsSeq(c.yes) {
			if !matchesPattern(c.pattern, v) {
				t.Errorf("%s does not take %s", c.pattern, v)
			}
		}
		for v := range strings.FieldsSeq(c.no) {
			if matchesPattern(c.pattern, v) {
				t.Errorf("%s takes %s", c.pattern, v)
			}
		}
	}
}

func TestClustersOfWhichNoRecordCanPassAreLeftOut(t *testing.T) {
	c := NewCapacities(&CapacityPlan{Clusters: []Cluster{
		{Name: "a", Match: []NodeMatch{{"site", []string{"a"}}}}, {Name: "b", Match: []NodeMatch{{"site", []string{"b", "bb"}}, {"queue", []string{"q"}}}}, {Name: "g", Match: []NodeMatch{{"site", []string{"g*"}}}},
	}}, nil)
	all, _ := c.Clusters(nil)
	for _, test := range []struct {
		tests []store.MetaTest
		want  string
	}{
		{nil, "a b g"},
		{[]store.MetaTest{{Key: "site", Any: []string{"a"}}}, "a g"},
		{[]store.MetaTest{{Key: "site", Contains: []string{"bb"}}}, "b g"},
		{[]store.MetaTest{{Key: "queue", Any: []string{"x"}}}, "a g"},
		{[]store.MetaTest{{Key: "group", Any: []string{"atlas"}}}, "a b g"},
	} {
		if got := strings.Join(c.Among(all, test.tests), " "); got != test.want {
			t.Errorf("%v: %s, want %s", test.tests, got, test.want)
		}
	}
}

// Of all keys it is the cluster that takes the record; the fewer of them are known, the
// more clusters there may be, and that one is always among them.
func TestWithin_AnyKeys_HoldsTheClusterOfTheRecord(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	keys, patterns := []string{"host", "queue", "site"}, []string{"a", "b", "a*", "*"}
	for range 2000 {
		p := &CapacityPlan{}
		for i := range 1 + random.IntN(4) {
			cl := Cluster{Name: fmt.Sprint(i)}
			for _, key := range keys {
				if random.IntN(2) == 0 {
					cl.Match = append(cl.Match, NodeMatch{Key: key, Values: []string{patterns[random.IntN(len(patterns))]}})
				}
			}
			p.Clusters = append(p.Clusters, cl)
		}
		c := NewCapacities(p, nil)
		all, _ := c.Clusters(nil)
		values, lacks := make([]string, len(keys)), make([]bool, len(keys))
		for i := range keys {
			values[i], lacks[i] = []string{"a", "b", "ab", "c"}[random.IntN(4)], random.IntN(5) == 0
		}
		of := slices.IndexFunc(p.Clusters, func(cl Cluster) bool { return cl.matchesRecord(keys, values, lacks) })
		for known := range 1 << len(keys) {
			var some, have []string
			var without []bool
			for i, key := range keys {
				if known>>i&1 == 1 {
					some, have, without = append(some, key), append(have, values[i]), append(without, lacks[i])
				}
			}
			got, told := c.Within(all, some, have, without)
			if told != slices.ContainsFunc(some, func(key string) bool { return slices.Contains(c.keys, key) }) {
				t.Fatalf("%+v: by %v: told %v", p, some, told)
			}
			if of >= 0 && !slices.Contains(got, fmt.Sprint(of)) {
				t.Fatalf("%+v: %v %v %v are within %v, without %d", p, some, have, without, got, of)
			}
			if told && len(some) == len(keys) && len(got) > max(0, min(1, of+1)) {
				t.Fatalf("%+v: %v %v %v are within %v, want %d alone", p, some, have, without, got, of)
			}
		}
	}
}

func TestWhatSourcesSayIsRead(t *testing.T) {
	encode := func(f wire.Frame) []byte { return wire.AppendFrame(nil, &f) }
	facts, err := CapacityFacts([]store.Fact{{Source: src("h", "n"), At: 7, Data: encode(wire.Frame{Kind: wire.KindCapacity, Capacity: wire.Capacity{From: 7, Components: []record.Component{{Name: Cores, Amount: 64}, {Name: "GPUs", Amount: -1}}}})}})
	if err != nil || len(facts) != 1 || facts[0].From != 7 || facts[0].Components[Cores] != 64 || facts[0].Components["GPUs"] != 0 {
		t.Error(facts, err)
	}
	data := encode(wire.Frame{Kind: wire.KindCensus, Census: wire.Census{At: 9, Rows: []wire.CensusRow{{User: "u", Queue: "q", Running: 3, Pending: 1 << 62}, {User: "v", Queue: "q", Running: -9, Pending: 1<<63 - 1}}}})
	list, err := Censuses([]store.Fact{{Source: src("h", "n"), At: 9, Data: data}})
	if err != nil || len(list) != 1 || list[0].Running != 3 || list[0].Pending != 1<<63-1 || len(list[0].Rows) != 2 {
		t.Error(list, err)
	}
	if _, err := CapacityFacts([]store.Fact{{Source: src("h", "n"), Data: []byte{1}}}); err == nil || !strings.Contains(err.Error(), "h/slurm/n") {
		t.Error(err)
	}
}

func TestMoreThanCanBeAddedUpIsUnknown(t *testing.T) {
	c := NewCapacities(&CapacityPlan{}, []CapacityFact{{src("h", "n"), record.MinTime, cores(1<<63 - 1)}})
	if sum, known := c.Of([]string{"n"}, SU, record.MinTime, record.MaxTime); known {
		t.Error(sum)
	}
	if _, known := c.Of([]string{"n"}, Cores, record.MinTime, record.MaxTime); !known {
		t.Error("cores fit")
	}
}
