package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) budgetsCommand() *cobra.Command {
	var at string
	var check bool
	cmd := &cobra.Command{
		Use: "budgets [NAME]", Short: "Show what is used, reserved and left of budgets, and when they run out",
		Long: `Show what is used, reserved and left of budgets, and when they run out.

USED counts runs that go on up to now. RESERVED is what these may use until their
time limit, at most until the period ends; LEFT is what is neither. PER DAY is the
present pace: the average of the last days, 30 unless the budget says otherwise.
EXHAUSTED ON is when a budget was used up, or the day on which it will be at that pace.
In the bar, what is used is dark and what is reserved is light.

A budget that is used up, or will be before its period ends, is red on a terminal.
With -check the exit code is 2 when there is such a budget.`,
		Example: "  bursar budgets\n  bursar budgets atlas -at last-year\n  bursar budgets -at 2026-Q3 -format csv > q3.csv\n  bursar budgets -check || mail -s 'budgets' staff < /dev/null",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&at, "at", "", "a `time` in the period, such as 2025, 2026-Q3, last-month; default now")
	cmd.Flags().BoolVar(&check, "check", false, "exit with 2 when a budget is exhausted or will be before its period ends")
	ask := func(ctx context.Context, api v1.API, args []string) (v1.Budgets, error) {
		return api.Budgets(ctx, &v1.BudgetsQuery{At: at, Name: cmp.Or(args...)})
	}
	return queryCommand(p, cmd, ask, func(answer v1.Budgets, _ format, c *clock) page {
		l := view.Budgets(answer, c.zone.String())
		out := listPage(l, c)
		if out.table != nil {
			addBudgetBars(out.table, answer.Budgets, p.Width)
		}
		var gone []string
		for _, row := range l.Rows {
			if l.RowTone(row) == view.Bad {
				gone = append(gone, row[0].String())
			}
		}
		if check && len(gone) > 0 {
			out.found = newFinding("exhausted, or will be before the period ends: %s", strings.Join(gone, ", "))
		}
		return out
	})
}

// addBudgetBars adds a column with bars to the table of budgets, where a terminal of a width has room
// for them.
func addBudgetBars(t *table, list []v1.Budget, width int) {
	n := width - totalWidth(t.fitWidths(width)) - len(gap)
	if n < leastBar {
		return
	}
	t.head, t.look = append(t.head, ""), append(t.look, column{leave: true})
	for i := range list {
		t.rows[i] = append(t.rows[i], budgetBar(&list[i], min(n, mostBar)))
	}
}

// budgetBar draws what is used, what is reserved and what is left.
func budgetBar(b *v1.Budget, width int) string {
	amount := floatOrZero(b.Amount)
	if b.Problem != "" || b.BudgetStanding == nil || b.Used == nil || amount <= 0 {
		return ""
	}
	part := func(v float64) int { return max(0, min(width, int(v/amount*float64(width)+0.5))) }
	used := part(floatOrZero(*b.Used))
	reserved := part(floatOrZero(*b.Used)+floatOrZero(b.Reserved)) - used
	return strings.Repeat("█", used) + strings.Repeat("░", reserved) + strings.Repeat("·", width-used-reserved)
}

func floatOrZero(n json.Number) float64 {
	v, err := n.Float64()
	if err != nil {
		return 0
	}
	return v
}
