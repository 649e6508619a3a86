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
	s := &statement{zone: zone}
	for _, part := range []struct {
		name, title string
		has         func(*price) bool
	}{
		{"now", "In effect on " + at.In(zone).Format(view.MinuteLayout), func(p *price) bool { return !p.From.After(at.Time) && (p.To.IsZero() || p.To.After(at.Time)) }},
		{"next", "To come", func(p *price) bool { return p.From.After(at.Time) }},
		{"before", "Before", func(p *price) bool { return !p.To.IsZero() && !p.To.After(at.Time) }},
	} {
		var rows [][]Cell
		for i := range list {
			if p := &list[i]; part.has(p) {
				whom := cmp.Or(view.Conditions(p.Match), "all")
				rows = append(rows, []Cell{v1.Words(p.Component), v1.Words(whom), v1.Words(p.Price.Price.String() + " " + currency + " per " + p.PerText()), s.dayCell(p.From), s.dayCell(p.To), v1.Words(p.List)})
			}
		}
		if len(rows) > 0 {
			slices.SortStableFunc(rows, func(x, y []Cell) int { return cmp.Compare(x[0].String(), y[0].String()) })
			d.Add(Table{Name: part.name, Title: part.title, Columns: priceColumns(), Rows: rows})
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

func priceColumns() []Column {
	return []Column{
		{Name: "component", Title: "Component", Kind: Text}, {Name: "for", Title: "For", Kind: Text}, {Name: "price", Title: "Price", Kind: Text},
		{Name: "from", Title: "From", Kind: Text}, {Name: "to", Title: "Until", Kind: Text}, {Name: "list", Title: "List", Kind: Text},
	}
}
