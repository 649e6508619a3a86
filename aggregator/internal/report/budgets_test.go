package report_test

import (
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/record"
)

// budgeted is a cluster of a source whose first job ran on 28 October, with a budget.
func budgeted(t *testing.T, b accounting.Budget) *apitest.World {
	t.Helper()
	job := func(id, day string) apitest.Job {
		return apitest.Job{ID: id, Group: "cms", User: "ann", Submit: day + "T00:00:00Z", Start: day + "T10:00:00Z", Stop: day + "T20:00:00Z", Cores: 4, CPU: 3600}
	}
	w := worldOfSource(t, "slurm", job("a", "2026-10-28"), job("b", "2026-11-02"))
	b.Name, b.Scope, b.Amount, b.From, b.To = "cms", []accounting.PriceCondition{{Key: "group_id", Value: "cms"}}, accounting.Billionths(big.NewInt(1000e9)), record.None, record.None
	w.Settings.Money.Budgets = []accounting.Budget{b}
	one := accounting.One
	w.Settings.Directory = accounting.DirectorySettings{
		Projects: []accounting.Project{{ID: "lhc", From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: "Turing", Groups: []string{"cms"}}}}},
		Units:    accounting.UnitRates{Name: "kSU", Default: &one},
	}
	w.Keep()
	return w
}

func makeReport(t *testing.T, w *apitest.World, name, query string) *report.Document {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Make(t.Context(), w.API(), name, values, now())
	if err != nil {
		t.Fatal(name, query, err)
	}
	return d
}

// Nothing that ran before records are known counts as unused: neither in a budget nor in the
// chart of how it is used up, nor in shares and histograms.
func TestReports_TimeBeforeRecords_IsNotUnused(t *testing.T) {
	w := budgeted(t, accounting.Budget{Unit: accounting.CoreHours, Every: calendar.Year})
	past := makeReport(t, w, "budgets", "at=2025")
	if row := past.Tables[0].Rows[0]; row[4].Known() || row[6].Known() || !strings.Contains(strings.Join(past.Notes, " "), "what is used is unknown, not 0") {
		t.Errorf("2025: %v %q", row, past.Notes)
	}
	year := makeReport(t, w, "budgets", "at=2026")
	if row := year.Tables[0].Rows[0]; row[4].String() != "80" || !strings.Contains(strings.Join(year.Notes, " "), "Budget cms: records are known from 2026-10-28") {
		t.Errorf("2026: %v %q", row, year.Notes)
	}
	down := year.Tables[1]
	for _, row := range down.Rows {
		until := row[0].String()
		if left := row[1]; left.Known() != (until >= "2026-10-26" && until < "2026-11-23") {
			t.Errorf("left at %s is %q", until, left.String())
		}
	}
	for name, query := range map[string]string{"subscription": "period=this-year", "distributions": "period=this-year", "projects": "period=this-year"} {
		if notes := strings.Join(makeReport(t, w, name, query).Notes, "\n"); !strings.Contains(notes, "records are known from 2026-10-28 10:00 UTC on") {
			t.Errorf("%s: %s", name, notes)
		}
	}
}

// The charts of budgets are of the period of the report, as is the table beside them.
func TestProjects_PeriodInThePast_HasItsBudgets(t *testing.T) {
	w := budgeted(t, accounting.Budget{Unit: accounting.CoreHours, Every: calendar.Month})
	for period, want := range map[string]string{"2026-10": "2026-10-01", "2026-11": "2026-11-01", "last-month": "2026-10-01"} {
		d := makeReport(t, w, "projects", "period="+period)
		found := false
		for i := range d.Tables {
			if table := &d.Tables[i]; table.Name == "burndown-1" {
				found = true
				if got := table.Rows[0][0].String(); got != want {
					t.Errorf("%s: the chart begins on %s", period, got)
				}
			}
		}
		if !found {
			t.Errorf("%s has no chart", period)
		}
	}
}

