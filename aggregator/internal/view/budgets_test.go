package view_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// day is the beginning of a day of 2026 in UTC.
func day(month time.Month, day int) v1.Time {
	return v1.Time{Time: time.Date(2026, month, day, 0, 0, 0, 0, time.UTC)}
}

func figure(digits string) *json.Number {
	n := json.Number(digits)
	return &n
}

func TestBudgets_EachOutlook_IsToldInWords(t *testing.T) {
	year := v1.BudgetPeriod{Name: "2026", From: day(1, 1), To: v1.Time{Time: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}, Zone: "UTC", State: "present"}
	budget := func(name string, s *v1.BudgetStanding) v1.Budget {
		return v1.Budget{Name: name, Match: map[string]string{"group_id": name}, Unit: "EUR", Period: year, Amount: "100", BudgetStanding: s}
	}
	pace := &v1.BudgetPace{PerDay: "0.1"}
	broken, once := budget("broken", nil), budget("once", &v1.BudgetStanding{Used: figure("0"), Share: figure("0"), Reserved: "0", Left: figure("100")})
	broken.Problem, once.Period = "no prices configured", v1.BudgetPeriod{From: day(12, 1), To: day(12, 11), Zone: "UTC", State: "future"}
	a := v1.Budgets{Now: day(12, 22), Complete: v1.Complete{CompleteTo: day(12, 20)}, Budgets: []v1.Budget{
		broken,
		budget("gone", &v1.BudgetStanding{Used: figure("120"), Share: figure("1.2"), Reserved: "0", Left: figure("-20"), Exhausted: true, GoneAt: v1.Time{Time: day(11, 3).Add(7*time.Hour + 3*time.Second)}, Pace: pace}),
		budget("lasts", &v1.BudgetStanding{Used: figure("50.5"), Share: figure("0.505"), Reserved: "1", Left: figure("48.5"), Pace: pace}),
		once,
		budget("soon", &v1.BudgetStanding{Used: figure("99"), Share: figure("0.99"), Reserved: "0", Left: figure("1"), GoneAt: v1.Time{Time: day(12, 30).Add(5 * time.Hour)}, Pace: pace, AtLeast: true, Running: 2, Unlimited: 1}),
		budget("unknown", &v1.BudgetStanding{Reserved: "0", KnownFrom: day(12, 1)}),
	}}
	l := view.Budgets(a, "UTC")
	if d := cmp.Diff([]string{
		"broken|2026|EUR|100||||||",
		"gone|2026|EUR|100|120|0|-20|1.2|121|2026-11-03 07:00",
		"lasts|2026|EUR|100|50.5|1|48.5|0.505|51.5|lasts",
		"once|2026-12-01 to 2026-12-10|EUR|100|0|0|100|0|0|",
		"soon|2026|EUR|100|99|0|1|0.99|100|2026-12-30",
		"unknown|2026|EUR|100||0||||",
	}, joinedRows(l.Table(time.UTC).Rows)); d != "" {
		t.Errorf("document: -want +got:\n%s", d)
	}
	if got, want := joinedRows(l.Rows)[4], "soon|group_id=soon|2026|2026-01-01T00:00:00Z|2027-01-01T00:00:00Z|present|EUR||100|99|0|1|0.99|0.1|100|2026-12-30|runs out|2026-12-30T05:00:00Z|true|2|1||"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	tones := ""
	for _, row := range l.Rows {
		tones += " " + string(l.RowTone(row))
	}
	if tones != " dim bad good dim bad dim" {
		t.Errorf("tones %s", tones)
	}
	if notes := strings.Join(l.Notes, "\n"); !strings.Contains(notes, "Budget broken: no figures: no prices configured.") || !strings.HasSuffix(notes, "Records are complete to 2026-12-20 00:00 UTC.") {
		t.Error(notes)
	}
	if l = view.Budgets(v1.Budgets{Complete: a.Complete}, "UTC"); l.Empty == "" || len(l.Rows)+len(l.Notes) > 0 {
		t.Errorf("no budgets: %+v", l)
	}
}
