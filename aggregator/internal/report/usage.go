package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// UsageOptions say what a report about usage is of.
type UsageOptions struct {
	// Periods are one or two windows, in the words of /v1/usage; none: this month and
	// this year.
	Periods []string
	Zone    string            // of days and months; "": the site's
	By      string            // a key that gives the lines; "": groups
	Measure []string          // none: all components, records and people
	Where   map[string]string // of whom it is; empty: of all
	Order   string            // the measure that gives the order of lines; "": Cores where there are some
	Top     int               // the lines at most, and one of the others; 0: all
	Keys    Keys
	Now     time.Time
}

// usageEntry is the report usage in the catalogue.
func usageEntry() Entry {
	return Entry{
		Report: v1.Report{Name: "usage", Title: "Usage", About: "Usage by group, user or any other key, with the total.", Parameters: []Param{
			periodParam(),
			textParam("by", "Group by", "The key that gives the lines.", "group_id", "group_id", "user_id", "site_id", "cluster", "project", "pi"),
			listParam("measure", "Measures", "The measures and components; without them the records, the people and all components.", "records", "jobs", "people", "Cores", "Memory", "GPUs", "su", "cost", "energy", "co2"),
			textParam("order", "Sort by", "The measure that says whose line comes first; without it the cores.", "", "Cores", "GPUs", "records", "jobs"),
			whereParam(), topParam(0), zoneParam(),
		}},
		Long: `Usage in two periods side by side: a line for each group, user or value of any key,
and the total. Without -measure the table has the records, the people and all
components.`,
		Example: "  bursar report usage\n  bursar report usage -period last-month -period last-year -by site_id -measure Cores,GPUs,people\n  bursar report usage -where group_id=atlas -by user_id -o atlas.html",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			return Usage(ctx, r, UsageOptions{
				Periods: q.All("period"), Zone: q.One("zone"), By: q.One("by"), Measure: q.All("measure"),
				Order: q.One("order"), Where: q.Pairs("where"), Top: q.Number("top"), Now: q.Now, Keys: q.Keys,
			})
		},
	}
}

// Usage says who used what: a line for each value of a key and the sum, with the
// measures of one or two periods side by side. It is what usage_stats of
// ai4-accounting prints, exact.
func Usage(ctx context.Context, r v1.API, o UsageOptions) (*Document, error) {
	o.Periods = DefaultPeriods(o.Periods)
	if o.By == "" {
		o.By = o.Keys.Whole().Group
	}
	zone, err := clockOf(ctx, r, &o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report usage: %w", err)
	}
	d := &Document{Format: Format, Report: "usage", Title: "Usage by " + o.By, Subject: subjectText(o.Where), Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String()}
	var answers []*v1.Usage
	for _, window := range o.Periods {
		a, err := o.queryWindow(ctx, r, window)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
		p := windowOf(a).namedPeriod(window, zone)
		d.Periods = append(d.Periods, p)
		d.Notes = append(d.Notes, usageNotes(a, p.Name, "hour")...)
	}
	n := absent{of: "report usage", where: o.Where, zone: o.Zone, periods: o.Periods}
	if err := n.checkAnswers(ctx, r, answers); err != nil {
		return nil, err
	}
	d.Add(usageTable(o.By, d.Periods, answers))
	d.Notes = append(d.Notes, "What a run used is split to the microsecond where a period ends; rates such as cores come in hours.")
	return d, d.Check()
}

// DefaultPeriods are those of a report that is asked for without any.
func DefaultPeriods(periods []string) []string {
	if len(periods) == 0 {
		return []string{"this-month", "this-year"}
	}
	return periods
}

func (o *UsageOptions) queryWindow(ctx context.Context, r v1.API, window string) (*v1.Usage, error) {
	a, err := askUsage(ctx, r, v1.UsageQuery{
		Window: window, By: o.By, Unit: "hour", Zone: o.Zone, Measure: v1.JoinList(o.Measure...), Order: o.Order, Top: max(o.Top, 0), Where: o.Where,
	})
	if err != nil {
		return nil, fmt.Errorf("report usage of %s: %w", window, err)
	}
	return a, nil
}

// line is a group in all periods, whose cells have the names of columns.
type line struct {
	name  string
	cells map[string]Cell
}

// usageTable puts the answers side by side. Lines are in the order of the first period,
// and those that only the others have follow.
func usageTable(by string, periods []Period, answers []*v1.Usage) Table {
	t := Table{Name: "usage", Title: "By " + by, Columns: []Column{{Name: by, Title: by, Kind: Text}}}
	lines := map[string]*line{}
	var order []*line
	var totals []Cell
	for p, a := range answers {
		for i := range a.Measures {
			m := &a.Measures[i]
			c := view.MeasureColumn(m)
			c.Period = p + 1
			if len(answers) > 1 {
				c.Name = fmt.Sprintf("%s %s", m.Name, periods[p].Name)
			}
			if t.columnIndex(c.Name) >= 0 { // both periods are the same
				c.Name += " again"
			}
			t.Columns = append(t.Columns, c)
			totals = append(totals, v1.Figure(m.Total))
			for g := range a.Groups {
				name := view.GroupName(&a.Groups[g])
				l, ok := lines[name]
				if !ok {
					l = &line{name: name, cells: map[string]Cell{}}
					lines[name], order = l, append(order, l)
				}
				if g < len(m.Totals) {
					l.cells[c.Name] = v1.Figure(m.Totals[g])
				}
			}
		}
	}
	for _, l := range order {
		row := []Cell{v1.Words(l.name)}
		for _, c := range t.Columns[1:] {
			row = append(row, l.cells[c.Name])
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) > 1 {
		t.Totals = append([]Cell{v1.Words("Total")}, totals...)
	}
	t.Chart = usageChart(&t)
	t.sortRows()
	return t
}

// sortRows puts the lines in the order of what the chart draws first, the largest first;
// the line of all others stays at the end.
func (t *Table) sortRows() {
	if t.Chart == nil {
		return
	}
	by := t.columnIndex(t.Chart.Values[0])
	slices.SortStableFunc(t.Rows, func(a, b []Cell) int {
		if x, y := view.IsOthers(a[0].String()), view.IsOthers(b[0].String()); x != y {
			return map[bool]int{true: 1, false: -1}[x]
		}
		return compareCells(b[by], a[by])
	})
}

// compareCells orders cells by their numbers; who has none is the least.
func compareCells(a, b Cell) int {
	switch x, y := a.Number(), b.Number(); {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return -1
	case y == nil:
		return 1
	default:
		return x.Cmp(y)
	}
}

// usageChart draws the first measure that is no count, in all periods.
func usageChart(t *Table) *Chart {
	var values []string
	unit := ""
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Kind == Text || (unit == "" && c.Unit == "") {
			continue
		}
		if unit == "" {
			unit = c.Title
		}
		if c.Title == unit {
			values = append(values, c.Name)
		}
	}
	if values == nil {
		return nil
	}
	return &Chart{Kind: Bars, Label: t.Columns[0].Name, Values: values}
}
