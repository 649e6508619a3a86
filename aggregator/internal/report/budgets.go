package report

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// budgetsEntry is how budgets stand.
func budgetsEntry() Entry {
	return Entry{
		Report: v1.Report{
			Name: "budgets", Title: "Budgets", About: "What is used, reserved and left of budgets, how they are used up, and when they will be exhausted.",
			Parameters: []Param{
				textParam("name", "Budget", "Only that budget.", "", "teaching"),
				textParam("at", "Point in time", "A point in the period of each budget, such as now, last-month or 2026-Q3.", "now", "now", "last-month", "last-year"),
				numberParam("top", "Charts at most", "Of how many budgets there is a chart, the fullest first, from 0 to 50.", mostBurndowns),
				zoneParam(),
			},
		},
		Long: `What is used, reserved and left of each budget, with a forecast; and of each a chart:
what is left day by day, what would be left at an even pace, and the forecast.`,
		Example: "  bursar report budgets -o budgets.html\n  bursar report budgets -name higgs -format csv",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			return Budgets(ctx, r, &q)
		},
	}
}

// Budgets says how budgets stand and how they are used up.
func Budgets(ctx context.Context, r v1.API, q *Query) (*Document, error) {
	if err := checkBounds(bounds{"top", float64(q.Number("top")), 0, 50}); err != nil {
		return nil, err
	}
	zoneName := q.One("zone")
	zone, err := clockOf(ctx, r, &zoneName)
	if err != nil {
		return nil, fmt.Errorf("report budgets: %w", err)
	}
	a, err := r.Budgets(ctx, BudgetsAsked(q.One("name"), q.One("at")))
	switch {
	case hasStatus(err, http.StatusForbidden):
		return nil, fmt.Errorf("%w: you have access to some of the records only, and no budget is of these alone", ErrNothing)
	case hasStatus(err, http.StatusNotFound):
		return nil, fmt.Errorf("%w: %w", ErrNothing, err)
	}
	if err != nil {
		return nil, fmt.Errorf("report budgets: %w", err)
	}
	if len(a.Budgets) == 0 {
		return nil, fmt.Errorf("%w: no budget is configured; add a budget block to the configuration", ErrNothing)
	}
	d := &Document{Format: Format, Report: "budgets", Title: "Budgets", Made: v1.Time{Time: q.Now.UTC()}, Zone: zone.String()}
	now := a.Now.Time
	sortBudgets(a.Budgets)
	list := view.Budgets(a, zone.String())
	d.Add(Table(list.Table(zone)))
	for i := range a.Budgets[:min(len(a.Budgets), q.Number("top"))] {
		down, err := burndownTable(ctx, r, &a.Budgets[i], i+1, now)
		if err != nil {
			return nil, fmt.Errorf("report budgets: %w", err)
		}
		if down != nil {
			d.Add(*down)
		}
	}
	d.Notes = append(list.Notes, "Left of a budget is what is neither used nor reserved by jobs that run; in the charts it is what is not used. Even pace is what would be left if each day used the same. The forecast goes on at the pace of the last days.")
	return d, d.Check()
}

// BudgetsAsked is what the report of budgets asks of /v1 for its parameters.
func BudgetsAsked(name, at string) *v1.BudgetsQuery {
	if at == "now" {
		at = ""
	}
	return &v1.BudgetsQuery{Name: name, At: at}
}

// sortBudgets puts the fullest first.
func sortBudgets(list []v1.Budget) {
	share := func(b *v1.Budget) Cell {
		if b.BudgetStanding == nil {
			return Cell{}
		}
		return v1.Figure(b.Share)
	}
	slices.SortFunc(list, func(x, y v1.Budget) int {
		return cmp.Or(compareCells(share(&y), share(&x)), strings.Compare(x.Name, y.Name))
	})
}

