package web

import (
	"cmp"
	"context"
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// usageSheet is a table of groups, and one of steps with what the chart draws. Both
// are of one answer of /v1/usage.
type usageSheet struct {
	Records string // the page of all jobs; "" where it cannot say them
	Measure string // for people, with its unit
	Unit    string
	Axis    string // what the numbers of the chart are in
	Percent bool   // 1 is 100 per cent
	Key     string // for people
	Step    string // hour, day …; empty: there is one
	Stack   bool   // groups add up
	Kind    string // steps, lines or bars
	Rows    []usageRow
	Total   shown
	Jobs    shown
	Groups  int
	Steps   []usageStep
	Notes   []string
	Limited bool
	CSV     string
	JSON    string
	About   string // the chart in words
	Before  string // the window before, with which it is compared; "" where nothing was in it
}

// shown is a figure, exact and for the eye.
type shown struct{ Exact, Text string }

// usageRow is a group.
type usageRow struct {
	Name    string
	Lacks   bool // it stands for those without a value
	Others  bool
	Paint   report.Paint
	Address string // where to look into it
	Records string // the address of its records, where there is a page of just these
	Value   shown
	Share   string
	Width   string // of the bar, in per cent
	Change  string // beside the window before; "" where it is not known
	Jobs    shown
}

// usageStep is a line of the second table.
type usageStep struct {
	Label   string
	Partial bool // the window has only some of it, or some of it is unknown
	From    time.Time
	To      time.Time
	Address string
	Cells   []shown
	Total   shown
}

func (p *Pages) usageSheet(a usageAsk, keys []string, step string, answer *v1.Usage) *usageSheet {
	s := &usageSheet{Measure: a.Measure, Key: keyNames(a.By, a.own), Step: step, Kind: a.Kind, Limited: answer.Complete.Limited, Notes: view.UsageNotes(answer, "hour")}
	m, jobs := answer.Find(a.Measure), answer.Find("jobs")
	if m == nil || jobs == nil {
		return s
	}
	s.Unit, s.Stack = unitText(m), isAdditive(m)
	s.Measure = measureName(a.Measure)
	s.Percent = m.Kind == "ratio"
	if s.Axis = s.Unit; s.Stack && m.Kind != "level" && s.Unit != "" && step != "" {
		s.Axis += " / " + step
	}
	if !s.Stack && s.Kind == stepped {
		s.Kind = "lines"
	}
	if len(answer.Edges) < 4 {
		s.Kind = bars // too few points for a line
	}
	s.Total, s.Jobs = showFigure(m, m.Total), showFigure(jobs, jobs.Total)
	names := make([]string, len(answer.Groups))
	for g := range answer.Groups {
		names[g] = groupName(&answer.Groups[g])
	}
	for g, paint := range report.Paints(names) {
		row := p.groupRow(a, keys, answer, g)
		row.Paint, row.Value, row.Jobs = paint, showFigure(m, view.At(m.Totals, g)), showFigure(jobs, view.At(jobs.Totals, g))
		if s.Stack {
			row.Share, row.Width = view.Share(v1.Figure(view.At(m.Totals, g)).Number(), v1.Figure(m.Total).Number())
		}
		s.Rows = append(s.Rows, row)
		s.Groups += max(1, answer.Groups[g].Others)
	}
	s.addSteps(a, answer, m)
	s.About = s.chartText()
	return s
}

// addChanges says how much each group has changed since the window before.
func (s *usageSheet) addChanges(a *v1.Usage, measure string) {
	if a == nil || a.ComparedWith == nil {
		return
	}
	m := a.Find(measure)
	if m == nil || m.Compared == nil {
		return
	}
	changes := map[string]string{}
	for g := range a.Groups {
		if change := v1.Figure(view.At(m.Compared.Relative, g)); change.Known() {
			changes[groupName(&a.Groups[g])] = v1.Show(report.Change, change)
		}
	}
	for i := range s.Rows {
		if !s.Rows[i].Others { // they are others in each window
			s.Rows[i].Change = changes[s.Rows[i].Name]
		}
	}
	if len(changes) > 0 {
		s.Before = whenIn(a.ComparedWith.From.Time, view.Zone(a.Zone)) + " – " + whenIn(a.ComparedWith.To.Time, view.Zone(a.Zone)) + " " + a.Zone
	}
}

// isAdditive reports whether the figures of groups add up to that of all.
func isAdditive(m *v1.Measure) bool {
	return m.Name != "people" && slices.Contains([]string{"count", "rate", "total", "weighted", "worth", "level"}, m.Kind)
}

// unitText is the unit of a measure for people.
func unitText(m *v1.Measure) string {
	switch m.Name {
	case "jobs", "started", "stopped", "running", "queued":
		return "jobs"
	case "records":
		return "records"
	}
	return m.UnitText()
}

func measureName(name string) string {
	switch name {
	case "records":
		return "Records"
	case "jobs":
		return "Jobs"
	case "started":
		return "Jobs started"
	case "stopped":
		return "Jobs ended"
	case "running":
		return "Jobs running at a time"
	case "queued":
		return "Jobs waiting at a time"
	case "utilization":
		return "Utilization"
	case "capacity":
		return "Capacity"
	case "people":
		return "People"
	case "wait":
		return "Mean wait"
	case "efficiency":
		return "CPU efficiency"
	case "unused":
		return "Unused cores"
	}
	return name
}

// showFigure writes a figure of a measure.
func showFigure(m *v1.Measure, n *json.Number) shown {
	cell := v1.Figure(n)
	return shown{Exact: cell.String(), Text: v1.ShowIn(view.MeasureKind(m), string(m.Unit), cell)}
}

// groupName is what a group is called.
func groupName(g *v1.UsageGroup) string { return cmp.Or(view.GroupName(g), "all") }

// groupRow is a group with where it leads.
func (p *Pages) groupRow(a usageAsk, keys []string, answer *v1.Usage, g int) usageRow {
	group := &answer.Groups[g]
	row := usageRow{Name: groupName(group)}
	if group.Others > 0 {
		row.Others = true
		if a.Top < mostTop {
			a.Top = min(2*a.Top, mostTop)
			row.Address = a.pageAddress()
		}
		return row
	}
	next, lacks := a.drillDown(group, keys)
	row.Lacks = lacks
	records, whole := p.recordsAddress(next.Where, answer.Window.From.Time, answer.Window.To.Time)
	if whole {
		row.Records = records
	}
	switch {
	case next.By != "":
		row.Address = next.pageAddress()
	case !row.Lacks:
		row.Address = records
	}
	return row
}

// recordsAddress is the page of the records with these values that ran in a window. It
// is false where that page cannot say all of it.
func (p *Pages) recordsAddress(values []condition, from, to time.Time) (string, bool) {
	q := url.Values{"ran_since": {from.UTC().Truncate(time.Second).Format(time.RFC3339)}}
	if to.Before(p.currentTime().Add(-time.Minute)) {
		q.Set("ran_until", to.UTC().Format(time.RFC3339))
	}
	all := true
	for _, c := range values {
		field := fieldsOf(p.ownKeys())[c.Key]
		derived := slices.ContainsFunc(p.derivation().Keys, func(k usage.Key) bool { return k.Name == c.Key })
		switch {
		case derived || slices.Contains(v1.SplitList(c.Value), ""):
			all = false
		case field != "":
			q.Set(field, c.Value)
		case q.Has("key"):
			all = false
		default:
			q.Set("key", c.Key)
			q.Set("value", c.Value)
		}
	}
	return "/ui/records?" + q.Encode(), all
}

// addSteps adds the second table: the figures that the chart draws.
func (s *usageSheet) addSteps(a usageAsk, answer *v1.Usage, m *v1.Measure) {
	n := len(answer.Edges) - 1
	zone := view.Zone(a.Clock)
	for b := range n {
		step := usageStep{From: answer.Edges[b].Time, To: answer.Edges[b+1].Time}
		step.Label = stepLabel(answer, b, zone)
		step.Partial = n > 1 && view.IsPartial(answer, b)
		if n > 1 {
			step.Address = a.withWindow(clockTime(step.From, zone), clockTime(step.To, zone)).pageAddress()
		}
		sum, known := new(big.Rat), false
		for g := range answer.Groups {
			value := view.At(m.Values, g*n+b)
			step.Cells = append(step.Cells, showFigure(m, value))
			if number := v1.Figure(value).Number(); number != nil {
				sum.Add(sum, number)
				known = s.Stack
			}
		}
		if known {
			cell := v1.Rat(sum)
			step.Total = shown{Exact: cell.String(), Text: v1.ShowIn(view.MeasureKind(m), string(m.Unit), cell)}
		}
		s.Steps = append(s.Steps, step)
	}
}

// correctTotals gives the steps the number of all jobs or records, of which those whose group changes
// are in two lines: it is asked for without the key.
func (p *Pages) correctTotals(ctx context.Context, s *usageSheet, q v1.UsageQuery, answer *v1.Usage) error {
	if q.Order != "people" && (q.Order != "records" && q.Order != "jobs" || !slices.ContainsFunc(p.derivation().Keys, func(k usage.Key) bool { return slices.Contains(answer.By, k.Name) })) {
		return nil
	}
	measure := q.Order
	q.By, q.Order, q.Top = "", "", 0
	all, err := p.askUsage(ctx, &q)
	if err != nil {
		return err
	}
	if m := all.Find(measure); m != nil && measure == "people" {
		s.Total = showFigure(m, m.Total) // who is of two groups is one person
	} else if m != nil {
		for b := range s.Steps {
			s.Steps[b].Total = showFigure(m, view.At(m.Values, b))
		}
	}
	return nil
}

// stepLabel is what a step is called, by the zone's clock.
func stepLabel(answer *v1.Usage, b int, zone *time.Location) string {
	if b < len(answer.Labels) && answer.Labels[b] != "" && !strings.Contains(answer.Labels[b], "T") {
		return answer.Labels[b]
	}
	from := answer.Edges[b].In(zone)
	label := whenIn(from, zone)
	if len(answer.Edges) == 2 {
		return label + " – " + whenIn(answer.Edges[1].Time, zone)
	}
	if b > 0 && whenIn(answer.Edges[b-1].Time, zone) == label {
		label += " " + from.Format("MST") // the clock was put back
	}
	return label
}

// chartText says what the chart shows.
func (s *usageSheet) chartText() string {
	var b strings.Builder
	b.WriteString(s.Measure)
	if s.Unit != "" && s.Unit != strings.ToLower(s.Measure) && s.Unit != "jobs" {
		b.WriteString(" in " + s.Unit)
	}
	if s.Step != "" {
		b.WriteString(" for each " + s.Step)
	}
	b.WriteString(" by " + s.Key)
	if len(s.Rows) > 0 && s.Rows[0].Share != "" {
		b.WriteString("; the largest is " + s.Rows[0].Name + " with " + s.Rows[0].Share)
	}
	b.WriteString(". The tables say the same in figures.")
	return b.String()
}
