package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func at(text string) record.Time {
	t, err := record.ParseTime(text)
	if err != nil {
		panic(err)
	}
	return t
}

// twoClusters are those of march: atlas by its group, of which the cores are doubled
// on the 11th; cms, of which no one knows anything before the 21st; and idle.
func twoClusters() *accounting.Capacities {
	always := func(cores int64) accounting.ClusterPart {
		return accounting.ClusterPart{From: record.None, To: record.None, Components: map[string]int64{"Cores": cores}}
	}
	group := func(name string) []accounting.NodeMatch {
		return []accounting.NodeMatch{{Key: "group_id", Values: []string{name}}}
	}
	more := always(10)
	more.From, more.Factor, more.Name = at("2026-03-11T00:00:00Z"), 1_900_000_000, "new"
	return accounting.NewCapacities(&accounting.CapacityPlan{
		Clusters: []accounting.Cluster{
			{Name: "atlas", Match: group("atlas"), Parts: []accounting.ClusterPart{always(10), more}},
			{Name: "cms", Match: group("cms"), Sources: []string{"head1/slurm/cms"}},
			{Name: "idle", Match: group("idle"), Parts: []accounting.ClusterPart{always(5)}},
		},
		Groups: []accounting.NodeGroup{{Name: "lhc", Clusters: []string{"atlas", "cms"}}, {Name: "known", Clusters: []string{"atlas"}, Groups: []string{"rest"}}, {Name: "rest", Clusters: []string{"idle"}}},
	}, []accounting.CapacityFact{{Source: record.Origin{Agent: "head1", Type: "slurm", Label: "cms"}, From: at("2026-03-21T00:00:00Z"), Components: map[string]int64{"Cores": 7, "GPUs": 2}}})
}

func withCapacity(o *api.Options, _ *store.Options) {
	o.Capacity = twoClusters
	o.Derivation = func() *usage.Derivation { return &usage.Derivation{Keys: twoClusters().Keys()} }
}

