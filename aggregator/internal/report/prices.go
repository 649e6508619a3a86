package report

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// pricesEntry is what usage costs.
func pricesEntry() Entry {
	return Entry{
		Report: v1.Report{
			Name: "prices", Title: "Prices", About: "The prices in effect, those to come and those of before.",
			Parameters: []Param{
				textParam("at", "Point in time", "When they are in effect: a time or a window, of which the beginning counts, such as now, 2025-07-01 or last-month.", "now", "now", "last-month", "last-year"),
				zoneParam(),
			},
		},
		Long: `The prices in effect, those to come and those of before: for which component, for whom,
and for how long. Of several prices in effect, the most specific one that a record meets
applies to it.`,
		Example: "  bursar report prices\n  bursar report prices -at 2025\n  bursar report prices -o prices.html",
		make:    reportPrices,
	}
}

func reportPrices(ctx context.Context, r v1.API, q Query) (*Document, error) {
	zoneName := q.One("zone")
	zone, err := clockOf(ctx, r, &zoneName)
	if err != nil {
		return nil, fmt.Errorf("report prices: %w", err)
	}
	at, err := instantOf(ctx, r, q.One("at"))
	if err != nil {
		return nil, fmt.Errorf("report prices: %w", err)
	}
	ever := Period{From: v1.Time{Time: time.Unix(0, 0)}, To: v1.Time{Time: q.Now.AddDate(100, 0, 0)}}
	currency, list, err := pricesOf(ctx, r, ever)
	switch {
	case err != nil:
		return nil, fmt.Errorf("report prices: %w", err)
	case len(list) == 0:
		return nil, fmt.Errorf("%w: no prices configured for what you have access to; add a price block to the configuration", ErrNothing)
	}
	d := &Document{Format: Format, Report: "prices", Title: "Prices", Made: v1.Time{Time: q.Now.UTC()}, Zone: zone.String()}
	for _, part := range []struct {
		name, title string
		has         func(*v1.Price) bool
	}{
		{"now", "In effect on " + at.In(zone).Format(view.MinuteLayout), func(p *v1.Price) bool { return !p.From.After(at.Time) && (p.To.IsZero() || p.To.After(at.Time)) }},
		{"next", "To come", func(p *v1.Price) bool { return p.From.After(at.Time) }},
		{"before", "Before", func(p *v1.Price) bool { return !p.To.IsZero() && !p.To.After(at.Time) }},
	} {
		some := v1.Prices{Currency: v1.Text(currency)}
		for i := range list {
			if part.has(&list[i]) {
				some.Prices = append(some.Prices, list[i])
			}
		}
		if len(some.Prices) > 0 {
			slices.SortStableFunc(some.Prices, func(x, y v1.Price) int { return cmp.Compare(x.Component, y.Component) })
			l := view.Prices(some)
			l.Name, l.Title = part.name, part.title
			d.Add(Table(l.Table(zone)))
		}
	}
	d.Notes = append(d.Notes, "Of several prices in effect, the most specific one that a record meets applies; of a component they are listed in that order. A run over a change of prices is split there to the microsecond.")
	return d, d.Check()
}

// instantOf returns the time that a word names, or the beginning of a window.
func instantOf(ctx context.Context, r v1.API, word string) (v1.Time, error) {
	if word == "now" {
		word = ""
	}
	a, err := r.Prices(ctx, &v1.PricesQuery{At: word})
	if hasStatus(err, http.StatusBadRequest) {
		a, err = r.Prices(ctx, &v1.PricesQuery{Window: word})
	}
	return a.At, err
}
