package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// budget is one of an answer of GET /v1/budgets.
type budget v1.Budget

// budgets are an answer of GET /v1/budgets.
type budgets v1.Budgets

func (p *Program) budgetsCommand() *cobra.Command {
	var at string
	var check bool
	cmd := &cobra.Command{
		Use: "budgets [NAME]", Short: "Show what is used, reserved and left of budgets, and when they run out",
		Long: `Show what is used, reserved and left of budgets, and when they run out.

USED counts runs that go on up to now. RESERVED is what these may use until their
time limit, at most until the period ends; LEFT is what is neither. A DAY is the
present pace: the average of the last days, 30 unless the budget says otherwise.
EXHAUSTED is when a budget was used up, or will be at that pace; it is empty for a
budget that lasts. In the bar, what is used is dark and what is reserved is light.

A budget that is used up, or will be before its period ends, is red on a terminal.
With -check the exit code is 2 when there is such a budget.`,
		Example: "  bursar budgets\n  bursar budgets atlas -at last-year\n  bursar budgets -at 2026-Q3 -format csv > q3.csv\n  bursar budgets -check || mail -s 'budgets' staff < /dev/null",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&at, "at", "", "a `time` in the period, such as 2025, 2026-Q3, last-month; default now")
	cmd.Flags().BoolVar(&check, "check", false, "exit with 2 when a budget is gone or will be before its period ends")
	ask := func(ctx context.Context, api v1.API, args []string) (v1.Budgets, error) {
		return api.Budgets(ctx, &v1.BudgetsQuery{At: at, Name: cmp.Or(args...)})
	}
	return queryCommand(p, cmd, ask, func(answer v1.Budgets, _ format, c *clock) page {
		return (*budgets)(&answer).buildPage(p.Width, check, c.zone.String())
	})
}

// buildPage shows the budgets, with times of notes by the clock of a zone; with check, an exhausted budget is a finding.
func (a *budgets) buildPage(width int, check bool, zone string) page {
	if len(a.Budgets) == 0 {
		return page{exact: a.exactTable(), notes: []string{"There are no budgets; a block budget \"name\" { … } in aggregator.hcl makes one."}}
	}
	a = a.withEmptyStandings()
	out := page{table: a.budgetTable(width), exact: a.exactTable(), notes: a.budgetNotes(zone)}
	var gone []string
	for i := range a.Budgets {
		if b := (*budget)(&a.Budgets[i]); b.runsOut() {
			gone = append(gone, b.Name)
		}
	}
	if check && len(gone) > 0 {
		out.found = newFinding("gone, or will be before the period ends: %s", strings.Join(gone, ", "))
	}
	return out
}

// withEmptyStandings returns the budgets, of which those with a problem stand at nothing.
func (a *budgets) withEmptyStandings() *budgets {
	out := budgets(v1.Budgets(*a))
	out.Budgets = slices.Clone(a.Budgets)
	for i := range out.Budgets {
		if b := &out.Budgets[i]; b.BudgetStanding == nil {
			b.BudgetStanding = &v1.BudgetStanding{}
		}
	}
	return &out
}

// runsOut reports whether the budget is gone or will be within the period.
func (b *budget) runsOut() bool { return b.Exhausted || !b.GoneAt.IsZero() }

// periodText is the name of the period, or the day on which a single one begins.
func (b *budget) periodText() string {
	if b.Period.Name != "" {
		return string(b.Period.Name)
	}
	return view.Instant(b.Period.From, b.Period.Zone)[:len(time.DateOnly)] + " …"
}

// goneAt says when it was or will be gone: of what has been, the minute is known.
func (b *budget) goneAt() string {
	text := view.Instant(b.GoneAt, b.Period.Zone)
	switch {
	case b.GoneAt.IsZero() || len(text) < len("2006-01-02 15:04"):
		return text
	case b.Exhausted:
		return text[:len("2006-01-02 15:04")]
	}
	return text[:len("2006-01-02")]
}

