package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// A filter that no record can pass is refused with what is near, in every format;
// one that some record of another time passes is an empty answer.
func TestFilters_ThatNoRecordCanPass_AreRefusedWithNearNames(t *testing.T) {
	rg := newRig(t, withCapacity, noon("2026-05-01T12:00:00Z"))
	usage := "/v1/usage?window=2026-03&measure=records"
	if a := rg.do("GET", usage+"&where[group]=atlas", ""); a.status != http.StatusOK {
		t.Error("without any record nothing is known of names:", a)
	}
	march(rg)
	for query, want := range map[string]string{
		usage + "&where[group]=atlas":                       `no record has a meta key \"group\"; did you mean \"group_id\"?`,
		usage + "&where[group_id]=atlsa":                    `no record has group_id \"atlsa\"; did you mean \"atlas\"?`,
		usage + "&where[group_id]=atlsa,nothing&by=user_id": `no record has group_id \"atlsa\" or \"nothing\"`,
		usage + "&where[group_id]=atlsa&format=csv":         `did you mean \"atlas\"?`,
		usage + "&meta[group_id][c][0]=quite-other":         `no record has group_id \"quite-other\"; known are atlas, cms`,
		usage + "&component[Corse][gte]=1":                  `no record has a component \"Corse\"; did you mean \"Cores\"?`,
		"/v1/records?component[Corse][gte]=1":               `no record has a component \"Corse\"; did you mean \"Cores\"?`,
		"/v1/records?meta[group_id][c][0]=atlsa":            `did you mean \"atlas\"?`,
		"/v1/records?meta[group][c][0]=atlas&format=csv":    `did you mean \"group_id\"?`,
		"/v1/records?meta[group_id][c]=Atlas&format=ndjson": `did you mean \"atlas\"?`,
	} {
		if a := rg.do("GET", query, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v, want %s", query, a, want)
		}
	}
	for _, query := range []string{
		"/v1/usage?window=2020&measure=records&where[group_id]=atlas", "/v1/usage?window=2020&measure=records&where[group_id]=atlas,atlsa",
		"/v1/usage?window=2020&measure=records&where[group_id]=", "/v1/records?meta[group_id][c][0]=atlas&start_time[gt]=2040-01-01T00:00:00Z",
		"/v1/records?meta[group_id][dnc][0]=atlsa", "/v1/records?component[Cores][gte]=4711", "/v1/usage?window=2026-03&where[cluster]=idle&measure=records",
	} {
		if a := rg.do("GET", query, ""); a.status != http.StatusOK {
			t.Errorf("%s: %v", query, a)
		}
	}
}

// Wherever a key is taken, a key that no record has is refused with the key that is near.
func TestKeys_ThatNoRecordHas_AreRefusedWithTheNearKey(t *testing.T) {
	rg := newRig(t, withCapacity, noon("2026-05-01T12:00:00Z"))
	march(rg)
	places := []string{
		"/v1/usage?window=%s&by={}", "/v1/usage?window=%s&by=user_id,{}&measure=records", "/v1/usage?window=%s&where[{}]=atlas", "/v1/usage?window=%s&meta[{}][c][0]=atlas",
		"/v1/usage?window=%s&measure=people&people={}", "/v1/records?ran_from=%s-01-01T00:00:00Z&meta[{}][c][0]=atlas", "/v1/records?ran_from=%s-01-01T00:00:00Z&order=meta.{}",
		"/v1/records?ran_from=%s-01-01T00:00:00Z&order=-meta.{}&format=csv", "/v1/distributions?window=%s&where[{}]=atlas", "/v1/distributions?window=%s&meta[{}][c][0]=atlas",
		"/v1/reports/usage?period=%s&by={}", "/v1/reports/usage?period=%s&where[{}]=atlas", "/v1/reports/statement?period=%s-03&of={}=atlas", "/v1/reports/efficiency?period=%s&by={}",
		"/v1/reports/distributions?period=%s&where[{}]=atlas",
	}
	for _, place := range places {
		for name, want := range map[string]string{"group": "group_id", "Group": "group_id", "group-id": "group_id", "grup_id": "group_id", "user": "user_id", "usr": "user_id", "proup_id": "group_id"} {
			for _, year := range []string{"2026", "2031"} {
				path := strings.ReplaceAll(fmt.Sprintf(place, year), "{}", name)
				a := rg.do("GET", path, "")
				if a.status != http.StatusBadRequest || !strings.Contains(a.body, fmt.Sprintf(`no record has a meta key \"%s\"; did you mean \"%s\"?`, name, want)) {
					t.Errorf("%s: %v, want %s", path, a, want)
				}
			}
		}
		path := strings.ReplaceAll(fmt.Sprintf(place, "2026"), "{}", "group_id")
		if a := rg.do("GET", path, ""); a.status != http.StatusOK {
			t.Errorf("%s: %v", path, a)
		}
	}
	for path, want := range map[string]string{
		"/v1/records?order=component.Corse": `no record has a component \"Corse\"; did you mean \"Cores\"?`,
		"/v1/usage?window=2026&by=colour":   `no record has a meta key \"colour\"; the keys are group_id, user_id`,
	} {
		if a := rg.do("GET", path, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v, want %s", path, a, want)
		}
	}
	if a := rg.do("GET", "/v1/records?order=meta.state", ""); a.status != http.StatusOK {
		t.Errorf("a page may order by a column that no record has: %v", a)
	}
}