func TestUtilizationIsUsedOfWhatWasThere(t *testing.T) {
	rg := newRig(t, withCapacity, noon("2026-05-01T12:00:00Z"))
	march(rg)
	// In March atlas had 10 cores for 10 days and 20 for 21: 520 core days; idle had 155,
	// cms 77 in the last 11 days.
	for query, want := range map[string][]string{
		"window=2026-03&by=cluster&measure=Cores,capacity&unit=hour":         {"groups - atlas cms idle", "Cores: 24 3.000278 0 0", "capacity: - 12480 1848 3720"},
		"window=2026-03-10&by=cluster&measure=utilization,Cores":             {"groups atlas cms idle", "Cores: 3600 0.000003 0", "utilization: 0.004166666666666667 - 0"},
		"window=2026-03-10&measure=utilization":                              {"groups ", "utilization: 0.002777777777777778"}, // 3600 of 15 core days
		"window=2026-03-10&by=user_id&measure=utilization":                   {"groups bob carol", "utilization: 0.002777777777777778 0"},
		"window=2026-03-10&by=group_id&measure=utilization,capacity":         {"groups atlas cms", "utilization: 0.004166666666666667 -", "capacity: 864000 -"},
		"window=2026-03-10&by=group_id,user_id&measure=utilization":          {"groups atlas/bob cms/carol", "utilization: 0.004166666666666667 -"},
		"window=2026-03-25&by=group_id&measure=capacity,records":             {"groups", "records: ", "capacity: "},
		"window=2026-03-10&measure=utilization&where[cluster]=atlas":         {"groups ", "utilization: 0.004166666666666667"},
		"window=2026-03-10&measure=utilization&where[cluster]=known":         {"groups ", "utilization: 0.002777777777777778"},
		"window=2026-03-10&measure=utilization&where[group_id]=atlas":        {"groups ", "utilization: 0.004166666666666667"},
		"window=2026-03-10&measure=utilization&meta[group_id][c][0]=atlas":   {"groups ", "utilization: 0.004166666666666667"},
		"from=2026-03-09&to=2026-03-12&measure=utilization&bucket=day":       {"groups ", "utilization: 0 0.002777777777777778 0"},
		"from=2026-03-09&to=2026-03-12&measure=capacity&bucket=day":          {"groups ", "capacity: 1296000 1296000 2160000"},
		"window=2026-04-20&measure=utilization":                              {"groups ", "utilization: 0"},
		"window=2026-04-20&measure=capacity&by=cluster":                      {"groups atlas cms idle", "capacity: 1728000 604800 432000"},
		"window=2026-04-20&measure=capacity&by=user_id":                      {"groups", "capacity: "},
		"window=2026-05&measure=capacity&where[cluster]=idle":                {"groups ", "capacity: 216000"}, // up to now
		"window=2026-06&measure=utilization":                                 {"groups", "utilization: "},
		"window=2026-03&by=cluster&measure=capacity*GPUs&where[cluster]=lhc": {"groups cms", "capacity*GPUs: 1900800"},
		"window=2026-03-12&measure=capacity*su&where[cluster]=atlas":         {"groups ", "capacity*su: 696"}, // (10 + 10 × 1.9) × 24
		"window=2026-03-10&by=cluster&measure=utilization&top=1":             {"groups atlas +2", "utilization: 0.004166666666666667 0"},
		"window=2026-03-10&by=cluster,user_id&measure=utilization":           {"groups atlas/bob cms/carol", "utilization: 0.004166666666666667 -"},
	} {
		var s sheetOf
		rg.get("/v1/usage?"+query, &s)
		if d := cmp.Diff(want, s.rows()); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
	for query, want := range map[string]string{
		"measure=utilization*Disk":                   "utilization*Disk: no cluster has Disk; there is Cores, GPUs, su",
		"measure=utilization*su":                     "nothing says how many service units",
		"measure=utilization&where[cluster]=nowhere": `no cluster and no group of clusters \"nowhere\"; there are atlas, cms, idle, lhc, known, rest`,
	} {
		if a := rg.do("GET", "/v1/usage?window=2026-03&"+query, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v", query, a)
		}
	}
	if a := newRig(t).do("GET", "/v1/usage?window=2026-03&measure=utilization", ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, "add a cluster block") {
		t.Error(a)
	}
}

func TestUsage_LinesThatShareClusters_SaySo(t *testing.T) {
	rg := newRig(t, withCapacity, noon("2026-05-01T12:00:00Z"))
	march(rg)
	for query, want := range map[string]bool{
		"by=cluster": false, "by=group_id": false, "by=group_id&top=1": false, "": false, "by=user_id": true, "by=group_id,user_id": false, "by=user_id&where[cluster]=known": false,
	} {
		var s struct{ Measures []struct{ Shared bool } }
		rg.get("/v1/usage?window=2026-03-10&measure=utilization&"+query, &s)
		if s.Measures[0].Shared != want {
			t.Errorf("%s: shared is %v, want %v", query, s.Measures[0].Shared, want)
		}
	}
}

func TestWhatWasUsedWithoutKnownCapacityIsTold(t *testing.T) {
	rg := newRig(t, withCapacity, noon("2026-05-01T12:00:00Z"))
	march(rg)
	var s sheetOf
	rg.get("/v1/usage?window=2026-03&measure=utilization,Cores", &s)
	// dave's day is of no cluster, and carol's instant of cms when no one knew it.
	u := s.Measures[1]
	if u.Name != "utilization" || u.Lacking == nil || u.Lacking.Total != "86400.000003" {
		t.Errorf("%+v", u)
	}
	if got, want := u.Total.String(), fmt.Sprint(10801/(752*86400.0)); got != want {
		t.Error(got, want)
	}
}

func TestUtilizationIsComparedWithThatOfAnotherWindow(t *testing.T) {
	rg := newRig(t, withCapacity, noon("2026-05-01T12:00:00Z"))
	march(rg)
	var s sheetOf
	rg.get("/v1/usage?window=2026-03-10&compare=2026-03-31&by=cluster&measure=utilization,capacity", &s)
	u, c := s.Measures[0], s.Measures[1]
	if d := cmp.Diff([]string{"0.004166666666666667 - 0", "0.004166666666666667 0 0"}, []string{numbers(u.Values), numbers(u.Compared.Before)}); d != "" {
		t.Error(d) // on the 31st atlas used 2 of 20 cores for an hour
	}
	if d := cmp.Diff([]string{"864000 - 432000", "1728000 604800 432000", "-864000 - 0"}, []string{numbers(c.Values), numbers(c.Compared.Before), numbers(c.Compared.Difference)}); d != "" {
		t.Error(d)
	}
}

// ingestCensus stores what a source says of its jobs.
func (rg *rig) ingestCensus() {
	rg.t.Helper()
	frame := wire.Frame{Kind: wire.KindCensus, Census: wire.Census{At: at("2026-03-10T11:59:00Z"), Rows: []wire.CensusRow{
		{User: "alice", Queue: "gpu", Running: 3, Pending: 40}, {User: "bob", Queue: "long", Running: 5},
	}}}
	_, err := rg.node.Write(rg.t.Context(), &store.IngestCommand{
		Agent: "head1", Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 1, Now: 1,
		Facts: []store.Fact{{Kind: store.FactCensus, Source: record.Origin{Agent: "head1", Type: "slurm", Label: "cms"}, At: frame.Census.At, Data: wire.AppendFrame(nil, &frame)}},
	})
	if err != nil {
		rg.t.Fatal(err)
	}
}

// capacityOf is an answer of /v1/capacity.
type capacityOf struct {
	At       string
	Clusters []struct {
		Name       string
		Configured bool
		Components map[string]*json.Number
		Steps      []struct {
			From       string
			Components map[string]*json.Number
		}
	}
	Groups []struct {
		Name             string
		Members, Unknown []string
		Components       map[string]*json.Number
	}
	Census *struct {
		Running, Pending int
		Sources          []struct {
			Source, At string
			Rows       []struct {
				User    string
				Pending int
			}
		}
	}
}

func TestCapacityIsToldAtAnInstantAndInSteps(t *testing.T) {
	rg := newRig(t, withCapacity, noon("2026-03-10T12:00:00Z"))
	rg.ingestCensus()
	told := func(c map[string]*json.Number) (out string) {
		for _, name := range []string{"Cores", "GPUs", "su"} {
			if n, has := c[name]; has && n != nil {
				out += name + " " + n.String() + " "
			} else if has {
				out += name + " - "
			}
		}
		return out
	}
	for query, want := range map[string]string{
		"":                                  "atlas Cores 10 su 10 ;cms Cores - GPUs - su - ;idle Cores 5 su 5 ;lhc Cores - GPUs - su - ;known Cores 15 GPUs - su 15 ;rest Cores 5 GPUs - su 5 ;",
		"?at=2026-03-25":                    "atlas Cores 20 su 29 ;cms Cores 7 GPUs 2 su 7 ;idle Cores 5 su 5 ;lhc Cores 27 GPUs - su 36 ;known Cores 25 GPUs - su 34 ;rest Cores 5 GPUs - su 5 ;",
		"?at=2026-03-11&zone=Asia/Tokyo":    "atlas Cores 10 su 10 ;cms Cores - GPUs - su - ;idle Cores 5 su 5 ;lhc Cores - GPUs - su - ;known Cores 15 GPUs - su 15 ;rest Cores 5 GPUs - su 5 ;",
		"?window=2026-03&consistency=stale": "atlas Cores 10 su 10 ;cms Cores - GPUs - su - ;idle Cores 5 su 5 ;lhc Cores - GPUs - su - ;known Cores 15 GPUs - su 15 ;rest Cores 5 GPUs - su 5 ;",
	} {
		var c capacityOf
		rg.get("/v1/capacity"+query, &c)
		got := ""
		for _, cl := range c.Clusters {
			got += cl.Name + " " + told(cl.Components) + ";"
		}
		for _, g := range c.Groups {
			got += g.Name + " " + told(g.Components) + ";"
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", query, d)
		}
		steps := ""
		for _, s := range c.Clusters[0].Steps {
			steps += s.From + " " + told(s.Components) + ";"
		}
		if strings.Contains(query, "window") != (steps == "2026-03-01T00:00:00Z Cores 10 su 10 ;2026-03-11T00:00:00Z Cores 20 su 29 ;") {
			t.Errorf("%s: steps %s", query, steps)
		}
	}
	for query, want := range map[string]string{"at=x": "at: ", "when=now": "unknown field", "at=now&at=now": "more than once", "window=2026&from=2026": "cannot be combined", "zone=x": "time zone"} {
		if a := rg.do("GET", "/v1/capacity?"+query, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v", query, a)
		}
	}
}

func TestTheCensusIsForThoseWhoReadAllRecords(t *testing.T) {
	some := access.SomeRows(access.Grant{"group_id": {"atlas"}})
	for _, c := range []struct {
		name string
		who  access.Principal
		want string
	}{
		{"reads all", access.Principal{Rights: identity.Read, Rows: access.AllRows()}, "8 40 alice 40 bob 0"},
		{"reads some", access.Principal{Rights: identity.Read, Rows: some}, "refused"},
		{"reads some and monitors", access.Principal{Rights: identity.Read | identity.Monitor, Rows: some}, "refused"},
		{"monitors", access.Principal{Rights: identity.Monitor, Rows: access.AllRows()}, "8 40"},
	} {
		rg := newRig(t, withCapacity, noon("2026-03-10T12:00:00Z"), func(o *api.Options, _ *store.Options) {
			o.Who = func(*http.Request) access.Principal { return c.who }
		})
		rg.ingestCensus()
		if c.want == "refused" {
			rg.want("GET", "/v1/capacity", "", http.StatusForbidden, `{"type":"about:blank","title":"Forbidden","status":403,"detail":"`+access.ErrRows.Error()+`"}`+"\n")
			continue
		}
		var a capacityOf
		rg.get("/v1/capacity", &a)
		got := "none"
		if a.Census != nil {
			got = fmt.Sprint(a.Census.Running, a.Census.Pending)
			for _, r := range a.Census.Sources[0].Rows {
				got += fmt.Sprint(" ", r.User, " ", r.Pending)
			}
			if s := a.Census.Sources[0]; s.Source != "head1/slurm/cms" || s.At != "2026-03-10T11:59:00Z" {
				t.Errorf("%+v", s)
			}
		}
		if got != c.want || len(a.Clusters) != 3 {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
