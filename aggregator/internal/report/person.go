package report

import (
	"context"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// personEntry is what one person used.
func personEntry() Entry {
	return Entry{
		Report: v1.Report{
			Name: "person", Title: "Person", About: "What one person used: jobs, waiting, efficiency, what was wasted and what to request instead, largest and latest jobs, and what is left of budgets.",
			Parameters: boardParams(Param{
				Name: "user", Title: "User", Kind: ParamText, Most: 1, Needed: true, Default: []string{}, Words: []string{"alice"}, About: "The user_id of the person.",
			}),
		},
		Long: `What one person used in a period, beside the period before: core-hours, jobs, the
mean wait, efficiency and what was left unused; how it went; what is left of the budgets
that the person draws on; core-hours by the state in which jobs ended, with those that
were lost; advice; and the largest and the latest jobs.
` + adviceHelp,
		Example: "  bursar report person -user alice\n  bursar report person -user alice -period last-month -o alice.html",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			b, err := newBoard(ctx, r, &q, exactConditions(map[string]string{q.Keys.User: q.One("user")}), "person", "Usage of one person")
			if err != nil {
				return nil, err
			}
			return b.addParts(ctx, b.figureTiles, b.usageOverTime(q.Keys.Group, false), b.buildBudgets, b.lostByState, b.buildAdvice, b.largestJobs, b.latestJobs)
		},
	}
}
