package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ways lead from the figures of a report to the sums that they are of, on the page Usage, from
// which the runs are a click away.
type ways struct {
	own     report.Keys
	doc     *report.Document
	zone    *time.Location
	where   []condition                                                // of whom the report is
	budgets map[string]*v1.Budget                                      // by name; nil where the page has no sums of them
	bins    map[string][]json.Number                                   // the bounds of the bins of run time and wait that the report has
	records func(where []condition, from, to time.Time) (string, bool) // [Pages.recordsAddress]
}

// makeWays finds out of whom and of what a report is.
func (p *Pages) makeWays(ctx context.Context, r v1.API, d *report.Document, query url.Values) *ways {
	w := &ways{own: p.ownKeys(), doc: d, zone: view.Zone(d.Zone), records: p.recordsAddress}
	for _, name := range []string{"of", "where"} {
		for _, pair := range givenValues(&report.Param{Name: name}, query) {
			if key, value, ok := strings.Cut(pair, "="); ok {
				w.where = append(w.where, condition{key, value})
			}
		}
	}
	if user := query.Get("user"); user != "" && d.Report == "person" {
		w.where = append(w.where, condition{w.own.User, v1.JoinList(user)})
	}
	if d.Report == "budgets" {
		if a, err := r.Budgets(ctx, report.BudgetsAsked(query.Get("name"), query.Get("at"))); err == nil {
			w.budgets = map[string]*v1.Budget{}
			for i := range a.Budgets {
				w.budgets[a.Budgets[i].Name] = &a.Budgets[i]
			}
		}
	}
	if d.Report == "distributions" && len(d.Periods) > 0 {
		where := map[string]string{}
		for _, c := range w.where {
			where[c.Key] = c.Value
		}
		if a, err := r.Distributions(ctx, report.DistributionsAsked(query.Get("period"), d.Made.Time, w.zone, where)); err == nil {
			w.bins = map[string][]json.Number{"runtime": report.ShownBins(&a, "runtime"), "wait": report.ShownBins(&a, "wait")}
		}
	}
	return w
}

// binAddress are the jobs of a bin of run time or wait that ended in the period; "" where no list
// has them.
func (w *ways) binAddress(of string, n int) string {
	bins := w.bins[of]
	if n >= len(bins) || len(w.doc.Periods) == 0 {
		return ""
	}
	period := &w.doc.Periods[0]
	records, whole := w.records(w.where, period.From.Time, period.To.Time)
	at, err := url.Parse(records)
	if err != nil || !whole {
		return ""
	}
	q := at.Query()
	q.Del("ran_since")
	q.Del("ran_until")
	q.Set("since", period.From.UTC().Format(time.RFC3339Nano))
	q.Set("until", period.To.UTC().Format(time.RFC3339Nano))
	field := map[string]string{"runtime": "took", "wait": "waited"}[of]
	q.Set(field+"_from", bins[n].String())
	if n+1 < len(bins) {
		q.Set(field+"_below", bins[n+1].String())
	}
	return "/ui/records?" + q.Encode()
}

// askOf is the page Usage of a period of the report.
func (w *ways) askOf(period int, measure string, more ...condition) (usageAsk, bool) {
	a := usageAsk{Measure: measure, Kind: stepped, Top: usualTop, own: w.own, Where: slices.Concat(w.where, more)}
	if period >= len(w.doc.Periods) {
		return a, false
	}
	of := &w.doc.Periods[period]
	a.From, a.To = of.From.UTC().Format(time.RFC3339Nano), of.To.UTC().Format(time.RFC3339Nano)
	return a, true
}

// sumAddress is the sum of a period of the report; "" where it has no such period.
func (w *ways) sumAddress(period int, measure string, more ...condition) string {
	a, ok := w.askOf(period, measure, more...)
	if !ok {
		return ""
	}
	return a.pageAddress()
}

// cellAddress is where a cell of a table leads; "" to nowhere.
func (w *ways) cellAddress(t *report.Table, n int, row []report.Cell, k int) string {
	c, head := &t.Columns[k], &t.Columns[0]
	value := row[k].String()
	grouped := w.isKey(head.Name)
	switch {
	case !row[k].Known() || view.IsOthers(row[0].String()):
		return ""
	case t.Name == "years":
		return w.monthAddress(c.Name, n)
	case head.Name == "budget":
		return w.budgetAddress(row[0].String(), c.Name)
	case c.Kind != report.Text && grouped && columnMeasure(t, c) != "":
		return w.sumAddress(columnPeriod(c), columnMeasure(t, c), w.groupOf(head.Name, row[0]))
	case c.Kind == report.Text && k == 0 && grouped:
		return w.sumAddress(0, "", w.groupOf(head.Name, row[0]))
	case w.bins[t.Name] != nil && (k == 0 || c.Name == "jobs"):
		return w.binAddress(t.Name, n)
	case k == 0 && (t.Name == "course" || t.Name == "queue"):
		return w.intervalAddress(value, map[string]string{"course": "Cores", "queue": "queued"}[t.Name])
	}
	return aboutPage(w.own, c.Name, value)
}

