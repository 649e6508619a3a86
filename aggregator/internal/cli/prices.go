package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) pricesCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: "prices", Short: "List the prices in effect at a time",
		Long: `List the prices in effect at a time: for an amount of 1 for an hour, or for 1 of a
total. The first price of a component whose conditions a record meets applies.`,
		Example: "  bursar prices\n  bursar prices -at 2025\n  bursar prices -format csv",
	}
	cmd.Flags().StringVar(&at, "at", "", "the `time` at which they hold, such as 2025 or 2026-03-01; default now")
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Prices, error) {
		return api.Prices(ctx, &v1.PricesQuery{At: at})
	}
	return look(p, cmd, ask, showPrices)
}

func showPrices(a v1.Prices, f format) page {
	t := newTable("COMPONENT", "PER", ">PRICE", "UNIT", "~FOR", "?LIST", "?FROM", "?TO")
	for _, x := range a.Prices {
		whom := conditions(x.Match)
		if whom == "" && f == asTable {
			whom = "all"
		}
		t.add(x.Component, x.Per, x.Price.String(), string(a.Currency), whom, x.List, instant(x.From), instant(x.To))
	}
	if f == asTable && len(a.Prices) == 0 {
		return page{notes: []string{fmt.Sprintf("No prices hold at %s; a block price \"name\" { … } in aggregator.hcl makes some.", instant(a.At))}}
	}
	return page{table: t}
}