// Near names are those of records that the reader sees; a name that only others have is
// answered like one that no one has.
func TestFilters_OfAReaderOfSomeRows_NameNoOthers(t *testing.T) {
	own := access.Principal{Name: "cms", Rights: identity.Read | identity.Write, Rows: access.SomeRows(access.Grant{"group_id": {"cms"}})}
	rg := newRig(t, withDirectory(t), noon("2026-04-10T12:00:00Z"), func(o *api.Options, _ *store.Options) {
		o.Who = func(*http.Request) access.Principal { return own }
	})
	for _, group := range []string{"atlas", "cms"} {
		rg.add(fmt.Sprintf(`{"record_id":"%[1]s","meta":{"group_id":["%[1]s"],"key-of-%[1]s":["x"]},"components":[{"name":"Cores","amount":1,"scores":[]}],"start_time":"2026-03-02T00:00:00Z","stop_time":"2026-03-02T01:00:00Z"}`, group))
	}
	for _, path := range []string{"/v1/usage?window=2026-03&measure=records&", "/v1/records?"} {
		for _, filter := range []string{"meta[group_id][c][0]=atlsa", "meta[key-of-atls][c][0]=x", "where[group_id]=atlsa", "where[key-of-atls]=x", "where[project]=ne"} {
			if strings.HasPrefix(filter, "where") && strings.Contains(path, "records?") {
				continue
			}
			a := rg.do("GET", path+filter, "")
			if a.status != http.StatusBadRequest || strings.Contains(a.body, "atlas") || strings.Contains(a.body, "new") {
				t.Errorf("%s%s: %v", path, filter, a)
			}
		}
		own, other := rg.do("GET", path+"meta[group_id][c][0]=atlas", ""), rg.do("GET", path+"meta[group_id][c][0]=ghost", "")
		if strings.ReplaceAll(own.body, "atlas", "ghost") != other.body || own.status != other.status {
			t.Errorf("what others have is told from what nobody has: %v, %v", own, other)
		}
	}
}

// A word that is neither a key nor a measure is answered with what is near, and one that is
// the other of the two, or needs a configuration, with that.
func TestUsage_AWordInTheWrongPlace_IsToldItsPlace(t *testing.T) {
	for _, priced := range []bool{true, false} {
		set := []change{withCapacity, noon("2026-05-01T12:00:00Z")}
		if priced {
			set = append(set, withBook)
		}
		rg := newRig(t, set...)
		march(rg)
		rg.add(`{"record_id":"g1","meta":{"group_id":["cms"]},"components":[{"name":"GPUs","amount":1,"scores":[]},{"name":"TotalCPU","amount":60,"scores":[]}],"start_time":"2026-03-02T00:00:00Z","stop_time":"2026-03-02T01:00:00Z"}`)
		want := map[string]string{
			"by=su":         "it is a measure, and service units are not configured; add",
			"by=energy":     "it is a measure, and energy is not configured; add an energy block",
			"measure=co2":   "energy is not configured; add an energy block",
			"measure=su":    "service units are not configured; add",
			"by=cores":      "it is a measure; use -measure Cores, or measure=Cores in /v1",
			"by=cor":        "the keys are group_id",
			"measure=group": "the measures are records",
		}
		cost := "it is a measure, and prices are not configured; add a price block"
		if priced {
			cost = "it is a measure; use -measure cost, or measure=cost in /v1"
			want["measure=project"], want["measure=costs"] = "it is a key; use -by project, or by=project in /v1", `did you mean \"cost\"?`
		} else {
			want["measure=cluster"] = "it is a key; use -by cluster"
			want["measure=cost"] = `invalid measure \"cost\": prices are not configured; add a price block`
		}
		want["by=cost"] = cost
		for _, measure := range []string{"records", "started", "wait", "people", "efficiency", "running", "queued", "capacity", "utilization", "Cores", "Memory", "GPUs", "TotalCPU"} {
			want["by="+measure] = fmt.Sprintf("it is a measure; use -measure %s, or measure=%[1]s in /v1", measure)
		}
		for _, key := range []string{"group_id", "user_id"} {
			want["measure="+key] = fmt.Sprintf("it is a key; use -by %s, or by=%[1]s in /v1", key)
		}
		for measure, near := range map[string]string{
			"cpuhours": "TotalCPU", "cpu-hours": "TotalCPU", "CPU_hours": "TotalCPU", "corehours": "Cores", "core-hours": "Cores", "gpuhours": "GPUs", "GPU-hours": "GPUs",
			"core": "Cores", "gpu": "GPUs", "cpu": "TotalCPU", "record": "records", "Cores*SH": "Cores*HS", "utilisation": "utilization",
		} {
			want["measure="+measure] = fmt.Sprintf(`did you mean \"%s\"?`, near)
		}
		for query, words := range want {
			for _, window := range []string{"2026", "2031"} {
				a := rg.do("GET", "/v1/usage?window="+window+"&"+query, "")
				if a.status != http.StatusBadRequest || !strings.Contains(a.body, words) {
					t.Errorf("priced %v, %s: %v, want %s", priced, query, a, words)
				}
			}
		}
	}
}

func TestUsage_CPUHoursWithoutCPUSeconds_AreThoseOfCores(t *testing.T) {
	rg := newRig(t)
	march(rg)
	if a := rg.do("GET", "/v1/usage?window=2026&measure=cpuhours", ""); !strings.Contains(a.body, `did you mean \"Cores\"?`) {
		t.Error(a)
	}
	if a := rg.do("GET", "/v1/usage?window=2026&by=group_id&order=core", ""); !strings.Contains(a.body, `invalid order \"core\": did you mean \"Cores\"?`) {
		t.Error(a)
	}
}
