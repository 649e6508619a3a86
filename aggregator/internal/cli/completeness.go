package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// days is an answer of GET /v1/completeness.
type days v1.Completeness

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
day's end and again a day and a week later. RUNS is that count, and
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
	return queryCommand(p, cmd, ask, func(answer v1.Completeness, f format, _ *clock) page {
		a := (*days)(&answer)
		out := page{exact: a.dayTable(true)}
		if o.check && a.Missing > 0 {
			out.found = newFinding("%s missing", view.Are(a.Missing, "run"))
		}
		if o.calendar || a.dayCount() > longWindow && p.Color {
			out.text = a.drawCalendar(p.Color)
			out.notes = append(out.notes, strings.Join(signLegend(a), ", "))
		} else {
			out.table, out.notes = a.listDays(o.all)
		}
		out.notes = append(out.notes, a.remedyNotes()...)
		return out
	})
}

// remedyNotes say how to collect what is missing again.
func (a *days) remedyNotes() (notes []string) {
	for _, s := range a.Stretches {
		switch {
		case s.Lost > 0:
			notes = append(notes, fmt.Sprintf("Collect again, on %s: %s   (first with -plan)", s.Agent, s.Do))
		case s.Unread > 0:
			notes = append(notes, fmt.Sprintf("%s counts %d runs that it does not collect: see the log of the agent on %s.", s.Source, s.Unread, s.Agent))
		}
		if s.Shared > 0 {
			notes = append(notes, fmt.Sprintf("The mapping of %s gives %d runs the record ids of others: correct the id, then: %s", s.Source, s.Shared, s.Do))
		}
	}
	return notes
}

// listDays makes the table of days for people, or says why there are none.
func (a *days) listDays(all bool) (*table, []string) {
	t := a.dayTable(all)
	switch {
	case len(a.Days) == 0:
		return nil, []string{"No source is known yet."}
	case len(t.rows) == 0 && a.countedDays() == 0:
		return nil, []string{"No day was counted yet: an agent counts a past day of a source that has a second route two hours after its end; -all lists the days."}
	case len(t.rows) == 0:
		return nil, []string{fmt.Sprintf("All %d days of %s that were counted are complete; -all lists them.", a.countedDays(), view.Plural(a.countedSources(), "source"))}
	}
	return t, nil
}

// longWindow is how many days are better seen as a calendar.
const longWindow = 45

func (a *days) dayCount() int {
	days := map[string]bool{}
	for i := range a.Days {
		days[a.Days[i].Day] = true
	}
	return len(days)
}

// countedDays is how many days were counted and compared.
func (a *days) countedDays() (n int) {
	for i := range a.Days {
		if a.Days[i].Runs != nil {
			n++
		}
	}
	return n
}

// countedSources is how many sources have a day that was compared.
func (a *days) countedSources() int {
	names := map[string]bool{}
	for i := range a.Days {
		if a.Days[i].Runs != nil {
			names[a.Days[i].Source] = true
		}
	}
	return len(names)
}

// isUsual reports whether a day needs no line of its own. Days that were not counted
// are those of sources that cannot, or of before there was an agent.
func isUsual(d *v1.Day) bool { return d.State == "ok" || d.State == "open" || d.State == "unchecked" }

func (a *days) dayTable(all bool) *table {
	t := newTable("SOURCE", "DAY", "STATE", ">COUNTED", ">STORED", "?>FILTERED", "?>QUARANTINED", "?>DELETED", ">MISSING", "?>SURPLUS")
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return strconv.FormatInt(*n, 10)
	}
	for i := range a.Days {
		d := &a.Days[i]
		if !all && isUsual(d) {
			continue
		}
		t.addRow(d.Source, d.Day, d.State, number(d.Runs), number(&d.Stored), number(d.Filtered), number(d.Quarantined), number(&d.Deleted), number(&d.Missing), number(&d.Surplus))
	}
	return t
}

// marks are the signs of a calendar, with their colours.
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
func (a *days) drawCalendar(color bool) string {
	var b strings.Builder
	source, month, at := "", "", 0
	for i := range a.Days {
		d := &a.Days[i]
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
func signLegend(a *days) (list []string) {
	words := map[string]string{"ok": "complete", "missing": "runs are missing", "surplus": "more records than runs", "open": "not counted yet", "unchecked": "not counted"}
	for _, state := range []string{"ok", "missing", "surplus", "open", "unchecked"} {
		if slices.ContainsFunc(a.Days, func(d v1.Day) bool { return d.State == state }) {
			sign, _ := stateSign(state)
			list = append(list, sign+" "+words[state])
		}
	}
	return list
}
