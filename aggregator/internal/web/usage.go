package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// usagePage is what the usage page shows.
type usagePage struct {
	Ask  usageAsk
	Form usageForm
	// Trail is the way down to here.
	Trail []crumb
	// Chips are the conditions, each with the address without it.
	Chips []crumb
	// Offers are conditions that the field for filters offers.
	Offers offered
	// Chosen says that the page chose the window, and why.
	Chosen  string
	Nothing *nothing
	Sheet   *usageSheet
	From    time.Time
	To      time.Time
	Zone    string
	Views   []savedView
	Keep    *keeping // nil: the reader does not configure the cluster
	Lacks   bool     // the reader sees what sources lack
	Earlier string
	Later   string
	Wider   string
}

// crumb is a step of the way down.
type crumb struct{ Key, Value, Address string }

func (p *Pages) usageHandler() http.Handler {
	show := p.pageHandler("usage", p.usageContent)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q, changed := tidyUsage(r.URL.Query(), p.ownKeys()); changed {
			http.Redirect(w, r, "/ui/usage?"+q.Encode(), http.StatusSeeOther) //nolint:gosec // to this page itself
			return
		}
		show.ServeHTTP(w, r)
	})
}

func (p *Pages) usageContent(r *http.Request, v *access.View) (any, error) {
	ask, err := readUsage(r.URL.Query(), p.ownKeys())
	page := &usagePage{Ask: ask, Lacks: v.MayFigures() == nil}
	if err != nil {
		page.Form = page.makeForm(nil, nil)
		return page, err
	}
	keys, err := p.usageKeys(r.Context(), v)
	if err != nil {
		return nil, err
	}
	page.Ask.By = ask.groupingKey(keys)
	page.Form = page.makeForm(keys, nil)
	offers := make(chan []string, 1)
	go func() { // beside the figures, which take as long
		var list []string
		defer func() {
			if cause := recover(); cause != nil { // as in a request, nothing else suffers
				p.Log.Error("suggestions met a defect", "panic", cause)
			}
			offers <- list
		}()
		list = p.offerConditions(r.Context(), keys)
	}()
	err = p.fillUsage(r.Context(), page, keys)
	page.Offers = offered{"words-where", <-offers}
	page.Views, page.Keep = p.savedViews(r), p.keepView(r.Context(), &page.Ask, page.Sheet)
	return page, err
}

