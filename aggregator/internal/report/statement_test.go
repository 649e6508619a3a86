package report_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func is(key, value string) []accounting.PriceCondition {
	return []accounting.PriceCondition{{Key: key, Value: value}}
}

// prices is a list for cores, in thousandths of a euro an hour.
func prices(name, from, to string, thousandths int64, more ...accounting.PriceRule) accounting.PriceList {
	rules := append([]accounting.PriceRule{{Component: "Cores", Billionths: thousandths * 1e6}}, more...)
	return accounting.PriceList{Name: name, Currency: "EUR", From: apitest.At(from), To: apitest.At(to), Rules: rules}
}

// charged is a cluster with prices and budgets. A job of ann's runs over the end of
// September, one for half an hour on a day without prices, and one since yesterday.
func charged(t *testing.T) *apitest.World {
	t.Helper()
	w := worldOf(t, append(jobsOfCMS(),
		apitest.Job{ID: "r2", Group: "cms", User: "ann", Submit: "2026-09-30T12:00:00Z", Start: "2026-09-30T12:00:00Z", Stop: "2026-10-01T10:00:00Z", Cores: 9, State: "COMPLETED"},
		apitest.Job{ID: "u1", Group: "cms", User: "ann", Start: "2026-10-15T12:00:00Z", Stop: "2026-10-15T12:30:00Z", Cores: 7},
		apitest.Job{ID: "t1", Group: "theory", User: "eve", Start: "2026-08-03", Stop: "2026-08-03T05:00:00Z", Cores: 1}, // records are known from then on
		apitest.Job{ID: "v1", Group: "cms", User: "ann", Start: "2026-11-21T13:00:00Z", Cores: 10, Meta: map[string]string{"time_limit": "172800"}},
	)...)
	half := func(key, value string, thousandths int64, more ...accounting.PriceCondition) accounting.PriceRule {
		return accounting.PriceRule{Component: "Cores", Billionths: thousandths * 1e6, When: append(is(key, value), more...)}
	}
	w.Settings.Money.Lists = []accounting.PriceList{
		prices("standard", "2026-01-01", "2026-10-15", 12),
		prices("standard", "2026-10-16", "", 13, half("group_id", "atlas", 1), half("group_id", "cms", 0, is("host_class", "cms")...)),
	}
	budget := func(name, key, value, unit string, amount int64, every calendar.Unit) accounting.Budget {
		return accounting.Budget{Name: name, Scope: is(key, value), Unit: unit, Amount: accounting.Billionths(big.NewInt(amount * 1e9)), Every: every, From: record.None, To: record.None}
	}
	w.Settings.Money.Budgets = []accounting.Budget{
		budget("lhc", "project", "lhc", "EUR", 10, calendar.Year), budget("cms", "group_id", "cms", accounting.CoreHours, 200, calendar.Month),
		budget("atlas", "group_id", "atlas", "EUR", 1, calendar.Year), budget("broken", "pi", "higgs", accounting.ServiceUnits, 1, calendar.Year),
	}
	w.Settings.Directory.Projects = []accounting.Project{{
		ID: "lhc", From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: "higgs", Groups: []string{"cms"}}},
	}}
	w.Keep()
	return w
}

func reportOfCMS(t *testing.T) *report.Document {
	t.Helper()
	return statementOf(t, charged(t).API())
}

