package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) kindsCommand() *cobra.Command {
	var plan bool
	cmd := &cobra.Command{
		Use: "repair-kinds", Short: "Count CPU seconds that clients pushed as totals",
		Long: `Count CPU seconds that clients pushed as totals. Clients of AUDITOR do not say whether
an amount is a rate, used for as long as the job runs, or a total, consumed over the
run. This command changes the records that are stored with another kind than the
configuration says: TotalCPU, UserCPU, SystemCPU and naive_cpu_time are totals, and
blocks component "NAME" { kind = "rate" } or "total" of the aggregator's configuration
say the others.

With -plan it prints what it would change. It can be repeated at any time, and after
it was interrupted.`,
		Example: "  bursar operator repair-kinds -plan\n  bursar operator repair-kinds",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&plan, "plan", false, "print what would be changed, and change nothing")
	conn := p.connectionFlags(cmd)
	conn.timeout = time.Hour
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if !plan {
			return p.repairKinds(cmd.Context(), c)
		}
		return p.planKinds(cmd.Context(), c)
	}
	return cmd
}

func (p *Program) planKinds(ctx context.Context, c *client.Client) error {
	answer, err := c.Kinds(ctx, nil)
	if err != nil {
		return err
	}
	return p.writeAnswer(answer, asTable, listPage(view.Kinds(answer), clockFor(asTable, c.Zone())))
}

func (p *Program) repairKinds(ctx context.Context, c *client.Client) error {
	repaired, after := 0, uint64(0)
	for {
		step, err := c.RepairKinds(ctx, &v1.RepairKindsQuery{After: after})
		if err != nil {
			p.say("%s changed before this failed", view.Plural(repaired, "record"))
			return err
		}
		repaired, after = repaired+step.Repaired, step.After
		if !step.More {
			break
		}
	}
	p.say("%s changed", view.Plural(repaired, "record"))
	return nil
}
