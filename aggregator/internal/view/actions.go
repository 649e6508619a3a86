package view

import (
	"fmt"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ActionName is TYPE/LABEL.
func ActionName(a *v1.Action) string { return a.Type + "/" + a.Label }

// Actions lists actions with their last runs, and what is wrong with them.
func Actions(a v1.Actions) List {
	l := List{Name: "actions", Title: "Actions, their state and their last runs", Empty: `No actions configured. A block action "TYPE" "LABEL" { … } in aggregator.hcl adds one: alert, priority, apel, report, webhook and exec come with bursar.`, Columns: []Column{
		textColumn("action"), stateColumn("state"), textColumn("schedule").fitted(LeaveOut), textColumn("runs_on").fitted(LeaveOut), timeColumn("next_run").fitted(LeaveOut),
		textColumn("run").titled("Last run").fitted(LeaveOut), timeColumn("planned"), stateColumn("outcome").fitted(CutFirst), timeColumn("last_success").fitted(LeaveOut),
		numberColumn("orders").fitted(FileOnly), textColumn("current_run").fitted(FileOnly), textColumn("plugin_version").fitted(FileOnly),
	}}
	for i := range a.Actions {
		act := &a.Actions[i]
		schedule := string(act.Schedule)
		if act.Zone != "" {
			schedule += " " + string(act.Zone)
		}
		run, current, planned, outcome, version := v1.Cell{}, v1.Cell{}, v1.Time{}, "", ""
		if r := act.Last; r != nil {
			run, planned, outcome, version = idCell(r.Run), r.Planned, r.Outcome(), r.Version
		}
		if act.Current != nil {
			current = idCell(act.Current.Run)
		}
		l.addCells(textCell(ActionName(act)), textCell(act.State), textCell(schedule), v1.Words(runner(act.RunOn)), nextRun(act), run, timeCell(planned), textCell(outcome), timeCell(act.LastSuccess),
			countCell(act.Orders), current, textCell(version))
		l.Notices = append(l.Notices, actionNotices(act)...)
		if act.Orders > 0 {
			l.addNote("%s: %s pending", ActionName(act), Are(act.Orders, "order"))
		}
	}
	return l
}

// runner is where the programs of an action run.
func runner(agent v1.Text) string {
	if agent == "" {
		return "the leader"
	}
	return "agent " + string(agent)
}

// nextRun is when an action runs next, in words where that is not a time.
func nextRun(a *v1.Action) v1.Cell {
	switch {
	case !a.Configured:
		return v1.Words("never: not configured")
	case a.Paused != nil:
		return v1.Words("not while it is paused")
	case a.Disabled != nil:
		return v1.Words("not while it is disabled")
	case strings.HasPrefix(string(a.Schedule), "@change"):
		return v1.Words("when records have changed")
	case a.Schedule == "@manual":
		return v1.Words("only on request")
	case a.Schedule == "":
		return v1.Words("by the plugin's schedule")
	}
	return timeCell(a.Next)
}

// actionNotices say what is wrong with an action, and what to do.
func actionNotices(a *v1.Action) (notices []Notice) {
	name := ActionName(a)
	add := func(tone Tone, mark *v1.ActionMark, what, do string) {
		if mark != nil {
			notices = append(notices, Notice{Tone: tone, What: name + what, Since: mark.At, Why: string(mark.Why), Do: do, Action: name})
		}
	}
	by := ""
	if a.Paused != nil && a.Paused.By != "" {
		by = " by " + string(a.Paused.By)
	}
	add(Warn, a.Paused, " has been paused"+by, "bursar actions resume "+name)
	add(Bad, a.Disabled, " has been disabled", "bursar actions resume "+name)
	add(Bad, a.Problem, " has had no plan", "")
	for _, run := range a.Doubtful {
		notices = append(notices, Notice{
			Tone: Warn, What: fmt.Sprintf("%s has effects with unknown outcome, in run %d", name, run), Action: name, Run: run,
			Do: fmt.Sprintf("bursar actions history %s %d   # then: bursar actions retry or skip", name, run),
		})
	}
	return notices
}

// ActionRuns lists runs of an action.
func ActionRuns(action string, a v1.ActionRuns) List {
	l := List{Name: "runs", Title: "Runs of " + action + ", the newest first", Empty: "It has not run yet.", Columns: []Column{
		textColumn("action").fitted(FileOnly), textColumn("run"), textColumn("why"), textColumn("by").fitted(LeaveOut | IfAny), textColumn("arguments").fitted(LeaveOut | IfAny),
		timeColumn("planned"), timeColumn("ended").fitted(LeaveOut), numberColumn("effects"), stateColumn("outcome").fitted(CutFirst), textColumn("notes").fitted(PageOnly | IfAny),
		textColumn("runs_on").fitted(FileOnly), textColumn("plugin_version").fitted(FileOnly), numberColumn("index").titled("State of the log, at least").fitted(FileOnly),
	}}
	for i := range a.Runs {
		r := &a.Runs[i]
		l.addCells(textCell(action), idCell(r.Run), textCell(r.Why), textCell(r.By), textCell(Conditions(r.Arguments)), timeCell(r.Planned), timeCell(r.Ended), countCell(r.Effects), textCell(r.Outcome()), textCell(strings.Join(r.Notes, "; ")),
			v1.Words(runner(r.RunOn)), textCell(r.Version), countCell(r.Index))
	}
	return l
}

// Effects lists the effects of a run of an action, with their last attempts.
func Effects(action string, a v1.ActionRunEffects) List {
	l := List{Name: "effects", Title: fmt.Sprintf("Effects of run %d, with their last attempts", a.Run.Run), Empty: withoutEffects(&a.Run), Columns: []Column{
		textColumn("effect"), idColumn("name"), textColumn("what"), stateColumn("state"), textColumn("by").fitted(IfAny), numberColumn("tries"), timeColumn("last_attempt"), textColumn("node"),
		timeColumn("next_attempt").fitted(IfAny), textColumn("message"), textColumn("reference").fitted(IfAny), commandColumn("do").fitted(IfAny), bytesColumn("payload"),
	}}
	for i := range a.Effects {
		e := &a.Effects[i]
		last, do := v1.ActionAttempt{}, ""
		if n := len(e.Attempts); n > 0 {
			last = e.Attempts[n-1]
		}
		order := func(verb string) string {
			return fmt.Sprintf("bursar actions %s %s %d %d", verb, action, a.Run.Run, e.Effect)
		}
		switch e.State {
		case "unknown", "rejected":
			if do = order("retry"); l.Notes == nil {
				l.addNote("To give an effect up in place of trying it again, skip it: %s", order("skip"))
			}
		case "skipped", "superseded":
			do = order("retry")
		}
		l.addCells(idCell(e.Effect), textCell(e.Name), textCell(e.Summary), textCell(e.State), textCell(e.By), countCell(e.Tries), timeCell(last.Begun), textCell(last.Node),
			timeCell(e.NotBefore), textCell(last.Message), textCell(last.Reference), textCell(do), countCell(e.Size))
	}
	return l
}

// withoutEffects says why the effects of a run are not listed.
func withoutEffects(r *v1.ActionRun) string {
	if r.Effects > 0 {
		return Plural(r.Effects, "effect") + ", shown only to readers of all records."
	}
	return "There was nothing to do."
}

// Attempts lists the attempts at the effects of a run; an effect that was not tried has a row too.
func Attempts(a v1.ActionRunEffects) List {
	l := List{Name: "attempts", Title: fmt.Sprintf("Attempts at the effects of run %d", a.Run.Run), Empty: withoutEffects(&a.Run), Notes: a.Run.Notes, Columns: []Column{
		textColumn("effect"), idColumn("name"), stateColumn("state"), numberColumn("try").fitted(LeaveOut), textColumn("node").fitted(LeaveOut), textColumn("fence").fitted(LeaveOut),
		timeColumn("begun"), timeColumn("ended").fitted(LeaveOut), stateColumn("outcome").fitted(LeaveOut), textColumn("message").fitted(CutFirst), textColumn("reference").fitted(LeaveOut | IfAny),
	}}
	for i := range a.Effects {
		e := &a.Effects[i]
		if len(e.Attempts) == 0 {
			l.addCells(idCell(e.Effect), textCell(e.Name), textCell(e.State), v1.Cell{}, v1.Cell{}, v1.Cell{}, v1.Cell{}, v1.Cell{}, v1.Cell{}, textCell(e.Summary), v1.Cell{})
		}
		for _, n := range e.Attempts {
			l.addCells(idCell(e.Effect), textCell(e.Name), textCell(e.State), countCell(n.Number), textCell(n.Node), idCell(n.Fence), timeCell(n.Begun), timeCell(n.Ended), textCell(n.Outcome), textCell(n.Message), textCell(n.Reference))
		}
	}
	return l
}

// Plan lists the effects that a run of an action would have now.
func Plan(a v1.ActionPlan) List {
	l := List{Name: "plan", Title: "Effects of the plan", Empty: "There is nothing to do.", Columns: []Column{idColumn("effect"), textColumn("what").fitted(CutFirst), bytesColumn("payload").fitted(LeaveOut)}}
	for i := range a.Effects {
		e := &a.Effects[i]
		l.addCells(textCell(e.Name), textCell(e.Summary), countCell(e.Size))
	}
	if a.RunOn != "" {
		l.addNote("The programs would run on the agent %s.", a.RunOn)
	}
	l.Notes = append(l.Notes, a.Notes...)
	return l
}