// usageKeys are those that usage can be asked by.
func (p *Pages) usageKeys(ctx context.Context, v *access.View) ([]string, error) {
	keys, err := v.Keys(ctx)
	if err != nil {
		return nil, err
	}
	for i := range p.derivation().Keys {
		keys = append(keys, p.derivation().Keys[i].Name)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// groupingKey is the list of the keys that give the lines.
func (a usageAsk) groupingKey(keys []string) string {
	if a.By != "" {
		return a.By
	}
	for _, key := range []string{a.own.Group, a.own.User, "site_id"} {
		if slices.Contains(keys, key) && !a.hasCondition(key) {
			return key
		}
	}
	for _, key := range keys {
		if !a.hasCondition(key) {
			return v1.JoinList(key)
		}
	}
	return a.own.Group
}

// fillUsage asks /v1, first what there is in the window, then of whom.
func (p *Pages) fillUsage(ctx context.Context, page *usagePage, keys []string) error {
	page.Trail, page.Chips = page.conditionTrail(), page.conditionChips()
	known, err := p.chooseWindow(ctx, page)
	if err != nil {
		return err
	}
	page.Ask.Clock = known.Zone
	page.From, page.To, page.Zone = known.Window.From.Time, known.Window.To.Time, known.Zone
	page.Form = page.makeForm(keys, known)
	page.linkNeighbours(p.currentTime())
	measures := p.measureChoices(known)
	if known.Records == 0 {
		if page.Ask.Measure == "" {
			measures = append([]choice{{Text: "automatic"}}, measures...)
		}
		page.Form.Measures = groupChoices(measures, page.Ask.Measure)
		page.Nothing, err = p.explainNothing(ctx, page.Ask, known)
		return err
	}
	if page.Ask.Measure == "" {
		page.Ask.Measure = usualMeasure(known)
	}
	page.Form = page.makeForm(keys, known)
	page.Form.Measures = groupChoices(measures, page.Ask.Measure)
	if !slices.ContainsFunc(measures, func(c choice) bool { return c.Value == page.Ask.Measure }) && isComponent(page.Ask.Measure) {
		page.Nothing = page.Ask.notUsed(measures)
		return nil
	}
	return p.fillSheet(ctx, page, keys)
}

// isComponent reports whether a measure can be one of a record's components.
func isComponent(measure string) bool {
	name, _, _ := strings.Cut(measure, "*")
	return !slices.Contains([]string{"capacity", "utilization", "records", "jobs", "started", "stopped", "people", "wait", "efficiency", "unused", "running", "queued"}, name)
}

// chooseWindow asks what there is in the window, and chooses one where none is asked for.
func (p *Pages) chooseWindow(ctx context.Context, page *usagePage) (*v1.Usage, error) {
	chosen := page.Ask.Window == "" && page.Ask.From == ""
	if chosen {
		page.Ask.Window = usualWindow
	}
	known, err := p.askUsage(ctx, page.Ask.usageQuery())
	if err != nil || !chosen || known.Records != 0 {
		return known, err
	}
	first, last, err := p.recordExtent(ctx, page.Ask)
	if err != nil || last.IsZero() {
		return known, err
	}
	if month := last.AddDate(0, 0, -30); first.Before(month) {
		first = month
	}
	zone := view.Zone(known.Zone)
	page.Ask = page.Ask.withWindow(clockTime(first, zone), clockTime(last, zone))
	page.Chosen = "Nothing ran in the last 7 days. These are the newest days with records."
	return p.askUsage(ctx, page.Ask.usageQuery())
}

func (p *Pages) askUsage(ctx context.Context, q *v1.UsageQuery) (*v1.Usage, error) {
	a, err := p.V1.Usage(ctx, q)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// fillSheet asks for the figures and makes the tables of them.
func (p *Pages) fillSheet(ctx context.Context, page *usagePage, keys []string) error {
	a := &page.Ask
	step := a.Step
	if step == "" {
		step = report.Interval(page.To.Sub(page.From))
	}
	page.From = a.inIntervals(page.From, page.To, step)
	q := a.usageQuery()
	q.Window, q.From, q.To = "", page.From.Format(time.RFC3339Nano), page.To.Format(time.RFC3339Nano) // what is downloaded is what is seen
	q.By, q.Measure, q.Order, q.Top = a.By, v1.JoinList(a.Measure), a.Measure, a.Top
	if a.Measure != "jobs" {
		q.Measure = v1.JoinList(a.Measure, "jobs")
	}
	if a.Measure == "people" {
		step = "" // people of two days cannot be added
	}
	q.Bucket = step
	if n := stepCount(page.From, page.To, step); n > mostSteps {
		return badRequest("From %s to %s are about %d steps of one %s; choose a longer step, or none, which fits the period.", p.formatTime(page.From), p.formatTime(page.To), n, step)
	}
	answer, err := p.askUsage(ctx, q)
	if err != nil {
		if problem := asProblem(err); problem != nil && problem.Status == http.StatusBadRequest {
			return badRequest("%s.", strings.TrimSuffix(problem.Detail, "."))
		}
		return err
	}
	page.Sheet = p.usageSheet(*a, keys, step, answer)
	if records, whole := p.recordsAddress(a.Where, page.From, page.To); whole {
		page.Sheet.Records = records
	}
	page.Sheet.addChanges(p.previousUsage(ctx, *q), a.Measure)
	if err := p.correctTotals(ctx, page.Sheet, *q, answer); err != nil {
		return err
	}
	page.Sheet.JSON, page.Sheet.CSV = v1.UsageAddress(q, ""), v1.UsageAddress(q, "csv")
	return nil
}

// previousUsage asks for the same of the whole window beside the one before it; nil where there is
// no answer, without which the page is whole.
func (p *Pages) previousUsage(ctx context.Context, q v1.UsageQuery) *v1.Usage {
	q.Bucket, q.Compare = "", "previous"
	answer, err := p.askUsage(ctx, &q)
	if err != nil {
		return nil
	}
	return answer
}

// mostSteps bounds the steps of a page.
const mostSteps = 1000

// stepLengths are those of steps, about.
func stepLengths() map[string]time.Duration {
	const day = 24 * time.Hour
	return map[string]time.Duration{"hour": time.Hour, "day": day, "week": 7 * day, "month": 30 * day, "quarter": 91 * day, "year": 365 * day}
}

func stepCount(from, to time.Time, step string) int {
	long := stepLengths()[step]
	if long == 0 {
		return 1
	}
	return int(to.Sub(from) / long)
}

// usualMeasure is what a page shows when nothing else is asked for: cores, or the
// first component, or the jobs.
func usualMeasure(known *v1.Usage) string {
	measure := "jobs"
	for i := range known.Measures {
		switch m := &known.Measures[i]; {
		case m.Name == "Cores":
			return m.Name
		case measure == "jobs" && m.Component != "":
			measure = m.Name
		}
	}
	return measure
}

func (page *usagePage) conditionTrail() []crumb {
	list := []crumb{{Value: "All", Address: page.Ask.drillUp(0).pageAddress()}}
	for i, c := range page.Ask.Where {
		list = append(list, crumb{Key: c.Key, Value: valuesText(c.Value), Address: page.Ask.drillUp(i + 1).pageAddress()})
	}
	return list
}

// conditionChips are the conditions with the addresses of the page without each.
func (page *usagePage) conditionChips() (list []crumb) {
	for i, c := range page.Ask.Where {
		without := page.Ask
		without.Where = slices.Delete(slices.Clone(page.Ask.Where), i, i+1)
		list = append(list, crumb{Key: c.Key, Value: valuesText(c.Value), Address: without.pageAddress()})
	}
	return list
}

// valuesText is a list of values for people.
func valuesText(list string) string {
	values := v1.SplitList(list)
	for i := range values {
		values[i] = cmp.Or(values[i], view.NoValue)
	}
	return strings.Join(values, " or ")
}

// linkNeighbours sets the addresses of the windows beside this one, and of the one around it.
func (page *usagePage) linkNeighbours(now time.Time) {
	a, long := page.Ask, page.To.Sub(page.From)
	zone := view.Zone(a.Clock)
	link := func(from, to time.Time) string {
		return a.withWindow(clockTime(from, zone), clockTime(to, zone)).pageAddress()
	}
	if months := wholeMonths(page.From.In(zone), page.To.In(zone)); months > 0 {
		page.Earlier = link(page.From.In(zone).AddDate(0, -months, 0), page.From)
		page.Later = link(page.To, page.To.In(zone).AddDate(0, months, 0))
	} else {
		page.Earlier = link(page.From.Add(-long), page.From)
		page.Later = link(page.To, page.To.Add(long))
	}
	if !page.To.Before(now.Add(-time.Minute)) {
		page.Later = ""
	}
	to := page.To.Add(long / 2)
	if to.After(now) {
		to = now
	}
	page.Wider = link(page.From.Add(-long/2), to)
}

// wholeMonths is how many months a window is; 0 when it is not of whole ones.
func wholeMonths(from, to time.Time) int {
	months := 12*(to.Year()-from.Year()) + int(to.Month()-from.Month())
	if from.Day() != 1 || clockTime(from, from.Location()) != from.Format(time.DateOnly) || !from.AddDate(0, months, 0).Equal(to) {
		return 0
	}
	return months
}

// clockTime is how an address says a time: by the zone's clock, to the minute.
func clockTime(t time.Time, zone *time.Location) string {
	t = t.In(zone)
	if h, m, s := t.Clock(); h+m+s == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04")
}

// measureChoices are what can be shown, of what is in the window and what is known by the
// configuration.
func (p *Pages) measureChoices(known *v1.Usage) []choice {
	var list []choice
	worths := map[string]bool{}
	for i := range p.derivation().Weights {
		worths[p.derivation().Weights[i].Name] = true
	}
	for i := range known.Measures {
		if m := &known.Measures[i]; m.Component != "" && !worths[m.Name] {
			list = append(list, choice{Value: m.Name, Text: m.Name + inUnit(m), Group: "Resources"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(worths)) {
		list = append(list, choice{Value: name, Text: name, Group: "Worth"})
	}
	add := func(group string, names ...string) {
		for _, name := range names {
			list = append(list, choice{Value: name, Text: measureName(name), Group: group})
		}
	}
	add("Jobs", "jobs", "started", "stopped", "running", "queued", "records", "people")
	if !known.Complete.Limited { // a part of the records beside what all run on is no share
		list = append(list, choice{Value: "utilization", Text: "Utilization", Group: "Capacity"}, choice{Value: "capacity", Text: "Capacity (core-hours)", Group: "Capacity"})
	}
	add("Quality", "wait", "efficiency", "unused")
	return list
}

// inUnit says in what a measure comes.
func inUnit(m *v1.Measure) string {
	if unit := m.UnitText(); unit != "" {
		return " (" + unit + ")"
	}
	return ""
}
