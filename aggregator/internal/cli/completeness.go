package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// completenessOptions are the options of bursar completeness.
type completenessOptions struct {
	source, window, from, to string
	all, calendar, check     bool
}

func (p *Program) completenessCommand() *cobra.Command {
	o := &completenessOptions{}
	cmd := &cobra.Command{
		Use: "completeness", Short: "Compare, day by day, what schedulers have with what is stored",
		Long: `Compare, by source and day, what the schedulers have with what is stored.

An agent counts the runs of each past day by a second route, two hours after the
day's end and again a day and a week later. COUNTED is that count, and
STORED + FILTERED + QUARANTINED + DELETED should equal it. The difference is MISSING,
and the command that collects those runs again is printed below.

Without -all only days with differences are listed. A window of more than 45 days, or
-calendar, is shown as a calendar on a terminal, one line per month.
With -check the exit code is 2 when runs are missing.`,
		Example: "  bursar completeness\n  bursar completeness -window 2026-03 -source slurm/nemo -all\n  bursar completeness -from 2026-01-01 -calendar\n  bursar completeness -check || mail -s 'runs are missing' staff < /dev/null",
	}
	f := cmd.Flags()
	f.StringVar(&o.source, "source", "", "only this `source`: type/label, or agent/type/label")
	f.StringVar(&o.window, "window", "", "the days, in a `word` such as last-month, 2026-03, 14d; default: the last 30 days")
	f.StringVar(&o.from, "from", "", "first `day`, in UTC")
	f.StringVar(&o.to, "to", "", "the `day` behind the last one")
	f.BoolVar(&o.all, "all", false, "list also days that are as they should be")
	f.BoolVar(&o.calendar, "calendar", false, "show a calendar")
	f.BoolVar(&o.check, "check", false, "exit with 2 when something is missing")
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Completeness, error) {
		return api.Completeness(ctx, &v1.CompletenessQuery{Source: o.source, Window: o.window, From: o.from, To: o.to})
	}
	return queryCommand(p, cmd, ask, func(answer v1.Completeness, _ format, c *clock) page {
		days, all := view.Days(answer, o.all), view.Days(answer, true)
		out := listPage(days, c)
		out.exact = exactTable(&all)
		if o.check && answer.Missing > 0 {
			out.found = newFinding("%s missing", view.Are(answer.Missing, "run"))
		}
		if o.calendar || countDays(answer.Days) > longWindow && p.Color {
			out.table, out.text = nil, drawCalendar(answer.Days, p.Color)
			out.notes = append([]string{strings.Join(signLegend(answer.Days), ", ")}, days.Notes...)
		}
		return out
	})
}

// longWindow is how many days are better seen as a calendar.
const longWindow = 45

func countDays(list []v1.Day) int {
	days := map[string]bool{}
	for i := range list {
		days[list[i].Day] = true
	}
	return len(days)
}

// stateSign is the sign of a state in a calendar, with its colour.
func stateSign(state string) (sign, colour string) {
	switch state {
	case "ok":
		return "■", "\x1b[32m"
	case "missing":
		return "✗", "\x1b[31m"
	case "surplus":
		return "+", "\x1b[33m"
	case "open":
		return "…", ""
	}
	return "·", ""
}

// drawCalendar draws each source as lines of a month, with a sign for each day.
func drawCalendar(days []v1.Day, color bool) string {
	var b strings.Builder
	source, month, at := "", "", 0
	for i := range days {
		d := &days[i]
		date, err := time.Parse(time.DateOnly, d.Day)
		if err != nil {
			continue
		}
		if d.Source != source {
			b.WriteString(strings.Repeat("\n", min(i, 2)) + printable(d.Source) + "\n")
			source, month = d.Source, ""
		}
		if m := date.Format("2006-01"); m != month {
			if month != "" {
				b.WriteString("\n")
			}
			b.WriteString("  " + m + "  ")
			month, at = m, 1
		}
		b.WriteString(strings.Repeat(" ", max(0, date.Day()-at)))
		sign, colour := stateSign(d.State)
		if color && colour != "" {
			sign = colour + sign + "\x1b[0m"
		}
		b.WriteString(sign)
		at = date.Day() + 1
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// signLegend says what the signs mean that are there.
func signLegend(days []v1.Day) (list []string) {
	for _, state := range []string{"ok", "missing", "surplus", "open", "unchecked"} {
		if slices.ContainsFunc(days, func(d v1.Day) bool { return d.State == state }) {
			sign, _ := stateSign(state)
			list = append(list, sign+" "+view.DayState(state))
		}
	}
	return list
}