func statementOf(t *testing.T, api v1.API) *report.Document {
	t.Helper()
	d, err := report.Statement(t.Context(), api, report.StatementOptions{Of: map[string]string{"group_id": "cms"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAStatementSaysWhatWasUsedWhatItCostsAndWhatIsLeft(t *testing.T) {
	d := reportOfCMS(t)
	for _, c := range []struct{ table, first, want string }{
		{"figures", "Cost", "Cost|EUR|2.136|1.296|0.648148148"}, // 178 and 108 core-hours at 0.012
		{"figures", "Cores", "Cores|core-hours|181.5|108|0.680555556"},
		{"figures", "Memory", "Memory|GiB-hours|28||"},
		{"figures", "MemoryUsed", "MemoryUsed|GiB-hours|14||"},
		{"figures", "People", "People||2|1|1"},
		{"budgets", "lhc", "lhc|2026|EUR|10|6.552|3.12|0.328|0.6552|10.5829055|2026-12-26"},
		{"budgets", "cms", "cms|2026-10|core-hours|200|181.5|0|18.5|0.9075|181.5|lasts"},
		{"budgets", "broken", "broken|2026|SU|1||||||"},
		{"people", "ann", "ann|5|178.5|2.1|0.983146067|1.296|0.62037037"},
		{"people", "<b>bob", "<b>bob|2|3|0.036|0.016853933||"},
		{"jobs", "r2", "r2|ann|2026-09-30 12:00|9|22|90|1.08|COMPLETED"}, // ten hours of it in October
		{"prices", "Cores", "Cores|0.012|EUR|core-hour|all|2026-01-01|2026-10-15|standard"},
	} {
		if got := row(t, d, c.table, c.first); got != c.want {
			t.Errorf("%s: %s, want %s", c.table, got, c.want)
		}
	}
	for i := range d.Tables {
		if text := cells(d.Tables[i].Rows[0]); d.Tables[i].Name == "jobs" && !strings.HasPrefix(text, "r2|") {
			t.Error("the largest job is not the first", text)
		}
		if d.Tables[i].Name == "prices" && len(d.Tables[i].Rows) != 3 {
			t.Error("the prices of another group are there, or one is missing", d.Tables[i].Rows)
		}
		if d.Tables[i].Name == "budgets" && len(d.Tables[i].Rows) != 3 {
			t.Error("the budget of another group is there, or one is missing")
		}
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{
		"October 2026: records are complete to 2026-11-22 13:00 UTC.", "October 2026: 3.50 core-hours have no price at their time", "Budget broken: no figures: no prices or factors configured for SU",
		"Budget lhc: 3.50 core-hours have no price at their time and are not in what is used.", "Budgets are as of 2026-11-22 13:00 UTC", "The most specific price counts.",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

func TestStatement_PricesThatBeginOrEndWithinThePeriod_ListsAll(t *testing.T) {
	w := charged(t)
	memory := accounting.PriceList{Name: "later", Currency: "EUR", From: apitest.At("2027-01-01"), To: record.None, Rules: []accounting.PriceRule{{Component: "Memory", Billionths: 1}}}
	days := prices("days", "2026-10-08", "2026-10-10", 12)
	days.Rules[0].When = is("group_id", "cms")
	w.Settings.Money.Lists = []accounting.PriceList{prices("a", "2026-10-05", "2026-10-15", 11), prices("b", "2026-10-15", "", 13), days, memory}
	w.Keep()
	d := statementOf(t, w.API())
	var lists []string
	for i := range d.Tables {
		for _, r := range d.Tables[i].Rows {
			if d.Tables[i].Name == "prices" {
				lists = append(lists, cells(r))
			}
		}
	}
	if got := strings.Join(lists, "; "); got != "Cores|0.011|EUR|core-hour|all|2026-10-05|2026-10-15|a; Cores|0.012|EUR|core-hour|group_id=cms|2026-10-08|2026-10-10|days; Cores|0.013|EUR|core-hour|all|2026-10-15||b" {
		t.Error(got)
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{"October 2026: 174 core-hours have no price at their time", "October 2026: nothing of Memory has a price, and it is not in the cost."} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

func TestWhatNothingHadAPriceForDidNotCostNothing(t *testing.T) {
	w := charged(t)
	w.Settings.Money.Lists[0].From = apitest.At("2026-10-01")
	w.Keep()
	d := statementOf(t, w.API())
	for table, want := range map[string]string{"figures": "Cost|EUR|2.136||", "people": "ann|5|178.5|2.1|0.983146067||"} {
		if first, _, _ := strings.Cut(want, "|"); row(t, d, table, first) != want {
			t.Errorf("%s: %s, want %s", table, row(t, d, table, first), want)
		}
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "September 2026: nothing of Cores has a price, and it is not in the cost.") {
		t.Error(notes)
	}
}

func TestWithoutPricesAndBudgetsAStatementSaysSo(t *testing.T) {
	w := charged(t)
	w.Settings.Money = accounting.PriceSettings{}
	w.Keep()
	own := access.Principal{Name: "cms", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"cms"}})}
	d := statementOf(t, v1.API{Caller: apitest.As{World: w, Principal: own}})
	if got := row(t, d, "people", "ann"); got != "ann|5|178.5|0.983471074|108|0.652777778" {
		t.Error(got)
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{"No prices configured; showing usage only", "Budgets are shown only to readers of all records"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

func TestAStatementOfNobodyNamesWhoIsNear(t *testing.T) {
	_, err := report.Statement(t.Context(), charged(t).API(), report.StatementOptions{Of: map[string]string{"group_id": "cmx"}, Now: now()})
	if !errors.Is(err, report.ErrNothing) || !strings.Contains(err.Error(), `did you mean "cms"?`) {
		t.Error(err)
	}
}

// Budgets of any zone in a statement of any other are those of the period that the
// statement is called, whichever day it is looked at.
func TestStatement_BudgetsOfAnyZone_AreOfItsPeriod(t *testing.T) {
	zones := []string{"UTC", "Europe/Vienna", "Pacific/Kiritimati", "Asia/Kolkata", "America/New_York", "Pacific/Pago_Pago", "Australia/Lord_Howe"}
	chance := rand.New(rand.NewPCG(28, 5))
	w := worldOf(t, apitest.Job{ID: "long", Group: "cms", User: "ann", Start: "2025-12-30T00:00:00Z", Stop: "2026-11-20T00:00:00Z", Cores: 1})
	for _, zone := range zones {
		for name, every := range map[string]calendar.Unit{"month": calendar.Month, "quarter": calendar.Quarter, "year": calendar.Year} {
			w.Settings.Money.Budgets = append(w.Settings.Money.Budgets, accounting.Budget{
				Name: name + " in " + zone, Scope: is("group_id", "cms"), Unit: accounting.CoreHours, Amount: accounting.Billionths(big.NewInt(1e12)), Every: every, Zone: zone, From: record.None, To: record.None,
			})
		}
	}
	w.Keep()
	for range 60 {
		month := time.Month(1 + chance.IntN(10))
		quarter := (int(month) + 2) / 3
		word, last := fmt.Sprintf("2026-%02d", month), month
		switch chance.IntN(3) {
		case 0:
			word, last = fmt.Sprintf("2026-q%d", quarter), time.Month(3*quarter)
		case 1:
			word = fmt.Sprintf("2026-%02d-%02d", month, []int{1, 28}[chance.IntN(2)])
		}
		if last > 10 {
			continue // the present is in November
		}
		o := report.StatementOptions{Of: map[string]string{"group_id": "cms"}, Period: word, Zone: zones[chance.IntN(len(zones))], Now: now()}
		d, err := report.Statement(t.Context(), w.API(), o)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"month": fmt.Sprintf("2026-%02d", last), "quarter": fmt.Sprintf("2026-Q%d", quarter), "year": "2026"}
		for _, budget := range w.Settings.Money.Budgets {
			every, _, _ := strings.Cut(budget.Name, " ")
			if got := strings.Split(row(t, d, "budgets", budget.Name), "|")[1]; got != want[every] {
				t.Errorf("statement of %s in %s: budget %s is of %s, want %s", word, o.Zone, budget.Name, got, want[every])
			}
		}
	}
}
