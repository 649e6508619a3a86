package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// micros reads a time as actions keep it.
func micros(text string) int64 { return int64(apitest.At(text)) }

// troubled are five actions, four of them with each its kind of trouble.
func troubled() *apitest.Actions {
	mark := func(by, at, why string) *action.Mark { return &action.Mark{By: by, At: micros(at), Why: why} }
	change := &action.Run{Number: 5, Why: action.WhyChange, Planned: micros("2026-02-22T11:00:00Z"), Effects: 2}
	mail := &action.Run{
		Number: 12, Why: action.WhyOrder, By: "operator \u001b[2J", Planned: micros("2026-02-01"), Ended: micros("2026-02-01T00:01:00Z"), Effects: 4,
		Counts: action.Counts{Done: 1, Rejected: 1, Unknown: 1, Skipped: 1}, Partial: true, Notes: []string{"record r-1 has no VO and is left out"},
	}
	hourly := &action.Run{Number: 17, Why: action.WhySchedule, Planned: micros("2026-02-22T12:00:00Z"), Ended: micros("2026-02-22T12:00:01Z"), Effects: 3, Counts: action.Counts{Done: 3}}
	return &apitest.Actions{
		Statuses: []action.Status{
			{Name: action.Name{Type: "priority", Label: "nemo"}, Configured: true, Schedule: "@hourly", Stored: action.State{LastSuccess: micros("2026-02-22T12:00:00Z")}, Last: hourly},
			{Name: action.Name{Type: "apel", Label: "site"}, Configured: true, Schedule: "@daily", Stored: action.State{Paused: mark("restore", "2026-02-20", "the cluster was restored")}},
			{Name: action.Name{Type: "mail", Label: "monthly"}, Configured: true, Schedule: "@monthly", Stored: action.State{Doubtful: []uint64{12}, Requests: make([]action.Order, 1)}, Last: mail},
			{Name: action.Name{Type: "webhook", Label: "grafana"}, Configured: true, Stored: action.State{Disabled: mark("agg1", "2026-02-20", "its plugin crashed 5 times in 10 minutes: signal: killed")}},
			{
				Name: action.Name{Type: "exec", Label: "mirror"}, Configured: true, Schedule: "@change 5m", Current: change, Last: change,
				Stored: action.State{LastSuccess: micros("2026-02-22T11:00:00Z"), Problem: mark("agg1", "2026-02-22T11:05:00Z", "the question is refused: unknown measure Coers")},
			},
		},
		Runs: []*action.Run{mail, {Number: 11, Why: action.WhySchedule, Planned: micros("2026-01-01")}},
		Effects: []action.Effect{
			{Name: "to=a@x", Summary: "mail to a@x", State: action.Unknown, Attempts: []action.Attempt{
				{Number: 1, Node: "agg1", Fence: 87, Begun: micros("2026-02-01"), Outcome: "retry", Message: "450 busy"},
				{Number: 2, Node: "agg2", Fence: 98, Begun: micros("2026-02-01T00:00:30Z")},
			}},
			{Name: "to=b@x", Summary: "mail to b@x", State: action.Planned},
		},
		Planned: &sdk.Plan{
			Effects: []sdk.Effect{{Name: "partition=atlas", Summary: "10 to 17", Payload: make([]byte, 33), Show: "scontrol update PartitionName=atlas\nPriorityJobFactor=17\u001b"}},
			Notes:   []string{"group nobody has no partition"},
		},
		Bytes: []byte("\x00{\r\n"), Shown: "two rows\u001b\n", Ordered: int64(apitest.At("2026-03-01T12:00:00Z")),
	}
}

// acting is a shell at a cluster with actions.
func acting(t *testing.T, a *apitest.Actions) (shell, *apitest.World) {
	t.Helper()
	s, w := filled(t)
	w.Options.Actions = a
	return s, w
}

func TestActionsAreListedWithWhatIsToBeDone(t *testing.T) {
	s, _ := acting(t, troubled())
	for name, args := range map[string][]string{
		"actions.table": {"list"}, "actions.csv": {"list", "-format", "csv"},
		"actions-plan.table": {"plan", "priority/nemo", "-v"},
		"actions-runs.table": {"history", "mail/monthly"}, "actions-run.table": {"history", "mail/monthly", "12"},
	} {
		code, out, errs := s.bursar(t.Context(), append([]string{"actions"}, args...)...)
		if code != 0 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
		golden(t, name, out+"---\n"+errs)
	}
	code, _, errs := s.bursar(t.Context(), "actions", "list", "-check")
	if code != 2 || !strings.Contains(errs, "not healthy: apel/site, mail/monthly, webhook/grafana, exec/mirror") {
		t.Error(code, errs)
	}
}

func TestOrdersReachTheServerAsTheyWereGiven(t *testing.T) {
	s, w := acting(t, troubled())
	for _, order := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "-detach", "apel/site", "month=2026-10", "site=A=B"}, `POST /v1/actions/apel/site:run {"arguments":{"month":"2026-10","site":"A=B"}}`},
		{[]string{"pause", "apel/site", "-why", "the receiver moves"}, `POST /v1/actions/apel/site:pause {"why":"the receiver moves"}`},
		{[]string{"resume", "apel/site"}, `POST /v1/actions/apel/site:resume {}`},
		{[]string{"retry", "mail/monthly", "12", "0"}, `POST /v1/actions/mail/monthly/runs/12/effects/0:retry {}`},
		{[]string{"skip", "mail/monthly", "12", "1"}, `POST /v1/actions/mail/monthly/runs/12/effects/1:skip {}`},
		{[]string{"plan", "apel/site", "month=2026-10"}, `POST /v1/actions/apel/site:plan {"arguments":{"month":"2026-10"}}`},
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"actions"}, order.args...)...)
		if list := w.Asked(); code != 0 || !slices.Contains(list, order.want) {
			t.Errorf("%v: %d %s\n%s\nwant %s", order.args, code, errs, strings.Join(list, "\n"), order.want)
		}
	}
}

func TestAnOrderThatCannotBeMeantReachesNobody(t *testing.T) {
	s, w := acting(t, troubled())
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"run", "apel"}, `"bursar actions list" prints them`},
		{[]string{"run", "apel/site", "month"}, "is not NAME=VALUE"},
		{[]string{"retry", "apel/site", "12", "first"}, "prints those of the effects"},
		{[]string{"history", "apel/site", "last"}, "the run is its number"},
		{[]string{"plan"}, ""},
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"actions"}, c.args...)...)
		if code != 1 || !strings.Contains(errs, c.says) {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
	if list := w.Asked(); len(list) > 0 {
		t.Error(list)
	}
}
