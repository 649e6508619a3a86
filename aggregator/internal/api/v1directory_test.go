package api_test

import (
	"encoding/json"
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
)

// withDirectory has the projects of atlas and of cms, which is exempt, and what was
// contributed: of which that of darwin is there for half of March.
func withDirectory(t *testing.T) change {
	t.Helper()
	yes, one := true, accounting.One
	half, err := accounting.ParseTime("2026-03-16T12:00:00Z", nil)
	if err != nil {
		t.Fatal(err)
	}
	project := func(id, pi, group string, exempt *bool) accounting.Project {
		return accounting.Project{ID: id, From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: pi, Groups: []string{group}, Exempt: exempt}}}
	}
	gave := func(by, credit string, amount accounting.Decimal, from record.Time) accounting.Contribution {
		return accounting.Contribution{ID: by, By: by, Credit: credit, Amount: amount * one, Split: 100 * one, Factor: one, From: from, To: record.None}
	}
	d, err := accounting.NewDirectory(accounting.DirectorySettings{
		People:        []accounting.Person{{ID: "bell", Name: "A. Bell", Address: "bell@example.org"}, {ID: "bob", Groups: []accounting.Groups{{From: record.None, Names: []string{"cms", "atlas"}}}}},
		Projects:      []accounting.Project{project("higgs", "bell", "atlas", nil), project("dark", "sagan", "cms", &yes), project("idle", "turing", "none", nil)},
		Units:         accounting.UnitRates{Default: &one},
		Contributions: []accounting.Contribution{gave("bell", "", 10, record.None), gave("phys", "darwin", 20, half), gave("sagan", "", 5, record.None)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := d.Units()
	return func(o *api.Options, _ *store.Options) {
		o.Directory = func() *accounting.Directory { return d }
		o.Derivation = func() *usage.Derivation { return &usage.Derivation{Keys: d.Keys(), Weights: []usage.Weight{w}} }
	}
}

// compact reads an answer without spaces.
func compact(t *testing.T, rg *rig, path string) map[string]json.RawMessage {
	t.Helper()
	var out map[string]json.RawMessage
	rg.get(path, &out)
	return out
}

func TestTheDirectoryIsAnsweredAsItIsAtAnInstant(t *testing.T) {
	rg := newRig(t, withDirectory(t), noon("2026-04-01T12:00:00Z"))
	march(rg)
	got := compact(t, rg, "/v1/directory?unclaimed=true")
	for part, want := range map[string]string{
		"at":     `"2026-04-01T12:00:00Z"`,
		"keys":   `{"user":"user_id","group":"group_id","host":"host"}`,
		"people": `[{"id":"bell","name":"A. Bell","email":"bell@example.org","groups":[],"project":null,"pi":null},{"id":"bob","name":null,"email":null,"groups":["cms","atlas"],"project":"dark","pi":"sagan"}]`,
		"projects": `[{"id":"dark","pi":"sagan","pi_name":null,"groups":["cms"],"users":[],"exempt":true,"since":null,"until":null},` +
			`{"id":"higgs","pi":"bell","pi_name":"A. Bell","groups":["atlas"],"users":[],"exempt":false,"since":null,"until":null},` +
			`{"id":"idle","pi":"turing","pi_name":null,"groups":["none"],"users":[],"exempt":false,"since":null,"until":null}]`,
		"host_classes":  `[]`,
		"service_units": `{"unit":"SU","components":{"Cores":1},"seconds":{},"default_factor":1}`,
		"unclaimed":     `{"from":"2026-01-01T12:00:00Z","to":"2026-04-01T12:00:00Z","lines":[{"group":null,"user":"dave","records":1}],"more":0}`,
	} {
		if d := cmp.Diff(want, string(got[part])); d != "" {
			t.Errorf("%s: %s", part, d)
		}
	}
	if list := string(got["contributions"]); strings.Count(list, `"id"`) != 3 || !strings.Contains(list, `{"id":"phys","by":"phys","credit":"darwin","amount":20,"split":100,"su_factor":1,"units":2000.000000000,"from":"2026-03-16T12:00:00Z","to":null}`) {
		t.Error(list)
	}
	before := compact(t, rg, "/v1/directory?at=2026-03")
	if list := string(before["contributions"]); strings.Count(list, `"id"`) != 2 || string(before["unclaimed"]) != "null" {
		t.Error(list, string(before["unclaimed"]))
	}
}

func TestUsageIsAnsweredBesideContributions(t *testing.T) {
	rg := newRig(t, withDirectory(t))
	march(rg)
	got := compact(t, rg, "/v1/subscription?window=2026-03")
	for part, want := range map[string]string{
		"window": `{"from":"2026-03-01T00:00:00Z","to":"2026-04-01T00:00:00Z"}`,
		"used":   "3.000277779", "contributed": "2000.000000000", "unclaimed": "24.000000000", "unpriced": "[]", "credit": `"spread"`, "unit": `"SU"`, "zone": `"UTC"`,
		"shares": `[{"pi":"bell","name":"A. Bell","state":"both","used":3.000277778,"exempt_used":0.000000000,"used_share":1.000000000,"contributed":1000.000000000,"contribution_share":0.500000000,"ratio":1.999999999},` +
			`{"pi":"sagan","name":null,"state":"exempt","used":0.000000001,"exempt_used":0.000000001,"used_share":0.000000000,"contributed":500.000000000,"contribution_share":0.250000000,"ratio":0.000000001},` +
			`{"pi":"darwin","name":null,"state":"under","used":0.000000000,"exempt_used":0.000000000,"used_share":0.000000000,"contributed":1000.000000000,"contribution_share":0.500000000,"ratio":null},` +
			`{"pi":"turing","name":null,"state":"neither","used":0.000000000,"exempt_used":0.000000000,"used_share":0.000000000,"contributed":0.000000000,"contribution_share":0.000000000,"ratio":null}]`,
	} {
		if d := cmp.Diff(want, string(got[part])); d != "" {
			t.Errorf("%s: %s", part, d)
		}
	}
	stop := compact(t, rg, "/v1/subscription?from=2026-04&to=2026-05&credit=stop&zone=Europe/Berlin")
	// All of a3 belongs to its stop.
	if string(stop["used"]) != "4.000000000" || string(stop["credit"]) != `"stop"` || string(stop["window"]) != `{"from":"2026-03-31T22:00:00Z","to":"2026-04-30T22:00:00Z"}` {
		t.Error(string(stop["used"]), string(stop["window"]))
	}
}

// A filter chooses what was used; what was contributed stays.
func TestSubscription_Filters_ChooseUse(t *testing.T) {
	rg := newRig(t, withDirectory(t))
	march(rg)
	for where, used := range map[string]string{
		"where[group_id]=atlas": "3.000277778", "where[user_id]=alice": "0.000277778", "where[user_id]=alice,bob&where[group_id]=atlas": "3.000277778",
		"where[project]=dark": "0.000000001", "where[group_id]=cms&where[user_id]=alice": "0.000000000",
	} {
		got := compact(t, rg, "/v1/subscription?window=2026-03&"+where)
		if string(got["used"]) != used || string(got["contributed"]) != "2000.000000000" {
			t.Errorf("%s: %s used, %s contributed, want %s", where, got["used"], got["contributed"], used)
		}
	}
	for where, want := range map[string]string{
		"where[group_id]=atlsa": `did you mean \"atlas\"?`, "where[group]=atlas": `did you mean \"group_id\"?`, "where[group_id]=a&where[group_id]=b": "more than once", "where[]=a": "where[]",
	} {
		if a := rg.do("GET", "/v1/subscription?window=2026-03&"+where, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v, want %s", where, a, want)
		}
	}
}

func TestWhatIsNoQuestionOfTheDirectoryIsRefused(t *testing.T) {
	rg := newRig(t, withDirectory(t))
	for path, want := range map[string]string{
		"/v1/directory?at=soon":                    "at: ",
		"/v1/directory?unclaimed=perhaps":          "want true or false",
		"/v1/directory?of=bell":                    "unknown field `of`",
		"/v1/directory?at=now&at=now":              "at given more than once",
		"/v1/subscription?window=soon":             "invalid window",
		"/v1/subscription?window=2026&from=2025":   "cannot be combined",
		"/v1/subscription?zone=Mars":               "Mars",
		"/v1/subscription?credit=never":            "want spread or stop",
		"/v1/subscription?from=2026-03&to=2026-02": "ends before",
	} {
		a := rg.call("GET", path, nil)
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, want) && !strings.Contains(a.body, "no time in it") {
			t.Errorf("%s: %v", path, a)
		}
	}
	bare := newRig(t)
	if a := bare.do("GET", "/v1/subscription", ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, "service_units") {
		t.Error(a)
	}
	if a := bare.do("GET", "/v1/directory", ""); a.status != http.StatusOK {
		t.Error(a)
	}
}

func TestTheDirectoryIsNotForWhoSeesSomeRecordsOnly(t *testing.T) {
	own := access.Principal{Name: "cms", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"cms"}})}
	rg := newRig(t, withDirectory(t), func(o *api.Options, _ *store.Options) {
		o.Who = func(*http.Request) access.Principal { return own }
	})
	for _, path := range []string{"/v1/directory", "/v1/subscription?window=2026-03"} {
		if a := rg.do("GET", path, ""); a.status != http.StatusForbidden {
			t.Error(path, a)
		}
	}
}
