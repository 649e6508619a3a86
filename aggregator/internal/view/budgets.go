package view

import (
	"fmt"
	"math/big"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Budgets lists how budgets stand, with times of notes by the clock of a zone.
func Budgets(a v1.Budgets, zone string) List {
	l := List{Name: "budgets", Title: "Budgets", Empty: "No budgets configured; add a budget block to the configuration.", Columns: []Column{
		textColumn("budget").fitted(CutFirst), textColumn("match").fitted(FileOnly), textColumn("period").fitted(LeaveOut), dateColumn("from").fitted(FileOnly), dateColumn("to").fitted(FileOnly),
		textColumn("state").fitted(FileOnly), textColumn("unit"), textColumn("component").fitted(FileOnly), numberColumn("amount").fitted(LeaveOut), numberColumn("used"),
		numberColumn("reserved").fitted(LeaveOut), numberColumn("left"), shareColumn("share").titled("Share used"), numberColumn("per_day").fitted(LeaveOut | TermOnly),
		numberColumn("forecast").titled("Forecast at end").fitted(PageOnly), textColumn("exhausted_on"), stateColumn("outlook").fitted(FileOnly), timeColumn("gone_at").fitted(FileOnly),
		textColumn("at_least").fitted(FileOnly), numberColumn("running").fitted(FileOnly), numberColumn("unlimited").fitted(FileOnly), textColumn("problem").fitted(FileOnly), timeColumn("known_from").fitted(FileOnly),
	}}
	if len(a.Budgets) == 0 {
		return l
	}
	for i := range a.Budgets {
		b := &a.Budgets[i]
		row := []v1.Cell{
			textCell(b.Name), textCell(Conditions(b.Match)), textCell(budgetPeriod(&b.Period)), timeCell(b.Period.From), timeCell(b.Period.To),
			textCell(b.Period.State), textCell(b.Unit), textCell(b.Component), v1.Figure(&b.Amount),
		}
		if b.Problem != "" || b.BudgetStanding == nil {
			row = append(row, make([]v1.Cell, len(l.Columns)-len(row))...)
			row[len(row)-2] = textCell(b.Problem)
			l.addCells(row...)
			continue
		}
		pace := v1.Cell{}
		if b.Pace != nil {
			pace = v1.Figure(&b.Pace.PerDay)
		}
		outlook := budgetOutlook(b)
		l.addCells(append(row, v1.Figure(b.Used), v1.Figure(&b.Reserved), v1.Figure(b.Left), v1.Figure(b.Share), pace, v1.Rat(forecastUse(b, a.Now.Time)), exhaustedOn(b, outlook), textCell(outlook), timeCell(b.GoneAt),
			v1.Words(fmt.Sprint(b.AtLeast)), countCell(b.Running), countCell(b.Unlimited), v1.Cell{}, timeCell(b.KnownFrom))...)
	}
	l.Notes = append(BudgetNotes(a.Budgets), CompleteNotes(&a.Complete, zone)...)
	return l
}

// budgetPeriod is the name of a period, or its days.
func budgetPeriod(p *v1.BudgetPeriod) string {
	if p.Name != "" {
		return string(p.Name)
	}
	return v1.Window{From: p.From, To: p.To}.Name("", Zone(p.Zone))
}

// budgetOutlook is whether a budget lasts to the end of its period; "" where that is not known.
func budgetOutlook(b *v1.Budget) string {
	switch {
	case b.Exhausted:
		return "exhausted"
	case !b.GoneAt.IsZero():
		return "runs out"
	case b.Used == nil || b.Period.State == "future":
		return ""
	}
	return "lasts"
}

// exhaustedOn is when a budget was used up, to the minute, or the day on which it will be.
func exhaustedOn(b *v1.Budget, outlook string) v1.Cell {
	switch at := b.GoneAt.In(Zone(b.Period.Zone)); {
	case b.GoneAt.IsZero():
		return textCell(outlook)
	case b.Exhausted:
		return v1.Words(at.Format(MinuteLayout))
	default:
		return v1.Words(at.Format(time.DateOnly))
	}
}

// forecastUse is what will be used at the end of a budget's period, at the pace of the last days.
func forecastUse(b *v1.Budget, now time.Time) *big.Rat {
	used := v1.Figure(b.Used).Number()
	if used == nil || b.Period.State != "present" || b.Pace == nil {
		return used
	}
	pace := v1.Figure(&b.Pace.PerDay).Number()
	if pace == nil {
		return used
	}
	days := big.NewRat(int64(b.Period.To.Sub(now)), int64(24*time.Hour))
	return days.Add(used, days.Mul(days, pace))
}
