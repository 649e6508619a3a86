package web_test

import (
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// reader is someone who reads the records of grants; all without one.
func reader(rights identity.Rights, grants ...access.Grant) access.Principal {
	p := access.Principal{Name: "reader", Rights: rights, Rows: access.AllRows()}
	if len(grants) > 0 {
		p.Rows = access.SomeRows(grants...)
	}
	return p
}

func TestFirstPage_FollowsTheRole(t *testing.T) {
	s := filled(t)
	for want, who := range map[string]access.Principal{
		"":             reader(identity.Read | identity.Monitor),
		"/ui/centre":   reader(identity.Read),
		"/ui/me":       reader(identity.Read, access.Grant{"user_id": {"alice"}}),
		"/ui/projects": reader(identity.Read, access.Grant{"group_id": {"atlas"}}, access.Grant{"user_id": {"alice"}}),
	} {
		code, body, head := s.getAs(who, "/")
		if want == "" {
			if code != http.StatusOK || !strings.Contains(body, "<h1>Overview</h1>") {
				t.Errorf("%v: %d", who, code)
			}
			continue
		}
		if code != http.StatusFound || head.Get("Location") != want {
			t.Errorf("%v: %d %q, want %s", who, code, head.Get("Location"), want)
		}
		if code, _, _ := s.getAs(who, want); code != http.StatusOK {
			t.Errorf("%s: %d", want, code)
		}
		if code, body, _ := s.getAs(who, "/?of=Cores"); code != http.StatusOK || !strings.Contains(body, "<h1>Overview</h1>") {
			t.Errorf("a part of the overview that was asked for: %d", code)
		}
	}
}

func TestFirstPage_InvestigatorOfUsersOrGroups_HasOwnUsageAndProjects(t *testing.T) {
	s := filled(t)
	for _, led := range []access.Grant{{"user_id": {"bob"}}, {"group_id": {"atlas"}}} {
		pi := reader(identity.Read, access.Grant{"user_id": {"alice"}}, led)
		pi.Person = "alice"
		if _, _, head := s.getAs(pi, "/"); head.Get("Location") != "/ui/projects" {
			t.Errorf("%v: %v", led, head)
		}
		code, body, _ := s.getAs(pi, "/ui/me")
		for _, want := range []string{`href="/ui/me" aria-current="page">My usage`, ">My projects</a>", "alice"} {
			if code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%v: %d, no %s in\n%s", led, code, want, body)
			}
		}
		if strings.Contains(body, "Enter a user") {
			t.Errorf("%v: no user is chosen", led)
		}
	}
}

func TestNavigation_NamesOnlyPagesThatAnswer(t *testing.T) {
	s := filled(t)
	link := regexp.MustCompile(`<a href="([^"]*)"`)
	for _, who := range []access.Principal{
		access.Daemon(), reader(identity.Read), reader(identity.Monitor), reader(identity.Read, access.Grant{"user_id": {"alice"}}), reader(identity.Read, access.Grant{"group_id": {"atlas"}}),
	} {
		_, body, _ := s.getAs(who, "/ui/nowhere")
		_, nav, _ := strings.Cut(body, `<nav aria-label="Pages">`)
		nav, _, _ = strings.Cut(nav, "</nav>")
		found := link.FindAllStringSubmatch(nav, -1)
		if len(found) == 0 {
			t.Errorf("%v: no page", who)
		}
		for _, m := range found {
			if code, _, _ := s.getAs(who, m[1]); code != http.StatusOK && code != http.StatusFound {
				t.Errorf("%v: %s answers %d", who, m[1], code)
			}
		}
	}
}

func TestBoards_Filled_HaveFiguresAndCharts(t *testing.T) {
	s := filled(t)
	for path, wants := range map[string][]string{
		"/ui/me?user=bob":                           {"<h1>Usage of bob</h1>", "The largest jobs", "The latest jobs", "nemo-2", "<svg viewBox", "<b title=", "core-hours</span>", "CPU efficiency", "minutes"},
		"/ui/me":                                    {"Enter a user"},
		"/ui/me?user=nobody":                        {"nobody"},
		"/ui/projects":                              {"<h1>Projects</h1>", "higgs", "Members", "atlas-2026, left of", "cms, left of", "Even pace", "Forecast"},
		"/ui/projects?of=project%3Dhiggs":           {"atlas-2026, left of"},
		"/ui/projects?of=group_id%3Dcms":            {"eve"},
		"/ui/centre?period=2026-02":                 {"<h1>Centre</h1>", "Capacity", "The largest groups", "Month by month", "Utilization"},
		"/ui/budgets":                               {"<h1>Budgets</h1>", "atlas-2026", "Exhausted on", "Forecast at end"},
		"/ui/distributions?period=2026-02":          {"<h1>Distributions</h1>", "Job size", "Run time, mean", "Expansion factor", "CPU efficiency", "Memory efficiency", "Mean load by weekday and hour", "Mean wait by weekday and hour", "Jobs that ran and waited"},
		"/ui/budgets?name=cms":                      {"cms, left of"},
		"/ui/prices":                                {"<h1>Prices</h1>", "In effect"},
		"/v1/reports/person?user=bob&format=csv":    {"nemo-2"},
		"/v1/reports/centre?period=2026-02":         {`"report": "centre"`},
		"/v1/reports/budgets?format=html":           {"polyline"},
		"/v1/reports/projects?of=project%3Dhiggs":   {"burndown-"},
		"/ui/reports?report=person&user=alice":      {"Usage of one person"},
		"/ui/reports?report=projects&period=30d":    {"Projects"},
		"/ui/reports?report=centre&period=2026-02":  {"Centre"},
		"/ui/reports?report=budgets&name=cms&top=0": {"cms"},
	} {
		code, body, _ := s.get(path)
		if code != http.StatusOK {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is missing", path, want)
			}
		}
	}
}

