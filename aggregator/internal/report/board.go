package report

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// board is a statement with what a page shows of it: how the figures went, who left how
// much unused, and how budgets are used up.
type board struct {
	statement

	d *Document
}

// boardParams are those of all boards.
func boardParams(list ...Param) []Param {
	period := periodParam()
	period.Most, period.Default = 1, []string{"30d"}
	period.About = "The time that is reported, such as 30d, last-month or 2026-03; it stands beside the one before it."
	return append(list, period, numberParam("top", "Max rows", "How many rows a list has at most, from 1 to 100.", 10), zoneParam())
}

// newBoard asks what was used in a period, and in the one before it, by what meets conditions
// of /v1/usage.
func newBoard(ctx context.Context, r v1.API, q *Query, of map[string]string, name, title string) (*board, error) {
	o := &StatementOptions{Of: of, Period: q.One("period"), Zone: q.One("zone"), Top: q.Number("top"), MemoryPerGB: 1024, Now: q.Now, Keys: q.Keys}
	if err := checkBounds(bounds{"top", float64(o.Top), 1, mostJobs}); err != nil {
		return nil, err
	}
	zone, err := clockOf(ctx, r, &o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", name, err)
	}
	b := &board{statement: statement{o: o, r: r, zone: zone}}
	b.d = &Document{Format: Format, Report: name, Title: title, Subject: subjectText(o.Of), Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String()}
	if err := b.resolvePeriods(ctx); err != nil {
		return nil, err
	}
	b.d.Periods = b.periods
	return b, nil
}

// Brief is what a dashboard shows of a period, beside the one before it: the figures and the
// budgets of one user; of all that the reader sees without one. Without records the error
// wraps [ErrNothing].
func Brief(ctx context.Context, r v1.API, user, period string, now time.Time) (*Document, error) {
	keys, err := askKeys(ctx, r)
	if err != nil {
		return nil, err
	}
	given := url.Values{"period": {period}}
	e, whose := centreEntry(), map[string]string{}
	if user != "" {
		e, whose = personEntry(), map[string]string{keys.User: user}
		given.Set("user", user)
	}
	q, err := e.Own(keys).Query(given)
	if err != nil {
		return nil, err
	}
	q.Now, q.Keys = now, keys
	b, err := newBoard(ctx, r, &q, exactConditions(whose), "widget", "Usage")
	if err != nil {
		return nil, err
	}
	return b.addParts(ctx, b.figureTiles, b.buildBudgets)
}

// addParts adds the tables that the parts make, and the notes.
func (b *board) addParts(ctx context.Context, parts ...func(context.Context) (*Table, error)) (*Document, error) {
	for _, part := range parts {
		t, err := part(ctx)
		if err != nil {
			return nil, fmt.Errorf("report %s: %w", b.d.Report, err)
		}
		if t != nil {
			b.d.Add(*t)
		}
	}
	b.d.Notes = append(b.aboutNotes(), b.notes...)
	return b.d, b.d.Check()
}

// optionalUsage asks for what may not be configured, or is not for the reader; then it is nil.
func (b *board) optionalUsage(ctx context.Context, q v1.UsageQuery, period int) (*v1.Usage, error) {
	a, err := b.usageOfPeriod(ctx, q, period)
	if hasStatus(err, http.StatusBadRequest, http.StatusForbidden) {
		return nil, nil
	}
	return a, err
}

// unusedHours are core-hours that no process used, of the jobs that say what they used; nil where
// none does. Who used more than was booked left none.
func unusedHours(n *big.Rat) *big.Rat {
	if n == nil || n.Sign() > 0 {
		return n
	}
	return new(big.Rat)
}

func subtractUsed(booked, used *big.Rat) *big.Rat {
	if booked == nil || used == nil {
		return nil
	}
	if spare := new(big.Rat).Sub(booked, used); spare.Sign() > 0 {
		return spare
	}
	return new(big.Rat)
}

// waitAndEfficiency returns how long jobs waited and what they used and left unused, in one period.
func (b *board) waitAndEfficiency(period int) (wait, efficiency, spare *big.Rat) {
	a := b.figures[period]
	return inMinutes(a.Find("wait"), totalOf(a, "wait", nil)), percentOf(totalOf(a, "efficiency", nil)), unusedHours(totalOf(a, "unused", nil))
}

// inMinutes is a time of a measure in minutes.
func inMinutes(m *v1.Measure, n *big.Rat) *big.Rat {
	if n == nil || m == nil {
		return nil
	}
	if m.Unit == "hour" {
		return new(big.Rat).Mul(n, big.NewRat(60, 1))
	}
	return dividedBy(n, big.NewRat(60, 1))
}

