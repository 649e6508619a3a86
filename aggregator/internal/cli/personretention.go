package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) personRetention() *cobra.Command {
	months := 0
	cmd := &cobra.Command{
		Use: "retention", Short: "Show how long records keep names, and what is due; change nothing",
		Long: `Show how long records keep the names of persons, when names were removed last, and what
would be removed now. Nothing is changed: the leader removes names by itself where the
aggregator block has

    retention {
      names_months = 18
    }

Then calendar months go whole, when their first day is so many months ago. In each record of
that time, erased- and a code take the place of the user's name: one code for a person in a
month. Totals stay as they are: usage, times, group and project. Jobs in quarantine that last
came so long ago are dropped. Without the block nothing is removed; -months shows what would be.

Not reached: records of which the details are archived, the files of archives, backups and
snapshots. Archive a month after its names are gone, and keep backups for a shorter time.`,
		Example: "  bursar person retention\n  bursar person retention -months 18",
	}
	cmd.Flags().IntVar(&months, "months", 0, "show what would be removed if names were kept for so `many` months")
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.RetentionPlan, error) {
		return api.Retention(ctx, &v1.RetentionQuery{Months: months})
	}
	return queryCommand(p, cmd, ask, func(plan v1.RetentionPlan, _ format, c *clock) page {
		return listPage(view.RetentionPlan(plan, c.zone.String()), c)
	})
}
