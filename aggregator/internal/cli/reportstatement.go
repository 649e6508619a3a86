package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
)

func (p *Program) reportStatement() *cobra.Command {
	o := report.StatementOptions{}
	var of []string
	cmd := &cobra.Command{
		Use: "statement", Short: "What a group, a project or a person used in a month, what it costs, and what is left",
		Long: `What a group, a project, a principal investigator or a person used in a month and
what it costs by the prices that held, beside the month before; what is left of
the budgets that it draws on, with a forecast; who used it; and the largest jobs.`,
		Example: "  bursar report statement -of group_id=atlas -o atlas.html\n  bursar report statement -of pi=curie -period 2026-10\n  bursar report statement -of user_id=alice -period this-month -format csv",
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&of, "of", nil, "of whom, as `key=value`, such as group_id=atlas, project=bell, pi=curie, user_id=alice; may be repeated")
	fl.StringVar(&o.Period, "period", "last-month", "a `window` in the words of bursar usage")
	fl.StringVar(&o.Zone, "zone", "UTC", "the time `zone` by whose clock days begin, like Europe/Berlin")
	fl.IntVar(&o.Top, "top", 10, "how many people and jobs are named, a `number` from 1 to 100")
	fl.Float64Var(&o.MemoryPerGB, "memory-per-gb", 1024, "how much of the component Memory is a GB, a `number`")
	_ = cmd.RegisterFlagCompletionFunc("period", cobra.FixedCompletions(windowWords(), cobra.ShellCompDirectiveNoFileComp)) // the option exists
	return p.reports(cmd, func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if err := notZero(cmd, "top", "memory-per-gb"); err != nil {
			return nil, err
		}
		o.Now = p.Now()
		var err error
		if o.Of, err = argumentsOf(of); err != nil {
			return nil, usageError(cmd, err)
		}
		if len(o.Of) == 0 {
			return nil, usageError(cmd, errors.New("a statement needs a subject: -of group_id=NAME, project=NAME, pi=NAME or user_id=NAME"))
		}
		return report.Statement(ctx, c.API, o)
	})
}
