package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) subscriptionCommand() *cobra.Command {
	var window, from, to, zone, credit string
	var where []string
	cmd := &cobra.Command{
		Use: "subscription", Short: "Compare what principal investigators used with what they contributed",
		Long: `Compare what principal investigators used with what they contributed.

USED is in service units, and SHARE USED is of what all of them used. A contribution
is amount × per cent × factor, as much of it as the part of the window in which it
is there; SHARE CONTRIBUTED is of those of all who are not exempt. RATIO is the one
share ÷ the other: over 100 % is more than was put in. The state is over for use
without a contribution, under for a contribution that is not used, and exempt.

A window is as for "bursar usage".`,
		Example: "  bursar subscription -window last-month\n  bursar subscription -window 2026 -format csv\n  bursar subscription -window 2012-10 -credit stop",
	}
	fl := cmd.Flags()
	fl.StringVar(&window, "window", "", "the `time` that counts, by a word; default this-month")
	fl.StringVar(&from, "from", "", "the `time` from which on usage counts")
	fl.StringVar(&to, "to", "", "the `time` up to which usage counts; default now")
	fl.StringVar(&zone, "zone", "", "the time `zone` by whose clock days begin, like Europe/Berlin; default the site's")
	fl.StringArrayVar(&where, "where", nil, "only the use of `key=value`, like cluster=nemo; contributions stay; may be repeated")
	fl.Var(&choice{&credit, []string{"spread", "stop"}}, "credit", "spread over the run, or all of it to its stop (default spread)")
	_ = cmd.RegisterFlagCompletionFunc("window", cobra.FixedCompletions(windowWords(), cobra.ShellCompDirectiveNoFileComp)) // the option exists
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Subscription, error) {
		pairs, err := argumentsOf(where)
		if err != nil {
			return v1.Subscription{}, commandline.UsageError(cmd, err)
		}
		return api.Subscription(ctx, &v1.SubscriptionQuery{Window: window, From: from, To: to, Zone: zone, Credit: credit, Where: pairs})
	}
	return queryCommand(p, cmd, ask, func(answer v1.Subscription, _ format, c *clock) page {
		out := listPage(view.Subscription(answer), c)
		out.notes = append([]string{view.WindowNote(answer.Window.From, answer.Window.To, nil, answer.Zone, answer.Credit)}, out.notes...)
		return out
	})
}