// emptyBurndown is the table of a burndown without its rows.
func emptyBurndown(b *v1.Budget, n int, amount *big.Rat) *Table {
	named := []string{"left " + b.Unit, "even " + b.Unit, "forecast " + b.Unit} // CSV has no other place for the unit
	return &Table{
		Name: fmt.Sprintf("burndown-%d", n), Title: b.Name + ", left of " + v1.ShowIn(Number, b.Unit, v1.Rat(amount)) + " " + b.Unit,
		Columns: []Column{
			{Name: "until", Title: "Until", Kind: Text}, {Name: named[0], Title: "Left", Kind: Number, Unit: b.Unit},
			{Name: named[1], Title: "Even pace", Kind: Number, Unit: b.Unit}, {Name: named[2], Title: "Forecast", Kind: Number, Unit: b.Unit},
		},
		Chart: &Chart{Kind: Line, Label: "until", Values: named},
	}
}

// burndownTable is the table of what is left of a budget, interval by interval, with an even
// pace and a forecast; nil where there are no figures of it.
func burndownTable(ctx context.Context, r v1.API, b *v1.Budget, n int, now time.Time) (*Table, error) {
	zone, err := time.LoadLocation(b.Period.Zone)
	if err != nil || b.BudgetStanding == nil || b.Used == nil || b.Period.To.IsZero() || !b.Period.From.Before(now) {
		return nil, nil //nolint:nilerr // a budget without figures has no chart
	}
	from, end, amount := b.Period.From.In(zone), b.Period.To.In(zone), v1.Figure(&b.Amount).Number()
	to := now.In(zone)
	if end.Before(to) {
		to = end
	}
	step := Interval(end.Sub(from))
	where := map[string]string{}
	for key, value := range b.Match {
		where[strings.TrimPrefix(key, "meta.")] = v1.JoinList(value)
	}
	measure := b.Measure
	a, err := askUsage(ctx, r, v1.UsageQuery{From: from.Format(time.RFC3339Nano), To: to.Format(time.RFC3339Nano), Zone: b.Period.Zone, Bucket: step, Measure: v1.JoinList(measure), Unit: "hour", Where: where})
	if hasStatus(err, http.StatusBadRequest, http.StatusForbidden) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("how the budget %s is used up: %w", b.Name, err)
	}
	t := emptyBurndown(b, n, amount)
	long := new(big.Rat).SetInt64(int64(end.Sub(from)))
	even := func(at time.Time) Cell {
		rest := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(max(end.Sub(at), 0))), long)
		return v1.Rat(rest.Mul(rest, amount))
	}
	add := func(at time.Time, left, forecast *big.Rat) {
		t.Rows = append(t.Rows, []Cell{v1.Words(at.Format(map[bool]string{true: view.MinuteLayout, false: time.DateOnly}[step == "hour"])), v1.Rat(left), even(at), v1.Rat(forecast)})
	}
	left, m, until := new(big.Rat).Set(amount), a.Find(measure), from
	goes, known := to.Before(end), m == nil
	for i := 1; i < len(a.Edges); i++ {
		if a.Edges[i].Equal(to) && goes { // an interval that goes on: the forecast begins before it
			break
		}
		var used *big.Rat
		if m != nil {
			used = figureAt(m.Values, i-1).Number()
		}
		if known = known || used != nil; known {
			add(until, left, nil)
		} else {
			add(until, nil, nil) // what was used before records are known is not known
		}
		until = a.Edges[i].In(zone)
		if used != nil {
			left = new(big.Rat).Sub(left, used)
		}
	}
	if !goes || b.Pace == nil {
		add(until, left, nil)
		return t, nil
	}
	add(until, left, left)
	forecastRows(step, until, end, left, v1.Figure(&b.Pace.PerDay).Number(), add)
	return t, nil
}

// forecastRows adds what will be left at a pace a day, until the end.
func forecastRows(step string, from, end time.Time, left, pace *big.Rat, add func(at time.Time, left, forecast *big.Rat)) {
	if pace == nil {
		return
	}
	for at := intervalStart(from, step); at.Before(end); {
		switch step {
		case "hour":
			at = at.Add(time.Hour)
		case "day":
			at = at.AddDate(0, 0, 1)
		case "week":
			at = at.AddDate(0, 0, 7)
		default:
			at = at.AddDate(0, 1, 0)
		}
		if at.After(end) {
			at = end
		}
		days := dividedBy(hoursOf(at.Sub(from)), big.NewRat(24, 1))
		add(at, nil, new(big.Rat).Sub(left, days.Mul(days, pace)))
	}
}