// A budget is used up in its own measure, whatever its unit is called.
func TestBudgets_InUnitsOfAnyName_HaveACourseInTheirMeasure(t *testing.T) {
	for _, unit := range []string{accounting.CoreHours, accounting.ServiceUnits, accounting.HoursOf} {
		b := accounting.Budget{Unit: unit, Every: calendar.Year}
		if unit == accounting.HoursOf {
			b.Component = "Cores"
		}
		d := makeReport(t, budgeted(t, b), "budgets", "")
		used := d.Tables[0].Rows[0][4].String()
		if len(d.Tables) < 2 || used != "80" {
			t.Errorf("%s: used %s, %d tables", unit, used, len(d.Tables))
			continue
		}
		left := ""
		for _, row := range d.Tables[1].Rows {
			if row[1].Known() {
				left = row[1].String()
			}
		}
		if left != "920" {
			t.Errorf("%s: %s are left in the chart", unit, left)
		}
		if name := d.Tables[0].Rows[0][2].String(); name != map[string]string{accounting.CoreHours: "core-hours", accounting.ServiceUnits: "kSU", accounting.HoursOf: "core-hours"}[unit] {
			t.Errorf("%s: the unit is %s", unit, name)
		}
	}
}

// Where the first period begins with a whole day, the period before it ends there and is as long.
func TestSummary_PreviousPeriod_TouchesTheFirst(t *testing.T) {
	w := budgeted(t, accounting.Budget{Unit: accounting.CoreHours, Every: calendar.Year})
	for _, query := range []string{"period=30d&period=previous", "period=3w&period=previous&bucket=week", "period=25d&period=previous&zone=Asia/Tokyo"} {
		d := makeReport(t, w, "summary", query)
		if len(d.Periods) != 2 || !d.Periods[1].To.Equal(d.Periods[0].From.Time) {
			t.Errorf("%s: %+v", query, d.Periods)
		}
		if first, second := length(d.Periods[0]), length(d.Periods[1]); first != second {
			t.Errorf("%s: %s and %s", query, first, second)
		}
	}
}

// Pages of people begin a length with a whole day, a short one with a full hour, and name the period
// before it by what it is.
func TestBoard_PeriodBefore_IsNamedByWhatItIs(t *testing.T) {
	job := func(id, start, stop string) apitest.Job {
		return apitest.Job{ID: id, Group: "cms", User: "ann", Start: start, Stop: stop, Cores: 4}
	}
	w := worldOfSource(t, "slurm", job("a", "2026-10-28T10:00:00Z", "2026-10-28T20:00:00Z"), job("b", "2026-11-22T12:10:00Z", "2026-11-22T12:40:00Z"))
	now := now()
	for _, c := range []struct {
		period string
		from   time.Time
		before string
	}{
		{"40d", now.Truncate(24*time.Hour).AddDate(0, 0, -40), ""},
		{"1h", now.Truncate(time.Hour).Add(-time.Hour), ""},
		{"30h", now.Truncate(time.Hour).Add(-30 * time.Hour), ""},
		{"this-month", time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), now.AddDate(0, -1, 0).Format("January 2006") + " to the same day"},
		{"this-year", time.Date(now.Year(), 1, 1, 0, 0, 0, 0, time.UTC), ""},
	} {
		d := makeReport(t, w, "centre", "period="+c.period)
		first, before := d.Periods[0], d.Periods[1]
		if !first.From.Equal(c.from) || before.To.After(first.From.Time) {
			t.Errorf("%s: from %s, before it %s to %s", c.period, first.From, before.From, before.To)
		}
		want := c.before
		if want == "" {
			want = report.PeriodOf("", before.From.Time, before.To.Time, time.UTC).Name
		}
		if before.Name != want {
			t.Errorf("%s: beside %q, want %q", c.period, before.Name, want)
		}
	}
}

func length(p report.Period) time.Duration { return p.To.Sub(p.From.Time) }
