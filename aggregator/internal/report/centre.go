package report

import (
	"cmp"
	"context"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// centreEntry is how a whole centre does.
func centreEntry() Entry {
	return Entry{
		Report: v1.Report{
			Name: "centre", Title: "Centre", About: "How a centre does: use beside capacity, cost, energy, the largest groups and those that fell, and this year beside the last.",
			Parameters: boardParams(),
		},
		Long: `How a centre does in a period, beside the period before: what was used with the line
of the capacity, utilization, cost and energy, the largest groups, the groups whose use
fell most, and each month of this year beside that of last year.`,
		Example: "  bursar report centre\n  bursar report centre -period last-quarter -o centre.html",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			b, err := newBoard(ctx, r, &q, nil, "centre", "Centre")
			if err != nil {
				return nil, err
			}
			return b.addParts(ctx, b.figureTiles, b.usageOverTime("", true), b.membersTable("groups", "The largest groups", b.o.Keys.Group), b.declinedGroups, b.yearOverYear)
		},
	}
}

// declinedGroups are the groups that used less than in the period before, the greatest loss first;
// none where the periods cannot be compared.
func (b *board) declinedGroups(ctx context.Context) (*Table, error) {
	if b.before.Records == 0 || !b.known || b.now.Find("Cores") == nil {
		return nil, nil
	}
	now, err := b.usageOfPeriod(ctx, v1.UsageQuery{By: b.o.Keys.Group, Measure: "Cores"}, 0)
	if err != nil {
		return nil, err
	}
	past, err := b.optionalUsage(ctx, v1.UsageQuery{By: b.o.Keys.Group, Measure: "Cores"}, 1)
	if err != nil || past == nil {
		return nil, err
	}
	used := map[string]*big.Rat{}
	for g := range now.Groups {
		used[view.GroupName(&now.Groups[g])] = groupTotal(now, "Cores", g, nil)
	}
	t := &Table{
		Name: "fallen", Title: "Groups that used less",
		Columns: []Column{
			{Name: b.o.Keys.Group, Title: "Group", Kind: Text}, {Name: "used", Title: b.periods[0].Name, Kind: Number, Unit: "core-hours"},
			{Name: "before", Title: b.periods[1].Name, Kind: Number, Unit: "core-hours"}, {Name: "less", Title: "Less", Kind: Number, Unit: "core-hours"}, {Name: "change", Title: "Change", Kind: Change},
		},
	}
	for g := range past.Groups {
		name, was := view.GroupName(&past.Groups[g]), groupTotal(past, "Cores", g, nil)
		is := cmp.Or(used[name], new(big.Rat))
		if was == nil || is.Cmp(was) >= 0 {
			continue
		}
		t.Rows = append(t.Rows, []Cell{v1.Words(name), v1.Rat(is), v1.Rat(was), v1.Rat(new(big.Rat).Sub(was, is)), relativeChange(is, was)})
	}
	slices.SortStableFunc(t.Rows, func(x, y []Cell) int { return compareCells(y[3], x[3]) })
	t.Rows = t.Rows[:min(len(t.Rows), b.o.Top)]
	if len(t.Rows) == 0 {
		return nil, nil
	}
	return t, nil
}

// notePartialMonths names the months of which only a part is known, other than the current one.
func (b *board) notePartialMonths(a *v1.Usage, end time.Time) {
	for i := 0; i < len(a.Labels) && i+1 < len(a.Edges); i++ {
		if view.IsPartial(a, i) && a.Edges[i+1].Before(end) {
			b.notes = append(b.notes, "Month by month: only a part of "+a.Edges[i].In(b.zone).Format("January 2006")+" is known.")
		}
	}
}

// yearOverYear has each month of the year that the period ends in, beside that of the year before.
// A month that goes on stands beside all of the other one, and its row says so.
func (b *board) yearOverYear(ctx context.Context) (*Table, error) {
	end := b.periods[0].To.In(b.zone)
	year := end.Add(-time.Nanosecond).Year()
	t := &Table{
		Name: "years", Title: "Month by month, beside the year before", Columns: []Column{{Name: "month", Title: "Month", Kind: Text}},
		Chart: &Chart{Kind: Columns, Label: "month"},
	}
	for m := time.January; m <= time.December; m++ {
		name := m.String()[:3]
		if from := time.Date(year, m, 1, 0, 0, 0, 0, b.zone); from.Before(end) && from.AddDate(0, 1, 0).After(end) {
			name += " to date"
		}
		t.Rows = append(t.Rows, []Cell{v1.Words(name)})
	}
	for _, measure := range []struct{ name, title, unit string }{{"Cores", "", "core-hours"}, {"cost", "Cost ", b.money}, {"energy", "Energy ", "kWh"}} {
		seen := false // before the first use nothing is known
		for _, y := range []int{year - 1, year} {
			from, to := time.Date(y, 1, 1, 0, 0, 0, 0, b.zone), time.Date(y+1, 1, 1, 0, 0, 0, 0, b.zone)
			if to.After(end) { // what is to come is not 0
				to = end
			}
			a, err := askUsage(ctx, b.r, v1.UsageQuery{From: from.Format(time.RFC3339), To: to.Format(time.RFC3339), Bucket: "month", Measure: measure.name, Unit: "hour", Zone: b.o.Zone})
			if hasStatus(err, http.StatusBadRequest, http.StatusForbidden) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if m := a.Find(measure.name); m != nil && a.Records > 0 {
				name := measure.title + from.Format("2006")
				for i := 0; i < len(m.Values) && !seen; i++ {
					if seen = m.Values[i] != nil && !isZero(*m.Values[i]); !seen {
						m.Values[i] = nil
					}
				}
				t.addColumn(Column{Name: name, Title: name, Kind: Number, Unit: measure.unit}, m.Values)
				if measure.name == "Cores" {
					t.Chart.Values = append(t.Chart.Values, name)
					b.notePartialMonths(a, end)
				}
			}
		}
	}
	if len(t.Chart.Values) == 0 {
		return nil, nil
	}
	return t, nil
}
