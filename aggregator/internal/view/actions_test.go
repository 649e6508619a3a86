package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// midday is a moment of the lists.
func midday() v1.Time { return v1.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func TestActions_Listed_SayWhatIsWrongAndWhatToDo(t *testing.T) {
	mark := &v1.ActionMark{By: "anna", At: midday(), Why: "maintenance."}
	run := &v1.ActionRun{Run: 1234, Planned: midday(), Ended: midday(), Effects: 2, Done: 1, Rejected: 1, Version: "1.2"}
	action := func(label string, a v1.Action) v1.Action {
		a.Type, a.Label, a.Configured = "exec", label, true
		return a
	}
	compareList(t, view.Actions(v1.Actions{Actions: []v1.Action{
		action("a", v1.Action{State: "unknown", Schedule: "@daily", Zone: "Europe/Berlin", RunOn: "head1", Next: midday(), LastSuccess: midday(), Doubtful: []uint64{1234}, Orders: 1, Current: run, Last: run}),
		action("b", v1.Action{State: "paused", Schedule: "1h", Paused: mark}),
		action("c", v1.Action{State: "disabled", Disabled: &v1.ActionMark{At: midday()}}),
		action("d", v1.Action{State: "failing", Schedule: "@change 5m", Problem: mark}),
		action("e", v1.Action{State: "healthy", Schedule: "@manual"}),
		action("f", v1.Action{State: "healthy"}),
		{Type: "exec", Label: "g", State: "not configured"},
	}}), `
exec/a|unknown|@daily Europe/Berlin|agent head1|2026-03-01 12:00:00|1234|2026-03-01 12:00:00|1 done, 1 rejected|2026-03-01 12:00:00|1|1234|1.2|bad
exec/b|paused|1h|the leader|not while it is paused|?|?|?|?|0|?|?|warn
exec/c|disabled|?|the leader|not while it is disabled|?|?|?|?|0|?|?|bad
exec/d|failing|@change 5m|the leader|when records have changed|?|?|?|?|0|?|?|bad
exec/e|healthy|@manual|the leader|only on request|?|?|?|?|0|?|?|good
exec/f|healthy|?|the leader|by the plugin's schedule|?|?|?|?|0|?|?|good
exec/g|not configured|?|the leader|never: not configured|?|?|?|?|0|?|?|dim
warn: exec/a has effects with unknown outcome, in run 1234. [bursar actions history exec/a 1234   # then: bursar actions retry or skip]
warn: exec/b has been paused by anna since 2026-03-01 12:00:00: maintenance. [bursar actions resume exec/b]
bad: exec/c has been disabled since 2026-03-01 12:00:00. [bursar actions resume exec/c]
bad: exec/d has had no plan since 2026-03-01 12:00:00: maintenance. []
note: exec/a: 1 order is pending`)
	if l := view.Actions(v1.Actions{}); !strings.HasPrefix(l.Empty, "No actions configured.") {
		t.Error(l.Empty)
	}
}

func TestRuns_Listed_ShowOutcomeAndNotes(t *testing.T) {
	compareList(t, view.ActionRuns("mail/site", v1.ActionRuns{Runs: []v1.ActionRun{
		{Run: 3, Why: "order", By: "anna", Arguments: map[string]string{"month": "2026-02", "a": "b"}, Planned: midday(), Effects: 1200, Index: 7, RunOn: "head1", Version: "1.2", Notes: []string{"one", "two"}},
		{Run: 2, Why: "schedule", Planned: midday(), Ended: midday(), Failure: "unknown measure, rejected"},
		{Run: 1, Why: "schedule", Planned: midday(), Ended: midday(), Partial: true},
	}}), `
mail/site|3|order|anna|a=b month=2026-02|2026-03-01 12:00:00|?|1`+"\u202f"+`200|running|one; two|agent head1|1.2|7|good
mail/site|2|schedule|?|?|2026-03-01 12:00:00|2026-03-01 12:00:00|0|not planned: unknown measure, rejected|?|the leader|?|0|bad
mail/site|1|schedule|?|?|2026-03-01 12:00:00|2026-03-01 12:00:00|0|nothing to do, partial|?|the leader|?|0|warn`)
	compareList(t, view.ActionRuns("mail/site", v1.ActionRuns{}), "empty: It has not run yet.")
}

func TestEffects_OfARun_SayWhatCanBeDone(t *testing.T) {
	run := v1.ActionRunEffects{Run: v1.ActionRun{Run: 12, Effects: 3, Notes: []string{"r-1 is left out"}}, Effects: []v1.ActionEffect{
		{Name: "to=a", Summary: "mail to a", State: "unknown", Tries: 2, Size: 2048, NotBefore: midday(), Attempts: []v1.ActionAttempt{
			{Number: 1, Node: "agg1", Fence: 87, Begun: midday(), Ended: midday(), Outcome: "retry", Message: "busy"}, {Number: 2, Node: "agg2", Fence: 98, Begun: midday(), Reference: "x7"},
		}},
		{Effect: 1, Name: "to=b", Summary: "mail to b", State: "planned"},
		{Effect: 2, Name: "to=c", Summary: "mail to c", State: "skipped", By: "anna"},
	}}
	compareList(t, view.Effects("mail/site", run), `
0|to=a|mail to a|unknown|?|2|2026-03-01 12:00:00|agg2|2026-03-01 12:00:00|?|x7|bursar actions retry mail/site 12 0|2.0`+"\u202f"+`KiB|warn
1|to=b|mail to b|planned|?|0|?|?|?|?|?|?|0`+"\u202f"+`B|dim
2|to=c|mail to c|skipped|anna|0|?|?|?|?|?|bursar actions retry mail/site 12 2|0`+"\u202f"+`B|dim
note: To give an effect up in place of trying it again, skip it: bursar actions skip mail/site 12 0`)
	compareList(t, view.Attempts(run), `
0|to=a|unknown|1|agg1|87|2026-03-01 12:00:00|2026-03-01 12:00:00|retry|busy|?|warn
0|to=a|unknown|2|agg2|98|2026-03-01 12:00:00|?|?|?|x7|warn
1|to=b|planned|?|?|?|?|?|?|mail to b|?|dim
2|to=c|skipped|?|?|?|?|?|?|mail to c|?|dim
note: r-1 is left out`)
	compareList(t, view.Effects("mail/site", v1.ActionRunEffects{}), "empty: There was nothing to do.")
	compareList(t, view.Attempts(v1.ActionRunEffects{Run: v1.ActionRun{Effects: 2}}), "empty: 2 effects, shown only to readers of all records.")
}

func TestPlan_Listed_NamesAgentAndNotes(t *testing.T) {
	compareList(t, view.Plan(v1.ActionPlan{RunOn: "head1", Notes: []string{"x has no partition"}, Effects: []v1.PlannedEffect{{Name: "partition=x", Summary: "10 to 17", Size: 33}}}), `
partition=x|10 to 17|33`+"\u202f"+`B|dim
note: The programs would run on the agent head1.
note: x has no partition`)
	compareList(t, view.Plan(v1.ActionPlan{}), "empty: There is nothing to do.")
}

func TestArchives_Listed_SayWhereFilesAre(t *testing.T) {
	compareList(t, view.Archives(v1.Archives{Archives: []v1.Archive{{Name: "2024-03", State: "archived", Count: 1200, Removed: 7, Location: "/a", Manifest: "m.json"}}}), "2024-03|archived|1\u202f200|7|/a|m.json|dim")
	compareList(t, view.Archives(v1.Archives{}), "empty: No records were removed from the store.")
}
