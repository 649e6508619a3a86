package api_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// pays gives a server prices and budgets, and a key project, which is the first
// letter of the group.
func pays(t *testing.T) change {
	at := func(s string) record.Time {
		v, err := record.ParseTime(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	billionths := func(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(1e9)) }
	prices, budgets, err := accounting.NewPricesAndBudgets(accounting.PriceSettings{
		Lists: []accounting.PriceList{
			{Name: "standard", Currency: "EUR", From: at("2026-01-01T00:00:00Z"), To: record.None, Rules: []accounting.PriceRule{
				{Component: "Cores", Billionths: 1e7}, {Component: "Cores", Billionths: 5e6, When: []accounting.PriceCondition{{Key: "group_id", Value: "atlas"}}},
			}},
			{Name: "standard", Currency: "EUR", From: at("2026-03-15T00:00:00Z"), To: record.None, Rules: []accounting.PriceRule{
				{Component: "Cores", Billionths: 2e7}, {Component: "TotalCPU", Kind: record.Total, Billionths: 1},
			}},
		},
		Budgets: []accounting.Budget{
			{Name: "a-march", Scope: []accounting.PriceCondition{{Key: "project", Value: "a"}}, Unit: "EUR", Amount: accounting.Billionths(billionths(20)), Every: calendar.Month, From: record.None, To: record.None},
			{Name: "cms", Scope: []accounting.PriceCondition{{Key: "group_id", Value: "cms"}}, Unit: accounting.CoreHours, Amount: accounting.Billionths(billionths(5)), Every: calendar.Year, From: record.None, To: record.None, Zone: "Europe/Berlin"},
			{Name: "su", Scope: []accounting.PriceCondition{{Key: "group_id", Value: "cms"}}, Unit: accounting.ServiceUnits, Amount: accounting.Billionths(billionths(5)), From: at("2026-01-01T00:00:00Z"), To: at("2026-02-01T00:00:00Z")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	weight, _ := prices.Weight()
	book := &usage.Derivation{Weights: []usage.Weight{weight}, Keys: []usage.Key{{Name: "project", From: []string{"group_id"}, Of: func(v []string, lacks []bool, _ record.Time) (string, bool) {
		if lacks[0] {
			return "", false
		}
		return v[0][:1], true
	}}}}
	return func(o *api.Options, _ *store.Options) {
		o.Money = func() api.Money { return api.Money{Prices: prices, Budgets: budgets} }
		o.Derivation = func() *usage.Derivation { return book }
	}
}

// spent are the records of the tests of budgets.
func spent(rg *rig) {
	job := func(id, group, start, stop string, cores int, more string) string {
		if stop != "" {
			stop = fmt.Sprintf(`,"stop_time":"%s"`, stop)
		}
		return fmt.Sprintf(`{"record_id":"%s","meta":{"group_id":["%s"]%s},"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":"%s"%s}`, id, group, more, cores, start, stop)
	}
	rg.add(
		job("1", "atlas", "2026-02-28T00:00:00Z", "2026-03-02T00:00:00Z", 10, ""),    // 24 h of March at 0.005: 1.2
		job("2", "alice", "2026-03-14T12:00:00Z", "2026-03-15T12:00:00Z", 10, ""),    // 12 h at 0.01, 12 h at 0.02: 3.6
		job("3", "atlas", "2026-03-19T12:00:00Z", "", 2, `,"time_limit":["172800"]`), // 24 h at 0.02: 0.96, and 24 h more
		job("4", "cms", "2026-03-20T10:00:00Z", "", 4, ""),
	)
}

type budgetsOf struct {
	Budgets []struct {
		Name, Unit          string
		Problem             *string
		Amount, Used, Share json.Number
		Reserved, Left      json.Number
		Exhausted           bool
		Running, Unlimited  int
		Pace                *struct {
			PerDay json.Number `json:"per_day"`
		}
		GoneAt *string `json:"gone_at"`
		Period struct {
			Name, State string
			From, To    string
		}
	}
	Complete struct{ Open int }
}

func (b *budgetsOf) rows() (out []string) {
	for _, x := range b.Budgets {
		line := fmt.Sprint(x.Name, " ", x.Period.Name, " ", x.Period.State, " ", x.Amount, " ", x.Unit)
		if x.Problem != nil {
			out = append(out, line+" "+*x.Problem)
			continue
		}
		line += fmt.Sprint(": used ", x.Used, ", reserved ", x.Reserved, ", left ", x.Left, ", share ", x.Share)
		if x.Pace != nil {
			line += ", a day " + x.Pace.PerDay.String()
		}
		if x.GoneAt != nil {
			line += ", gone at " + *x.GoneAt
		}
		out = append(out, line)
	}
	return out
}

func TestBudgetsHaveWhatIsUsedReservedAndLeft(t *testing.T) {
	rg := newRig(t, noon("2026-03-20T12:00:00Z"), pays(t))
	spent(rg)
	var b budgetsOf
	rg.get("/v1/budgets", &b)
	if d := cmp.Diff([]string{
		"a-march 2026-03 present 20 EUR: used 5.76, reserved 0.96, left 13.28, share 0.288, a day 0.295385",
		"cms 2026 present 5 core-hours: used 8, reserved 0, left -3, share 1.6, a day 0.409382, gone at 2026-03-20T11:15:00Z",
		"su  past 5 SU no prices or factors configured for SU",
	}, b.rows()); d != "" {
		t.Error(d)
	}
	if b.Complete.Open != 2 {
		t.Error(b.Complete.Open)
	}
	for query, want := range map[string]string{
		"?name=a-march&at=2026-02":          "a-march 2026-02 past 20 EUR: used 1.2, reserved 0, left 18.8, share 0.06",
		"?name=a-march&at=last-month":       "a-march 2026-02 past 20 EUR: used 1.2, reserved 0, left 18.8, share 0.06",
		"?name=cms&at=2027":                 "cms 2027 future 5 core-hours: used 0, reserved 0, left 5, share 0",
		"?name=cms&at=2026-12-31T23:30:00Z": "cms 2027 future 5 core-hours: used 0, reserved 0, left 5, share 0",
		"?name=a-march&at=2026-04-01":       "a-march 2026-04 future 20 EUR: used 0, reserved 0, left 20, share 0",
	} {
		rg.get("/v1/budgets"+query, &b)
		if d := cmp.Diff([]string{want}, b.rows()); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
}

func TestTheCostOfUsageIsThatOfBudgets(t *testing.T) {
	rg := newRig(t, noon("2026-03-20T12:00:00Z"), pays(t))
	spent(rg)
	var s sheetOf
	rg.get("/v1/usage?window=2026-03&by=project&measure=cost", &s)
	if d := cmp.Diff([]string{"groups a c", "cost: 5.76 0.16"}, s.rows()); d != "" {
		t.Error(d)
	}
}

func TestPricesAreThoseOfATime(t *testing.T) {
	rg := newRig(t, noon("2026-03-20T12:00:00Z"), pays(t))
	var p struct {
		Currency *string
		Prices   []struct {
			Component, Per, From string
			To                   *string
			Price                json.Number
			Match                map[string]string
		}
	}
	for query, want := range map[string]string{
		"":                               "Cores/hour 0.02 map[]; TotalCPU/unit 0.000000001 map[]",
		"?at=2026-02":                    "Cores/hour 0.005 map[group_id:atlas] to 2026-03-15T00:00:00Z; Cores/hour 0.01 map[] to 2026-03-15T00:00:00Z",
		"?at=2025":                       "",
		"?window=2026-03-01..2026-03-15": "Cores/hour 0.005 map[group_id:atlas] to 2026-03-15T00:00:00Z; Cores/hour 0.01 map[] to 2026-03-15T00:00:00Z; Cores/hour 0.02 map[]; TotalCPU/unit 0.000000001 map[]",
		"?from=2026-03-15&to=2026-04":    "Cores/hour 0.02 map[]; TotalCPU/unit 0.000000001 map[]",
	} {
		p.Prices = nil
		rg.get("/v1/prices"+query, &p)
		var got []string
		for _, x := range p.Prices {
			line := fmt.Sprint(x.Component, "/", x.Per, " ", x.Price, " ", x.Match)
			if x.To != nil {
				line += " to " + *x.To
			}
			got = append(got, line)
		}
		if d := cmp.Diff(want, strings.Join(got, "; ")); d != "" || p.Currency == nil || *p.Currency != "EUR" {
			t.Errorf("%s: %s", query, d)
		}
	}
}

func TestBudgetsAreRefusedWithAReason(t *testing.T) {
	rg := newRig(t, pays(t))
	for path, want := range map[string]string{
		"/v1/budgets?name=atlas":         "404 `cms`",
		"/v1/budgets?at=sometime":        "400 invalid time",
		"/v1/budgets?limit=3":            "400 `name`, `at`",
		"/v1/budgets?name=a&name=b":      "400 more than once",
		"/v1/budgets?name=%zz":           "400 %zz",
		"/v1/prices?at=sometime":         "400 invalid time",
		"/v1/prices?name=a":              "400 `at`",
		"/v1/prices?window=sometime":     "400 window",
		"/v1/prices?at=2026&window=2026": "400 at cannot be combined",
	} {
		a := rg.do("GET", path, "")
		status, text, _ := strings.Cut(want, " ")
		var p struct{ Detail string }
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || fmt.Sprint(a.status) != status || !strings.Contains(p.Detail, text) {
			t.Errorf("%s: %v, want %s", path, a, want)
		}
	}
	some := access.Principal{Name: "cms", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"cms"}})}
	rg = newRig(t, pays(t), func(o *api.Options, _ *store.Options) { o.Who = func(*http.Request) access.Principal { return some } })
	if a := rg.do("GET", "/v1/budgets", ""); a.status != 200 || !strings.Contains(a.body, `"name":"cms"`) {
		t.Error(a)
	}
	if a := rg.do("GET", "/v1/prices", ""); a.status != 200 {
		t.Error(a)
	}
}

func TestBudgets_SomeRecords_OnlyThoseOfWhichAllAreSeen(t *testing.T) {
	for _, c := range []struct {
		grants []access.Grant
		want   int
	}{
		{[]access.Grant{{"group_id": {"cms", "atlas"}}}, 200},
		{[]access.Grant{{"user_id": {"eve"}}, {"group_id": {"cms"}}}, 200},
		{[]access.Grant{{"group_id": {"atlas"}}}, 403},
		{[]access.Grant{{"group_id": {"cms"}, "user_id": {"eve"}}}, 403}, // some of the group
		{[]access.Grant{{"user_id": {"eve"}}}, 403},
		{[]access.Grant{{}}, 403},
		{nil, 403},
	} {
		some := access.Principal{Name: "some", Rights: identity.Read, Rows: access.SomeRows(c.grants...)}
		rg := newRig(t, pays(t), func(o *api.Options, _ *store.Options) { o.Who = func(*http.Request) access.Principal { return some } })
		if a := rg.do("GET", "/v1/budgets", ""); a.status != c.want || strings.Contains(a.body, `"name":"cms"`) != (c.want == 200) {
			t.Errorf("%v: %v", c.grants, a)
		}
	}
}

func TestAClusterWithoutPricesHasNone(t *testing.T) {
	rg := newRig(t)
	var b budgetsOf
	var p struct {
		Currency *string
		Prices   []any
	}
	rg.get("/v1/budgets", &b)
	rg.get("/v1/prices", &p)
	if len(b.Budgets) != 0 || len(p.Prices) != 0 || p.Currency != nil {
		t.Errorf("%+v %+v", b, p)
	}
}
