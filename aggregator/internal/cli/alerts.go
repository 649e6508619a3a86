package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) alertsCommand() *cobra.Command {
	return groupCommand("alerts", "List alerts and silence them", "  bursar alerts list\n  bursar alerts silence rule=backup -for 2h -comment 'the disk is being replaced'",
		p.alertsList(), p.alertsSilence(), p.alertsExpire())
}

func (p *Program) alertsList() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "list", Short: "List what fires, with silences and receivers that take nothing",
		Long: `List what fires, is pending or is silenced, as the last run of each action "alert" found
it; below it the silences, the receivers that take nothing, and the rules that cannot be
evaluated.

With -check the exit code is 2 when an alert fires that is not silenced.`,
		Example: "  bursar alerts list\n  bursar alerts list -format json",
	}
	cmd.Flags().BoolVar(&check, "check", false, "exit with 2 when an alert fires that is not silenced")
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Alerts, error) { return api.Alerts(ctx, nil) }
	return queryCommand(p, cmd, ask, func(list v1.Alerts, _ format, c *clock) page {
		out := listPage(view.Alerts(list), c)
		firing := 0
		for i := range list.Alerts {
			if list.Alerts[i].State == "firing" {
				firing++
			}
		}
		if check && firing > 0 {
			out.found = newFinding("%d alerts fire", firing)
		}
		return out
	})
}

func (p *Program) alertsSilence() *cobra.Command {
	var length, comment, label string
	cmd := &cobra.Command{
		Use: "silence MATCHER…", Short: "Keep new alerts from being told for some time",
		Long: `Keep new alerts from being told for some time. A matcher is rule=…, about=… or
severity=…, in which * is any text; an alert must match all that are given. The page and
"bursar alerts list" still show the alert. If it still fires when the silence is over, the
receivers hear of it then. They also hear of the end of an alert that they knew before.

The exit code is 1 when the silence cannot be made; it waits until it holds.`,
		Example: "  bursar alerts silence rule=backup -for 2h -comment 'the disk is being replaced'\n  bursar alerts silence 'about=head1/*' -for 1d",
		Args:    cobra.MinimumNArgs(1),
	}
	conn := p.connectionFlags(cmd)
	cmd.Flags().StringVar(&length, "for", "2h", "how `long`, such as 30m, 2h or 7d")
	cmd.Flags().StringVar(&comment, "comment", "", "the `reason`, for those who look later")
	cmd.Flags().StringVar(&label, "action", "", "the `label` of the action; without it all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		match, err := argumentsOf(args)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		d, err := hcl.ParseDuration(length)
		if err != nil {
			return commandline.UsageError(cmd, fmt.Errorf("-for: %w", err))
		}
		order := v1.AlertSilenceOrder{Action: label, Match: match, Seconds: int(d / time.Second), Comment: comment}
		return p.orderAlerts(cmd.Context(), conn, func(ctx context.Context, api v1.API) (v1.AlertOrdered, error) { return api.SilenceAlerts(ctx, order) })
	}
	return cmd
}

func (p *Program) alertsExpire() *cobra.Command {
	cmd := &cobra.Command{
		Use: "expire SILENCE", Short: "End a silence", Example: "  bursar alerts list\n  bursar alerts expire k3v9x2m4qa", Args: cobra.ExactArgs(1),
	}
	conn := p.connectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.orderAlerts(cmd.Context(), conn, func(ctx context.Context, api v1.API) (v1.AlertOrdered, error) { return api.ExpireSilence(ctx, args[0]) })
	}
	return cmd
}

// orderAlerts gives an order and waits until the run of each action has taken it over.
func (p *Program) orderAlerts(ctx context.Context, conn *connection, do func(context.Context, v1.API) (v1.AlertOrdered, error)) error {
	c, err := conn.openClient(p)
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := do(ctx, c.API)
	if err != nil {
		return err
	}
	p.say("silence %s", answer.ID)
	for _, o := range answer.Orders {
		if err := p.awaitPlan(ctx, c.API, "alert", o.Action, o.Ordered); err != nil {
			return err
		}
	}
	return nil
}
