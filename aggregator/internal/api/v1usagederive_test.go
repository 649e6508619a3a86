package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// halfPast is within the hour in which bob of atlas runs alone.
func halfPast() record.Time {
	t, err := record.ParseTime("2026-03-10T00:30:00Z")
	if err != nil {
		panic(err)
	}
	return t
}

// withBook has projects of groups, of which atlas moves within a job, and a price for
// cores that cms has not.
func withBook(o *api.Options, _ *store.Options) {
	project := usage.Key{Name: "project", From: []string{"group_id"}, Cuts: []record.Time{halfPast()}, Of: func(v []string, _ []bool, at record.Time) (string, bool) {
		switch {
		case v[0] == "atlas" && at < halfPast():
			return "old", true
		case v[0] != "":
			return "new", true
		}
		return "", false
	}}
	cost := usage.Weight{Name: "cost", Unit: "EUR", Components: []string{"Cores"}, From: []string{"group_id"}, Of: func(_ string, _ record.Kind, v []string, _ []bool, _ record.Time) (int64, bool) {
		return 12_000_000, v[0] != "cms" // 0.012 EUR an hour
	}}
	o.Derivation = func() *usage.Derivation {
		return &usage.Derivation{Keys: []usage.Key{project}, Weights: []usage.Weight{cost}}
	}
}

func TestUsageIsAnsweredByDerivedKeysAndInMoney(t *testing.T) {
	rg := newRig(t, withBook)
	march(rg)
	var s sheetOf
	rg.get("/v1/usage?window=2026-03&by=project&measure=records,Cores,cost", &s)
	// Half of the hour of a2 and the second of a1 are old; a3 and c1 are new.
	if d := cmp.Diff([]string{"groups - new old", "records: 1 3 2", "cost: 0.288 0.03 0.006003", "Cores: 86400 9000.000003 1801"}, s.rows()); d != "" {
		t.Error(d)
	}
	if cost := s.Measures[1]; cost.Kind != "worth" || *cost.Unit != "EUR" || len(cost.Unpriced) != 1 || cost.Unpriced[0].Component != "Cores" || cost.Unpriced[0].Total != "0.000003" {
		t.Errorf("%+v", cost)
	}
	for query, want := range map[string][]string{
		"by=user_id&measure=Cores&where[project]=old":            {"groups alice bob", "Cores: 1 1800"},
		"by=project&measure=records&where[project]=":             {"groups -", "records: 1"},
		"measure=Cores&where[group_id]=atlas,cms&unit=hour":      {"groups ", "Cores: 3.000278"},
		"by=group_id&measure=people&where[project]=new,old":      {"groups atlas cms", "people: 2 1"},
		"by=project&measure=cost&bucket=month&unit=hour":         {"groups - new old", "cost: 0.288 0.03 0.006003"},
		"by=project&measure=cost&top=1":                          {"groups - +2", "cost: 0.288 0.036003"},
		"measure=cost&compare=2026-04":                           {"groups ", "cost: 0.324003"},
		"by=project&measure=cost&credit=stop&where[project]=new": {"groups new", "cost: 0.012"},
	} {
		var s sheetOf
		rg.get("/v1/usage?window=2026-03&"+query, &s)
		if d := cmp.Diff(want, s.rows()); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
	csv := rg.do("GET", "/v1/usage?window=2026-03&by=project&measure=cost&format=csv", "").body
	file := rg.do("GET", "/v1/usage?window=2026-03&by=project&measure=cost&format=parquet", "")
	if !strings.HasPrefix(file.body, "PAR1") || !strings.HasSuffix(file.body, "PAR1") || file.header.Get("Content-Type") != "application/vnd.apache.parquet" {
		t.Errorf("%d %v %.100q", file.status, file.header, file.body)
	}
	if !strings.Contains(csv, "project,bucket,from,to,cost [EUR]\n") || !strings.Contains(csv, "\nold,,2026-03-01T00:00:00Z,2026-04-01T00:00:00Z,0.006003\n") {
		t.Error(csv)
	}
}

func TestWhatCannotBeDerivedIsRefusedWithWhatCan(t *testing.T) {
	rg := newRig(t, withBook)
	march(rg)
	for query, want := range map[string]string{
		"by=projekt":            `did you mean \"project\"?`,
		"by=colour":             "the keys are group_id, user_id, project",
		"measure=costs":         `did you mean \"cost\"?`,
		"measure=Disk":          "the measures are records, jobs, started, stopped, people, wait, efficiency, unused, running, queued, capacity, utilization, cost, Cores",
		"where[]=x":             "want where[KEY]=VALUE",
		"where[a]=x&where[a]=y": "where[a] given more than once",
	} {
		a := rg.do("GET", "/v1/usage?window=2026-03&"+query, "")
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}
