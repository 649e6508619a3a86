package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) waitingCommand() *cobra.Command {
	return groupCommand("waiting", "List and dismiss job ends that have no record yet", "  bursar waiting list\n  bursar waiting dismiss -older 30d", p.waitingList(), p.waitingDismiss())
}

func (p *Program) waitingList() *cobra.Command {
	return queryCommand(p, &cobra.Command{
		Use: "list", Short: "List job ends that have no record yet",
		Long: `List job ends that have no record yet. A client pushed the end of a run, and its
record is still on its way from another agent or does not exist: TARDIS pushes the end
of drones that never became available.`,
		Example: "  bursar waiting list\n  bursar waiting list -format csv",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Waiting, error) { return api.Waiting(ctx, nil) }, showList(view.Waiting))
}

func (p *Program) waitingDismiss() *cobra.Command {
	var older string
	var all bool
	cmd := &cobra.Command{
		Use: "dismiss ID…", Short: "Forget job ends whose records will not come",
		Long: `Forget job ends whose records will not come. If a record comes later, it stays open
until a client pushes its end again. To forget them automatically, add
waiting_stops { expire_after = "30d" } to the aggregator block.`,
		Example: "  bursar waiting dismiss drone-4711\n  bursar waiting dismiss -older 30d\n  bursar waiting dismiss -all",
	}
	conn := p.connectionFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all stops that wait")
	cmd.Flags().StringVar(&older, "older", "", "stops of runs that ended before this `time`, or so long ago, such as 30d")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if older != "" {
			if _, err := parseMoment(older, p.Now(), time.UTC); err != nil {
				return commandline.UsageError(cmd, fmt.Errorf("-older: %w", err))
			}
		}
		if n := len(args); (n > 0) == (all || older != "") || all && older != "" {
			return commandline.UsageError(cmd, errors.New("give IDs, -older or -all, one of them"))
		}
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if len(args) > 0 {
			return p.dismissStops(cmd.Context(), c, args)
		}
		return p.dismissListed(cmd.Context(), c, older)
	}
	return cmd
}

// dismissListed dismisses what the server lists of before a time by the site's clock; of all
// with none.
func (p *Program) dismissListed(ctx context.Context, c *client.Client, older string) error {
	answer, err := c.Waiting(ctx, nil)
	if err != nil {
		return err
	}
	before := time.Time{}
	if older != "" {
		before, _ = parseMoment(older, p.Now(), cmp.Or(c.Zone(), time.UTC)) // which was right before
	}
	var ids []string
	for i := range answer.Waiting {
		at := view.WaitingStop(&answer.Waiting[i])
		if before.IsZero() || !at.IsZero() && at.Before(before) {
			ids = append(ids, answer.Waiting[i].RecordID)
		}
	}
	if answer.More {
		p.say("The server lists 1 000 at once: repeat this command afterwards.")
	}
	return p.dismissStops(ctx, c, ids)
}

func (p *Program) dismissStops(ctx context.Context, c *client.Client, ids []string) error {
	failed := 0
	for _, id := range ids {
		if err := c.DismissStop(ctx, id); err != nil {
			failed++
			p.say("%s: %v", id, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	p.say("dismissed %d of %d stops", len(ids)-failed, len(ids))
	if failed > 0 {
		return newFinding("%d of %d failed", failed, len(ids))
	}
	return nil
}