// others are names that a reader of what alice used in atlas must not read.
func TestBoards_SomeRecords_NameNoOther(t *testing.T) {
	s := filled(t)
	alice := reader(identity.Read, access.Grant{"user_id": {"alice"}})
	for _, path := range []string{
		"/ui/me", "/ui/me?user=alice", "/ui/me?user=bob", "/ui/projects", "/ui/projects?of=user_id%3Dbob", "/ui/projects?of=group_id%3Dcms", "/ui/centre", "/ui/budgets", "/ui/budgets?name=cms", "/ui/prices", "/ui/distributions?period=2026-02", "/ui/distributions?where=user_id%3Dbob",
		"/v1/reports/person?user=bob", "/v1/reports/projects", "/v1/reports/centre", "/v1/reports/budgets", "/ui/overview",
	} {
		_, body, _ := s.getAs(alice, path)
		asked := path[strings.Index(path+"?", "?"):]
		for _, other := range []string{"bob", "carol", "eve", "cms", "chem", "nemo-2", "nemo-5", "tiny-1", "atlas-2026", "head1"} {
			if regexp.MustCompile(`\b`+other+`\b`).MatchString(body) && !strings.Contains(asked, other) {
				t.Errorf("%s names %s", path, other)
			}
		}
		if strings.Contains(body, "nemo-2") || strings.Contains(body, "600000000") {
			t.Errorf("%s has a job of another", path)
		}
	}
	if _, body, _ := s.getAs(alice, "/ui/me"); !strings.Contains(body, "<h1>My usage</h1>") || !strings.Contains(body, "nemo-1") {
		t.Error("the own jobs are missing")
	}
	cms := reader(identity.Read, access.Grant{"group_id": {"cms"}})
	if _, body, _ := s.getAs(cms, "/ui/budgets"); strings.Contains(body, "atlas-2026") {
		t.Error("the budget of another group is there")
	}
}

func TestBoards_Energy_SayMeasuredModelledOrUnknown(t *testing.T) {
	s := newEnergySite(t)
	for _, user := range []string{"measured", "modelled", "unknown"} {
		for name, unit := range map[string]string{"energy-": accounting.KWh, "carbon-": accounting.CO2Unit} {
			s.Settings.Money.Budgets = append(s.Settings.Money.Budgets, accounting.Budget{
				Name: name + user, Scope: []accounting.PriceCondition{{Key: "user_id", Value: user}}, Unit: unit, Amount: accounting.Billionths(big.NewInt(10e9)), Every: calendar.Year, From: record.None, To: record.None,
			})
		}
	}
	s.Keep()
	for path, wants := range map[string][]string{
		"/ui/me?user=measured&period=2026-01": {"Energy (measured), kWh", "January 2026: 0.1000 kWh of energy are measured."},
		"/ui/me?user=modelled&period=2026-01": {"Energy (modelled), kWh", "kWh of energy are modelled."},
		"/ui/me?user=unknown&period=2026-01":  {"Energy (unknown), kWh", ">–</b>", "core-hours have no known power at their time and are not in energy."},
		"/ui/centre?period=2026-01":           {"Energy (measured and modelled), kWh", "of energy are measured,", "are modelled.", "core-hours have no known power at their time and are not in energy."},
		"/ui/budgets": {
			"Budget energy-measured: 0.1000 kWh of energy are measured.", "Budget carbon-measured: 0.1000 kWh of energy are measured.", "Budget energy-modelled: 321",
			"Budget energy-unknown: what is used is unknown, not 0.", "Budget carbon-unknown: 320\u202f970 core-hours have no known power at their time and are not in what is used.",
		},
		"/v1/budgets?name=energy-unknown":                           {`"used":null`, `"left":null`, `"pace":null`, `"energy":{"total":0,"measured":0,`},
		"/v1/budgets?name=carbon-measured":                          {`"used":0.03,`, `"energy":{"total":0.1,"measured":0.1,`},
		"/v1/reports/person?user=unknown&period=2026-01&format=csv": {"Energy (unknown),kWh,,"},
	} {
		_, body, _ := s.get(path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is missing", path, want)
			}
		}
	}
}
