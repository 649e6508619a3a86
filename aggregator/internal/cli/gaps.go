package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) gapsCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "gaps", Short: "List data that was unavailable at the source or lost in transit",
		Long: `List data that was unavailable at the source or lost in transit: parts of a source's
history that it can no longer read, and frames that an agent no longer has although the
cluster lacks them, as after a restore. FROM is empty where it is unknown.

The scheduler can usually provide it again: "bursar-agent recollect" on the agent
collects a window of a source again. A gap stays in the list afterwards.`,
		Example: "  bursar gaps\n  bursar gaps -agent nemo-head1 -format csv",
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only those of this `agent`")
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Gaps, error) {
		return api.Gaps(ctx, &v1.GapsQuery{Agent: agent})
	}
	return queryCommand(p, cmd, ask, showList(view.Gaps))
}
