package report

import (
	"context"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// reportParts is a report about subscriptions by something that contributes nothing, such as
// projects or users: what part each has of the service units that all used.
func reportParts(ctx context.Context, r v1.API, o SubscriptionOptions) (*Document, error) {
	zone, err := clockOf(ctx, r, &o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report subscription: %w", err)
	}
	d := &Document{Format: Format, Report: "subscription", Title: "Service units by " + o.By, Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String()}
	var begin time.Time
	found := false
	for i, window := range o.Periods {
		a, err := askUsage(ctx, r, v1.UsageQuery{
			Window: window, By: o.By, Measure: "su,jobs", Unit: "hour", Order: "su", Zone: o.Zone, Credit: o.Credit, Where: o.Where,
		})
		if err != nil {
			return nil, fmt.Errorf("report subscription of %s: %w", window, err)
		}
		if i == 0 {
			begin = windowOf(a).From
		}
		found = found || a.Records > 0
		p := windowOf(a).namedPeriod(window, zone)
		d.Periods = append(d.Periods, p)
		d.Add(partsTable(a, o.By, i+1, p.Name))
		d.Notes = append(d.Notes, usageNotes(a, p.Name, "hour")...)
	}
	if !found {
		n := absent{of: "report subscription", where: o.Where, zone: o.Zone, periods: o.Periods, begin: begin}
		return nil, n.explainAbsence(ctx, r)
	}
	d.Notes = append(d.Notes, "Shares are of all used service units; those without an owner have their own row.")
	return d, d.Check()
}

func partsTable(a *v1.Usage, by string, period int, name string) Table {
	unit := "SU"
	if m := a.Find("su"); m != nil {
		unit = m.UnitText()
	}
	t := Table{
		Name: fmt.Sprintf("subscription-%d", period), Title: name,
		Columns: []Column{
			{Name: by, Title: by, Kind: Text},
			{Name: "jobs", Title: "Jobs", Kind: Number, Period: period},
			{Name: "used", Title: "Used", Kind: Number, Unit: unit, Period: period},
			{Name: "used_share", Title: "Share of use", Kind: Share, Period: period},
		},
		Chart: &Chart{Kind: Bars, Label: by, Values: []string{"used_share"}},
	}
	all := totalOf(a, "su", nil)
	for g := range a.Groups {
		used := groupTotal(a, "su", g, nil)
		t.Rows = append(t.Rows, []Cell{v1.Words(view.GroupName(&a.Groups[g])), v1.Rat(groupTotal(a, "jobs", g, nil)), v1.Rat(used), Quotient(used, all)})
	}
	if len(t.Rows) > 1 {
		t.Totals = []Cell{v1.Words("Total"), v1.Rat(totalOf(a, "jobs", nil)), v1.Rat(all), {}}
	}
	return t
}