// totalAddress is where a cell of the last row leads, which has the sums of a table by a key.
func (w *ways) totalAddress(t *report.Table, k int) string {
	measure := columnMeasure(t, &t.Columns[k])
	if measure == "" || !w.isKey(t.Columns[0].Name) || !t.Totals[k].Known() {
		return ""
	}
	return w.sumAddress(columnPeriod(&t.Columns[k]), measure)
}

// columnPeriod is the period of the report of which the figures of a column are.
func columnPeriod(c *report.Column) int {
	if c.Name == "before" {
		return 1
	}
	return max(c.Period-1, 0)
}

// isKey reports whether the column of this name has values by which usage can be asked.
func (w *ways) isKey(column string) bool {
	return slices.Contains(keysWidestFirst(w.own), column) || column == "state"
}

// groupOf is the condition of a row's group, which may be those without a value.
func (w *ways) groupOf(key string, name report.Cell) condition {
	value := name.String()
	if value == view.NoValue {
		value = ""
	}
	return condition{key, v1.JoinList(value)}
}

// columnMeasure is the measure of /v1/usage of which the figures of a column are; "" where it is
// not known.
func columnMeasure(t *report.Table, c *report.Column) string {
	switch {
	case c.Kind == report.Money, t.Name == "people" && (c.Name == "before" || c.Name == "change"): // of what the people are in order
		return ""
	case c.Kind == report.Number && !slices.Contains([]string{"", "core-hours", "minutes", "jobs"}, c.Unit):
		return ""
	}
	switch c.Name {
	case "jobs":
		return "jobs"
	case "used", "share", "change", "core_hours", "less", "before", "lost":
		return "Cores"
	case "wait":
		return "wait"
	case "efficiency", "unused":
		return c.Name
	}
	return ""
}

// monthAddress is the sum of a month of a table with a row for each; its columns are named
// after the year, and what is not core-hours after that too.
func (w *ways) monthAddress(column string, month int) string {
	what, year, ok := strings.Cut(column, " ")
	if !ok {
		what, year = "Cores", column
	}
	return w.intervalAddress(fmt.Sprintf("%s-%02d", year, month+1), map[string]string{"Cores": "Cores", "Cost": "cost", "Energy": "energy"}[what])
}

// intervalAddress is the sum of an interval by its label, such as 2026-03-01; "" where the label is not an interval.
func (w *ways) intervalAddress(label, measure string) string {
	word, _, _ := strings.Cut(label, " ") // and perhaps that it is partial
	if _, err := calendar.ParseWindow(word, record.FromStd(w.doc.Made.Time), w.zone); err != nil || measure == "" {
		return ""
	}
	a, _ := w.askOf(0, measure)
	a.From, a.To, a.Window = "", "", word
	return a.pageAddress()
}

// budgetAddress is the page of a budget or, where the page has the sums, the sum of what is used.
func (w *ways) budgetAddress(name, column string) string {
	b := w.budgets[name]
	switch {
	case column == "budget":
		return aboutPage(w.own, column, name)
	case column != "used" || b == nil || b.Period.From.IsZero():
		return ""
	}
	to := w.doc.Made.Time
	if end := b.Period.To.Time; !end.IsZero() && end.Before(to) {
		to = end
	}
	a := usageAsk{From: b.Period.From.UTC().Format(time.RFC3339Nano), To: to.UTC().Format(time.RFC3339Nano), Measure: b.Measure, Kind: stepped, Top: usualTop, own: w.own}
	for key, value := range b.Match {
		a.Where = append(a.Where, condition{strings.TrimPrefix(key, "meta."), v1.JoinList(value)})
	}
	return a.pageAddress()
}

// tableAddress is where the figures of a table lead that no row leads on from: the jobs in the
// order of what they are binned by, or the sum; "" where rows lead on.
func (w *ways) tableAddress(t *report.Table) string {
	measure, binned := map[string]string{"load": "running", "waits": "wait"}[t.Name], t.Columns[0].Name == "bin"
	if !binned && measure == "" || len(w.doc.Periods) == 0 {
		return ""
	}
	records, whole := w.records(w.where, w.doc.Periods[0].From.Time, w.doc.Periods[0].To.Time)
	if !binned || !whole {
		return w.sumAddress(0, measure)
	}
	if order := map[string]string{"size": "-component.Cores", "runtime": "-runtime", "memory": "-component.Memory"}[t.Name]; order != "" {
		records += "&sort=" + order
	}
	return records
}

// figureAddress is where a figure of the tiles leads.
func (w *ways) figureAddress(name string) string {
	word, _, _ := strings.Cut(name, " (")
	measure := map[string]string{
		"Cost": "cost", "Cores": "Cores", "GPUs": "GPUs", "Memory": "Memory", "MemoryUsed": "MemoryUsed", "Jobs": "jobs", "People": "people", "Mean wait": "wait",
		"CPU efficiency": "efficiency", "Unused": "unused", "Energy": "energy", "CO2": "co2", "Utilization": "utilization",
	}[word]
	return w.sumAddress(0, measure)
}
