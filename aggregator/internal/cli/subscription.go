package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
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

USED is in service units, and its SHARE is of what all of them used. A contribution
is amount × per cent × factor, as much of it as the part of the window in which it
is there; its SHARE is of those of all who are not exempt. SUBSCRIPTION is the one
share ÷ the other: over 100 % is more than was put in. Over: used without a
contribution. Under: contributed and not used. N/A: neither, or exempt.

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
	return queryCommand(p, cmd, ask, func(answer v1.Subscription, _ format, _ *clock) page {
		s := (*subscription)(&answer)
		return page{table: s.shareTable(), exact: s.exactTable(), notes: append([]string{view.WindowNote(s.Window.From, s.Window.To, nil, s.Zone, s.Credit)}, view.SubscriptionNotes(&answer)...)}
	})
}

// subscription is an answer of GET /v1/subscription.
type subscription v1.Subscription

// exactTable is the table with all digits, for machines.
func (s *subscription) exactTable() *table {
	t := newTable("PI", "NAME", "USED", "EXEMPT USED", "USED SHARE", "CONTRIBUTED", "CONTRIBUTION SHARE", "RATIO", "STATE")
	for i := range s.Shares {
		sh := &s.Shares[i]
		t.addRow(sh.PI, string(sh.Name), trimDecimal(&sh.Used), trimDecimal(&sh.ExemptUsed), trimDecimal(sh.UsedShare), trimDecimal(&sh.Contributed), trimDecimal(sh.ContributionShare), trimDecimal(sh.Ratio), sh.State)
	}
	return t
}

func (s *subscription) shareTable() *table {
	t := newTable("PI", "~?NAME", ">USED "+s.Unit, ">SHARE", "?>CONTRIBUTED", ">SHARE", ">SUBSCRIPTION", "EXEMPT")
	for i := range s.Shares {
		sh := &s.Shares[i]
		exempt := "-"
		if sh.State == "exempt" {
			exempt = "yes"
		}
		t.addRow(sh.PI, orDash(string(sh.Name)), view.Number(s.Unit, v1.Figure(&sh.Used)), shareOf(sh.UsedShare), view.Number(s.Unit, v1.Figure(&sh.Contributed)), shareOf(sh.ContributionShare), shareText(sh), exempt)
	}
	if len(t.rows) > 1 {
		t.addRow("TOTAL", "", view.Number(s.Unit, v1.Figure(&s.Used)), "", view.Number(s.Unit, v1.Figure(&s.Contributed)), "", "", "")
	}
	return t
}

func shareText(sh *v1.SubscriptionShare) string {
	switch sh.State {
	case "over":
		return "Over"
	case "under":
		return "Under"
	case "both":
		return shareOf(sh.Ratio)
	}
	return "N/A"
}

// shareOf is a share for people; "-" for none.
func shareOf(n *json.Number) string {
	if n == nil {
		return "-"
	}
	return v1.Show(report.Share, v1.Figure(n))
}
