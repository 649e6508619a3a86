package view

import (
	"cmp"
	"fmt"
	"slices"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// SortAlerts puts what fires first, the most severe at the top.
func SortAlerts(list []v1.Alert) {
	order := func(a v1.Alert) int {
		return 4*slices.Index([]string{"firing", "silenced", "pending"}, a.State) + slices.Index([]string{"critical", "warning", "notice"}, a.Severity)
	}
	slices.SortStableFunc(list, func(a, b v1.Alert) int { return cmp.Compare(order(a), order(b)) })
}

// Alerts lists alerts, what fires first, with the receivers and rules that fail and the silences.
func Alerts(a v1.Alerts) List {
	l := List{Name: "alerts", Title: "Alerts, since when, why, and what to do", Empty: "No alert fires.", Columns: []Column{
		stateColumn("state"), stateColumn("severity"), textColumn("rule"), textColumn("about"), timeColumn("since"), textColumn("what").fitted(CutFirst),
		commandColumn("do").titled("Do first").fitted(LeaveOut | CutFirst | IfAny), textColumn("runbook").fitted(PageOnly | IfAny), textColumn("action").fitted(LeaveOut),
	}}
	name := func(label string) string { return "alert/" + label }
	sorted := slices.Clone(a.Alerts)
	SortAlerts(sorted)
	for i := range sorted {
		e := &sorted[i]
		l.addCells(textCell(e.State), textCell(e.Severity), textCell(e.Rule), textCell(cmp.Or(e.About, "the cluster")), timeCell(e.Since), textCell(e.What), textCell(e.Do), textCell(e.Runbook), textCell(name(e.Action)))
	}
	for _, r := range a.Receivers {
		if r.Problem != "" {
			l.Notices = append(l.Notices, Notice{Tone: Warn, What: fmt.Sprintf("%s has taken no messages of %s", r.Name, name(r.Action)), Since: r.FailingSince, Why: string(r.Problem), Action: name(r.Action)})
			l.Notes = []string{"Messages that a receiver does not take are kept and sent later."}
		}
	}
	for _, r := range a.Rules {
		l.Notices = append(l.Notices, Notice{Tone: Warn, What: fmt.Sprintf("Rule %s of %s has failed", r.Rule, name(r.Action)), Since: r.Since, Why: r.Problem, Action: name(r.Action)})
	}
	if len(a.Silences) > 0 {
		l.Below = append(l.Below, silences(a.Silences))
	}
	return l
}

// silences lists silences of alerts.
func silences(list []v1.AlertSilence) List {
	l := List{Name: "silences", Title: "Silences", Columns: []Column{commandColumn("silence"), commandColumn("matchers"), timeColumn("until"), textColumn("by"), textColumn("comment").fitted(CutFirst), textColumn("action").fitted(LeaveOut)}}
	for i := range list {
		q := &list[i]
		l.addCells(textCell(q.ID), textCell(Conditions(q.Match)), timeCell(q.Until), textCell(q.Author), textCell(q.Comment), textCell("alert/"+q.Action))
	}
	return l
}