// percentOf is a quotient in per cent.
func percentOf(n *big.Rat) *big.Rat {
	if n == nil {
		return nil
	}
	return new(big.Rat).Mul(n, big.NewRat(100, 1))
}

// figureTiles are the figures of the statement with those of waits, efficiency, energy and utilization.
func (b *board) figureTiles(ctx context.Context) (*Table, error) {
	b.measures = ",wait,efficiency,unused"
	t, err := b.usageFigures(ctx)
	if err != nil {
		return nil, err
	}
	add := func(what, unit string, now, before *big.Rat, compare func(now, before *big.Rat) Cell) {
		if b.before.Records == 0 {
			before = nil
		}
		if now != nil || before != nil {
			t.Rows = append(t.Rows, []Cell{v1.Words(what), v1.Words(unit), v1.Rat(now), v1.Rat(before), compare(now, before)})
		}
	}
	var wait, efficiency, spare, full [2]*big.Rat
	for i := range wait {
		wait[i], efficiency[i], spare[i] = b.waitAndEfficiency(i)
		a, err := b.optionalUsage(ctx, v1.UsageQuery{Measure: "utilization"}, i)
		if err != nil {
			return nil, err
		}
		if a != nil {
			full[i] = totalOf(a, "utilization", nil)
		}
	}
	add("Mean wait", "minutes", wait[0], wait[1], relativeChange)
	add("CPU efficiency", "%", efficiency[0], efficiency[1], relativeChange)
	add("Unused", "core-hours", spare[0], spare[1], b.changeOfSum)
	if err := b.addEnergy(ctx, t); err != nil {
		return nil, err
	}
	if len(b.o.Of) == 0 {
		add("Utilization", "%", percentOf(full[0]), percentOf(full[1]), relativeChange)
	}
	return t, nil
}

// addEnergy adds the energy, with the way that it came about, and notes what it rests on and
// leaves out. Unknown energy has a row without a figure; a site that has none has no row.
func (b *board) addEnergy(ctx context.Context, t *Table) error {
	var energy [2]*big.Rat
	what := ""
	for i := range energy {
		if i == 1 && b.before.Records == 0 {
			break
		}
		a, err := b.optionalUsage(ctx, v1.UsageQuery{Measure: "energy"}, i)
		if err != nil {
			return err
		}
		if a == nil {
			break // it is not configured
		}
		energy[i] = totalOf(a, "energy", nil)
		b.notes = append(b.notes, view.Of(b.periods[i].Name, view.ValueNotes(a))...)
		if what == "" {
			what = "Energy"
			if way := a.Energy.Way(energy[0]); i == 0 && way != "" {
				what += " (" + way + ")"
			}
		}
	}
	if what != "" {
		t.Rows = append(t.Rows, []Cell{v1.Words(what), v1.Words("kWh"), v1.Rat(energy[0]), v1.Rat(energy[1]), b.changeOfSum(energy[0], energy[1])})
	}
	return nil
}

// Interval is the interval of a chart of this length, in a word of /v1/usage.
func Interval(long time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case long <= 3*day:
		return "hour"
	case long <= 100*day:
		return "day"
	case long <= 400*day:
		return "week"
	case long <= 10*366*day:
		return "month"
	}
	return "year"
}

// wholeIntervals widens the period to whole intervals: the first begins before it, and one that goes
// on is left out.
func (b *board) wholeIntervals(step string) (from, to time.Time) {
	from, to = intervalStart(b.periods[0].From.In(b.zone), step), b.periods[0].To.In(b.zone)
	if last := intervalStart(to, step); last.After(from) {
		to = last
	}
	return from, to
}

// intervalStart is the start of the interval of a time, by the clock of its zone.
func intervalStart(t time.Time, step string) time.Time {
	y, m, d := t.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, t.Location())
	switch step {
	case "hour":
		return t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	case "week":
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	case "month":
		return day.AddDate(0, 0, 1-d)
	case "year":
		return day.AddDate(0, 1-int(m), 1-d)
	}
	return day
}

