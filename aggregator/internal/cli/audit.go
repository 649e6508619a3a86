package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) auditCommand() *cobra.Command {
	var q v1.AuditQuery
	q.Limit = 1000
	cmd := &cobra.Command{
		Use: "audit", Short: "Show who changed what, and who looked at whose data",
		Long: `Show the audit log, the newest entry first: who changed something, who looked at whose
records and figures, who logged in, and who was refused.

What someone looked at is noted once a day for each question. The cluster keeps entries for
12 months; retention { audit_months } in the block aggregator says otherwise. This needs the
role admin.`,
		Example: `  bursar audit
  bursar audit -kind look -about alice -window 90d
  bursar audit -who client/bob -format csv > bob.csv`,
	}
	fl := cmd.Flags()
	kinds := []string{"change", "look", "login", "refusal", "gap"}
	fl.StringVar(&q.Window, "window", "", "the `time`, by a word as in bursar usage; default the last 7 days")
	fl.StringVar(&q.Who, "who", "", "only what this `principal` did, such as client/alice")
	fl.Var(&choice{&q.Kind, kinds}, "kind", "only one kind: change, look, login, refusal, gap")
	fl.StringVar(&q.About, "about", "", "only entries with this `text` in what they are about")
	fl.IntVar(&q.Limit, "limit", q.Limit, "at most so many entries, the newest; up to 100000")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))           // the option exists
	_ = cmd.RegisterFlagCompletionFunc("window", cobra.FixedCompletions(windowWords(), cobra.ShellCompDirectiveNoFileComp)) // the option exists
	return queryCommand(p, cmd, func(ctx context.Context, api v1.API, _ []string) (v1.Audit, error) {
		return api.Audit(ctx, &q)
	}, func(list v1.Audit, _ format, c *clock) page {
		out := listPage(view.Audit(list), c)
		if list.More {
			out.found = newFinding("there are older entries: use a shorter -window or a greater -limit")
		}
		return out
	})
}