// budgetTable is the table for people, with bars where a terminal has room for them.
func (a *budgets) budgetTable(width int) *table {
	t := newTable("~BUDGET", "?PERIOD", "UNIT", "?>AMOUNT", ">USED", ">USED %", "?>RESERVED", ">LEFT", "?>A DAY", "EXHAUSTED")
	t.paint = make([]string, len(a.Budgets))
	for i := range a.Budgets {
		b := (*budget)(&a.Budgets[i])
		if b.Problem != "" {
			t.addRow(b.Name, b.periodText(), b.Unit, b.figureText(b.Amount), "-", "-", "-", "-", "-", "-")
			continue
		}
		reserved, day := b.figureText(b.Reserved), "-"
		if b.AtLeast {
			reserved = "≥ " + reserved
		}
		if b.Pace != nil {
			day = b.figureText(b.Pace.PerDay)
		}
		t.addRow(b.Name, b.periodText(), b.Unit, b.figureText(b.Amount), b.figureOrDash(b.Used), strings.TrimSuffix(v1.Show(report.Share, v1.Figure(b.Share)), "\u202f%"), reserved, b.figureOrDash(b.Left), day, b.goneAt())
		if b.runsOut() {
			t.paint[i] = "31"
		}
	}
	if n := width - totalWidth(t.fitWidths(width)) - len(gap); n >= leastBar {
		t.head, t.look = append(t.head, ""), append(t.look, column{leave: true})
		for i := range t.rows {
			t.rows[i] = append(t.rows[i], (*budget)(&a.Budgets[i]).drawBar(min(n, mostBar)))
		}
	}
	return t
}

// drawBar draws what is used, what is reserved and what is left.
func (b *budget) drawBar(width int) string {
	amount := floatOrZero(b.Amount)
	if b.Problem != "" || amount <= 0 {
		return ""
	}
	part := func(v float64) int { return max(0, min(width, int(v/amount*float64(width)+0.5))) }
	if b.Used == nil {
		return ""
	}
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

// figureText is an amount in the unit of the budget for people.
func (b *budget) figureText(n json.Number) string { return b.figureOrDash(&n) }

// figureOrDash is as figureText; a dash where the amount is unknown.
func (b *budget) figureOrDash(n *json.Number) string { return view.Number(b.Unit, v1.Figure(n)) }

// exactTable is the table for machines.
func (a *budgets) exactTable() *table {
	t := newTable("BUDGET", "MATCH", "PERIOD", "FROM", "TO", "STATE", "UNIT", "COMPONENT", "AMOUNT", "USED", "SHARE", "RESERVED", "LEFT", "AT LEAST", "RUNNING", "UNLIMITED", "PER DAY", "EXHAUSTED", "GONE AT", "PROBLEM", "KNOWN FROM")
	for i := range a.Budgets {
		b := (*budget)(&a.Budgets[i])
		day := ""
		if b.Pace != nil {
			day = b.Pace.PerDay.String()
		}
		t.addRow(b.Name, view.Conditions(b.Match), string(b.Period.Name), b.Period.From.String(), b.Period.To.String(), b.Period.State, b.Unit, string(b.Component), b.Amount.String(),
			v1.Figure(b.Used).String(), v1.Figure(b.Share).String(), b.Reserved.String(), v1.Figure(b.Left).String(), fmt.Sprint(b.AtLeast), fmt.Sprint(b.Running), fmt.Sprint(b.Unlimited), day, fmt.Sprint(b.Exhausted), b.GoneAt.String(), string(b.Problem), b.KnownFrom.String())
	}
	return t
}

// budgetNotes are what people must know of the budgets to read their table rightly.
func (a *budgets) budgetNotes(zone string) []string {
	return append(view.BudgetNotes(a.Budgets), view.CompleteNotes(&a.Complete, zone)...)
}
