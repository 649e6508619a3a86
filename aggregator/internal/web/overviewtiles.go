package web

import (
	"context"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// totalOf is the sum of a measure; nil where it is not known, and zero where records are known
// and the measure is not in the answer, since a component that no record has is not.
func totalOf(a *v1.Usage, name string) *big.Rat {
	if m := a.Find(name); m != nil {
		return v1.Figure(m.Total).Number()
	}
	if a.Known == nil {
		return nil
	}
	return new(big.Rat)
}

// usageInHours asks for usage in hours.
func (p *Pages) usageInHours(ctx context.Context, q v1.UsageQuery) (*v1.Usage, error) {
	q.Unit = "hour"
	return p.askUsage(ctx, &q)
}

// lackText says to people why a part of a page is not there; "" without an error.
func (p *Pages) lackText(ctx context.Context, err error) string {
	if err == nil {
		return ""
	}
	if problem, ok := errors.AsType[*client.Problem](err); ok {
		return asSentence(problem.Detail)
	}
	if ctx.Err() == nil {
		p.Log.Error("a part of a page failed", "error", err)
	}
	return asSentence(err.Error())
}

// showNumber writes a number for the eye.
func showNumber(kind string, n *big.Rat) string {
	return v1.Show(kind, v1.Rat(n))
}

// utilizationTile says how full the clusters are.
func (p *Pages) utilizationTile(ctx context.Context) tile {
	t := tile{Href: "/ui/reports?report=utilization&period=7d", Value: "–", Label: "of all cores used today"}
	a, err := p.usageInHours(ctx, v1.UsageQuery{Window: "today", Measure: "utilization"})
	if err != nil {
		_, why, cut := strings.Cut(p.lackText(ctx, err), "Utilization: ")
		if !cut {
			why = p.lackText(ctx, err)
		}
		t.Label, t.More = "utilization", []string{asSentence(why)}
		return t
	}
	m := a.Find("utilization")
	if m == nil || m.Total == nil {
		t.Label, t.More = "utilization", []string{"No capacity configured or reported for today."}
		return t
	}
	share := v1.Figure(m.Total)
	t.Value, t.Exact = v1.Show(report.Ratio, share), share.String()
	if hour, err := p.usageInHours(ctx, v1.UsageQuery{Window: "1h", Measure: "utilization"}); err != nil {
		t.More = append(t.More, p.lackText(ctx, err))
	} else if m := hour.Find("utilization"); m != nil && m.Total != nil {
		t.More = append(t.More, v1.Show(report.Ratio, v1.Figure(m.Total))+" in the last hour")
	}
	if note := view.LackingNote(m, "hour"); note != "" {
		t.More = append(t.More, note)
	}
	return t
}

// hoursTiles are what was used today, beside the same part of the same day last week.
func (p *Pages) hoursTiles(ctx context.Context) []tile {
	now := p.currentTime().In(p.siteZone())
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	stamp := func(t time.Time) string { return t.AddDate(0, 0, -7).Format(time.RFC3339Nano) }
	today, err := p.usageInHours(ctx, v1.UsageQuery{Window: "today"})
	before := &v1.Usage{}
	if err == nil {
		before, err = p.usageInHours(ctx, v1.UsageQuery{From: stamp(midnight), To: stamp(now)})
	}
	if err != nil {
		return []tile{{Href: "/ui/usage?window=today", Value: "–", Label: "core-hours today", More: []string{p.lackText(ctx, err)}}}
	}
	var out []tile
	for _, component := range []string{"Cores", "GPUs"} {
		if component != "Cores" && today.Find(component) == nil && before.Find(component) == nil {
			continue // a site without them
		}
		out = append(out, hoursTile(p.ownKeys().Group, component, today, before, now.AddDate(0, 0, -7).Weekday()))
	}
	return out
}

func hoursTile(groupKey, component string, today, before *v1.Usage, day time.Weekday) tile {
	a, b := totalOf(today, component), totalOf(before, component)
	t := tile{
		Href: "/ui/usage?" + url.Values{"window": {"today"}, "by": {groupKey}, "measure": {component}}.Encode(), Label: hoursOf(component) + " today",
		Value: showNumber(report.Number, a), Exact: v1.Rat(a).String(),
	}
	then := "by this time last " + day.String()
	switch {
	case b == nil || before.Known == nil || before.Known.From.After(before.Window.From.Time):
		t.More = []string{"unknown " + then}
		return t
	case b.Sign() == 0:
		t.More = []string{"none " + then}
		return t
	case a == nil:
		t.More = []string{showNumber(report.Number, b) + " " + then}
		return t
	}
	change := new(big.Rat).Quo(new(big.Rat).Sub(a, b), b)
	t.Small = showNumber(report.Change, change)
	if change.Sign() == 0 {
		t.Small = "±0\u202f%"
	}
	t.More = []string{showNumber(report.Number, b) + " " + then}
	return t
}

// hoursOf names what an amount × hours is, such as core-hours, and Memory (MiB-hours).
func hoursOf(component string) string {
	unit := v1.UsageUnit(component, "hour")
	if v1.AmountUnit(component) != "" {
		return component + " (" + unit + ")"
	}
	return unit
}

// countRunning makes the tile with how many jobs run for which tests hold.
func countRunning(ctx context.Context, v *access.View, tests ...store.MetaTest) (tile, error) {
	running, err := countBounded(func(one func() error) error {
		return v.Query(ctx, store.Query{Open: store.OnlyOpen, Meta: tests}, func(row *columns.Row) error {
			if row.Record.Meta.IsPart() { // of a job that counts itself
				return nil
			}
			return one()
		})
	})
	if err != nil {
		return tile{}, err
	}
	t := tile{Href: "/ui/records?runs=running", Value: view.Count(running.N), Label: "jobs running"}
	if running.More {
		t.Value += "+"
	}
	return t, nil
}

// runningTile counts what runs, and what waits where a source tells it.
func (p *Pages) runningTile(ctx context.Context, v *access.View) (tile, error) {
	t, err := countRunning(ctx, v)
	if err != nil {
		return tile{}, err
	}
	if !v.Principal().Rows.All() {
		return t, nil // the census is of all
	}
	switch a, err := p.V1.Capacity(ctx, nil); {
	case err != nil:
		t.More = []string{p.lackText(ctx, err)}
	case a.Census == nil: // not for those who read no records
	case len(a.Census.Sources) == 0:
		t.More = []string{"queue length unavailable"}
	default:
		t.More = []string{view.Count(a.Census.Pending) + " wait in queues"}
	}
	return t, nil
}

// recordsTile counts the records: all of them, or for who sees some those of the
// window of the top groups, since to count the others would be to go through all.
func (p *Pages) recordsTile(ctx context.Context, v *access.View, top *top) tile {
	t := tile{Href: "/ui/records", Label: "records"}
	if !v.Principal().Rows.All() {
		t.Value, t.Label = "–", "records of yours"
		if top.answer != nil {
			t.Value, t.Label = view.Count(top.answer.Records), "records of yours, "+top.When
		}
		return t
	}
	n, err := v.Count()
	if err != nil {
		t.Value, t.More = "–", []string{p.lackText(ctx, err)}
		return t
	}
	t.Value = view.Count(n)
	return t
}