// usageOverTime makes the table of how what was used went, interval by interval, by a key, with
// the capacity where it is known and wanted.
func (b *board) usageOverTime(by string, capacity bool) func(context.Context) (*Table, error) {
	return func(ctx context.Context) (*Table, error) {
		step := Interval(b.periods[0].To.Sub(b.periods[0].From.Time))
		from, to := b.wholeIntervals(step)
		q := v1.UsageQuery{
			From: from.Format(time.RFC3339), To: to.Format(time.RFC3339), Bucket: step, By: by, Measure: "Cores", Order: "Cores", Top: mostAreas, Unit: "hour", Zone: b.o.Zone, Where: b.o.Of,
		}
		a, err := askUsage(ctx, b.r, q)
		if hasStatus(err, http.StatusBadRequest) { // nothing has cores
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		t := areaTable(a, "Core-hours by "+step, step, "core-hours / "+step)
		if !capacity || t == nil {
			return t, nil
		}
		q.By, q.Measure, q.Order, q.Top = "", "capacity", "", 0
		has, err := askUsage(ctx, b.r, q)
		if hasStatus(err, http.StatusBadRequest, http.StatusForbidden) {
			b.addNote("No capacity is known, so that the chart has no line of it.")
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		t.addColumn(Column{Name: "capacity", Title: "Capacity", Kind: Number, Unit: "core-hours / " + step}, has.Measures[0].Values)
		t.Chart.Lines = []string{"capacity"}
		return t, nil
	}
}

// mostAreas is how many groups a chart has beside the others.
const mostAreas = 7

// areaTable is the table of the first measure by interval, with a column for each group.
func areaTable(a *v1.Usage, title, step, unit string) *Table {
	if len(a.Groups) == 0 || len(a.Measures) == 0 {
		return nil
	}
	t := &Table{Name: "course", Title: title, Columns: []Column{{Name: step, Title: view.Capital(step), Kind: Text}}, Chart: &Chart{Kind: Steps, Label: step}}
	for b := range a.Labels {
		t.Rows = append(t.Rows, []Cell{v1.Words(view.PartialLabel(a, b))})
	}
	for g := range a.Groups {
		name := view.GroupName(&a.Groups[g])
		if len(a.Groups[g].Values) == 0 && a.Groups[g].Others == 0 {
			name = "Used"
		}
		t.addColumn(Column{Name: "group " + name, Title: name, Kind: Number, Unit: unit}, a.Measures[0].Values[g*len(a.Labels):])
		t.Chart.Values = append(t.Chart.Values, "group "+name)
	}
	return t
}

// addColumn adds a column of values, one for each row.
func (t *Table) addColumn(c Column, values []*json.Number) {
	t.Columns = append(t.Columns, c)
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], figureAt(values, i))
	}
}

// latestJobs are the jobs that began last.
func (b *board) latestJobs(ctx context.Context) (*Table, error) {
	q := jobQuery{keys: b.o.Keys, where: b.o.Of}
	filter, err := q.buildFilter(ctx, b.r)
	if err != nil || q.mixedKey() != "" {
		return nil, err
	}
	t := &Table{
		Name: "latest", Title: "The latest jobs",
		Columns: []Column{
			{Name: "record_id", Title: "Record", Kind: Text}, {Name: b.o.Keys.User, Title: "User", Kind: Text}, {Name: "began", Title: "Began", Kind: Text},
			{Name: "waited", Title: "Waited", Kind: Number, Unit: "minutes"}, {Name: "hours", Title: "Ran", Kind: Number, Unit: "hours"},
			{Name: "cores", Title: "Cores", Kind: Number}, {Name: "efficiency", Title: "CPU efficiency", Kind: Share}, {Name: "state", Title: "State", Kind: Text},
		},
	}
	query := v1.ListRecordsQuery{Meta: filter.meta, SortBy: v1.SortBy{Desc: "start_time"}, Limit: b.o.Top}
	for j, err := range listJobs(ctx, b.r, &query) {
		if err != nil {
			return nil, fmt.Errorf("the latest jobs: %w", err)
		}
		if filter.matchesJob(j) {
			t.Rows = append(t.Rows, j.latestRow(b.o.Keys, b.zone))
		}
	}
	if len(t.Rows) == 0 {
		return nil, nil
	}
	return t, nil
}

// latestRow is the job's row in the table of the latest jobs. What is not known yet is empty.
func (j *job) latestRow(keys Keys, zone *time.Location) []Cell {
	cores, _ := j.componentAmount("Cores")
	used, _ := j.componentAmount("TotalCPU")
	var ran, waited *big.Rat
	efficiency := Cell{}
	if !j.StopTime.IsZero() {
		ran = j.runtimeHours()
	}
	if !j.SubmitTime.IsZero() {
		waited = new(big.Rat).Mul(hoursOf(j.StartTime.Sub(j.SubmitTime.Time)), big.NewRat(60, 1))
	}
	if ran != nil && cores != nil && used != nil {
		efficiency = Quotient(dividedBy(used, big.NewRat(3600, 1)), new(big.Rat).Mul(ran, cores))
	}
	return []Cell{
		v1.Words(j.RecordID), v1.Words(j.Meta.First(keys.User)), v1.Words(j.StartTime.In(zone).Format(view.MinuteLayout)), v1.Rat(waited), v1.Rat(ran), v1.Rat(cores), efficiency, textCell(j.State),
	}
}
