package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) pricesCommand() *cobra.Command {
	var q v1.PricesQuery
	cmd := &cobra.Command{
		Use: "prices", Short: "List the prices in effect at a time or in a window",
		Long: `List the prices in effect at a time, or at some time of a window: for an amount of 1
for an hour, or for 1 of a total. The first price of a component whose conditions a
record meets applies.`,
		Example: "  bursar prices\n  bursar prices -at 2025\n  bursar prices -window last-month -format csv",
	}
	cmd.Flags().StringVar(&q.Window, "window", "", "all prices in effect at some time of this `window`, such as last-month or 2026-Q3")
	cmd.Flags().StringVar(&q.At, "at", "", "the `time` at which they hold, such as 2025 or 2026-03-01; default now")
	return queryCommand(p, cmd, func(ctx context.Context, api v1.API, _ []string) (v1.Prices, error) { return api.Prices(ctx, &q) }, showList(view.Prices))
}
