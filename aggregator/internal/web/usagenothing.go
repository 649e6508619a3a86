package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// nothing says what there is where a window has none of what is asked for.
type nothing struct {
	Text  string
	Links []pointer
}

// pointer is a link to what there is.
type pointer struct{ Text, Address string }

// beginning is before all records.
const beginning = "1970-01-01"

// recordExtent is from when to when records ran, in days; zero when there are none. The years that
// have records are found first: all days since the beginning would be an answer of a megabyte.
func (p *Pages) recordExtent(ctx context.Context, a usageAsk) (first, last time.Time, err error) {
	years, err := p.bucketsWithRecords(ctx, a.withWindow(beginning, ""), "year")
	if err != nil || len(years) == 0 {
		return first, last, err
	}
	for _, year := range []v1.Window{years[0], years[len(years)-1]} {
		days, err := p.bucketsWithRecords(ctx, a.withWindow(year.From.Format(time.RFC3339), year.To.Format(time.RFC3339)), "day")
		if err != nil || len(days) == 0 {
			return time.Time{}, time.Time{}, err
		}
		if first.IsZero() {
			first = days[0].From.Time
		}
		last = days[len(days)-1].To.Time
	}
	return first, last, nil
}

// bucketsWithRecords are those of a window in which records ran.
func (p *Pages) bucketsWithRecords(ctx context.Context, a usageAsk, bucket string) (list []v1.Window, err error) {
	q := a.usageQuery()
	q.Measure, q.Bucket = "records", bucket
	u, err := p.askUsage(ctx, q)
	if err != nil || len(u.Measures) == 0 {
		return nil, err
	}
	for b, n := range u.Measures[0].Values {
		if n != nil && *n != "0" && b+1 < len(u.Edges) {
			list = append(list, v1.Window{From: u.Edges[b], To: u.Edges[b+1]})
		}
	}
	return list, nil
}

// explainNothing finds out why there is nothing, and what there is.
func (p *Pages) explainNothing(ctx context.Context, a usageAsk, known *v1.Usage) (*nothing, error) {
	for i := range a.Where {
		n, err := p.explainUnknownValue(ctx, a, i)
		if n != nil || err != nil {
			return n, err
		}
	}
	first, last, err := p.recordExtent(ctx, a)
	if err != nil {
		return nil, err
	}
	zone := view.Zone(a.Clock)
	if last.IsZero() {
		n := &nothing{Text: "There are no records yet."}
		switch {
		case known.Complete.Limited:
			n.Text = "There are no records yet that you may see."
		case len(a.Where) > 0:
			n.Text = "No record ever had all of these values together."
			n.Links = []pointer{{Text: "All usage", Address: a.drillUp(0).pageAddress()}}
		}
		return n, nil
	}
	day := func(t time.Time) string { return t.In(zone).Format(time.DateOnly) }
	end := last.Add(-time.Second)
	n := &nothing{Text: fmt.Sprintf("Nothing ran from %s to %s. The records here begin on %s and end on %s.", whenIn(known.Window.From.Time, zone), whenIn(known.Window.To.Time, zone), day(first), day(end))}
	n.Links = append(n.Links, pointer{Text: fmt.Sprintf("Show %s to %s", day(first), day(end)), Address: a.withWindow(clockTime(first, zone), clockTime(last, zone)).pageAddress()})
	return n, nil
}

func whenIn(t time.Time, zone *time.Location) string { return t.In(zone).Format(view.MinuteLayout) }

// explainUnknownValue says that no record has a value of the way down; nil when some
// have it.
func (p *Pages) explainUnknownValue(ctx context.Context, a usageAsk, place int) (*nothing, error) {
	c := a.Where[place]
	around := a.drillUp(place)
	q := around.withWindow(beginning, "").usageQuery()
	q.By, q.Measure, q.Order = v1.JoinList(c.Key), "records", "records"
	values, err := p.askUsage(ctx, q)
	if err != nil {
		if problem := asProblem(err); problem != nil && problem.Status < 500 {
			return nil, badRequest("%s", problem.Detail)
		}
		return nil, err
	}
	var names []string
	wanted := v1.SplitList(c.Value)
	for i := range values.Groups {
		if v := values.Groups[i].Values; len(v) == 1 && v[0] != nil {
			names = append(names, *v[0])
		} else if slices.Contains(wanted, "") {
			return nil, nil //nolint:nilnil // those without a value are known
		}
	}
	if len(names) == 0 || slices.ContainsFunc(wanted, func(v string) bool { return slices.Contains(names, v) }) {
		return nil, nil //nolint:nilnil // it is a known one
	}
	n := &nothing{Text: fmt.Sprintf("No record has the %s %q.", keyName(c.Key, p.ownKeys()), valuesText(c.Value))}
	if near := hcl.Suggest(wanted[0], names); near != "" {
		n.Text += " Did you mean one of these?"
		names = append([]string{near}, slices.DeleteFunc(names, func(s string) bool { return s == near })...)
	} else {
		n.Text += " There are:"
	}
	for _, name := range names[:min(len(names), 8)] {
		to := a
		to.Where = slices.Clone(a.Where)
		to.Where[place].Value = v1.JoinList(name)
		n.Links = append(n.Links, pointer{Text: name, Address: to.pageAddress()})
	}
	return n, nil
}

// notUsed says that no one here used what is asked for.
func (a usageAsk) notUsed(measures []choice) *nothing {
	n := &nothing{Text: fmt.Sprintf("No record here has %s. There are:", a.Measure)}
	for _, c := range measures {
		if c.Group == "Resources" || c.Group == "Worth" {
			to := a
			to.Measure = c.Value
			n.Links = append(n.Links, pointer{Text: c.Text, Address: to.pageAddress()})
		}
	}
	return n
}

// asProblem is a refusal of /v1; nil when it is none.
func asProblem(err error) *client.Problem {
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return p
	}
	return nil
}
