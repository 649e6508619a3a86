package cli_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

// planning is a cluster that plans what was ordered after the first look.
type planning struct {
	*apitest.Actions

	planned *action.Run
	looks   atomic.Int32
	never   bool
}

// History implements [api.Actions].
func (p *planning) History(_ action.Documents, _ action.Name, yield func(*action.Run) bool) error {
	list := []*action.Run{{Number: 12, Ordered: p.Ordered - 1, Failure: "another one"}, {Number: 11}}
	if p.looks.Add(1) > 1 && !p.never {
		list = []*action.Run{{Number: 14}, p.planned, {Number: 12}}
	}
	for _, run := range list {
		if !yield(run) {
			break
		}
	}
	return nil
}

func TestActionsRun_WaitsForThePlan_AndFailsWithIt(t *testing.T) {
	const failure = `month: "x" is no month`
	for _, c := range []struct {
		run  action.Run // of the history, in the end
		args []string
		code int
		says string
	}{
		{action.Run{Effects: 4, Notes: []string{"r-1 has no VO"}}, nil, 0, "run 13 is planned, with 4 effects: bursar actions history priority/nemo 13\nr-1 has no VO"},
		{action.Run{Partial: true, Notes: []string{"UNI 2026-10: 300 records are left out"}}, nil, 2, "run 13 is planned, with 0 effects: bursar actions history priority/nemo 13\nUNI 2026-10: 300 records are left out"},
		{action.Run{Failure: failure}, nil, 1, "run 13 of priority/nemo failed: it cannot be planned: " + failure},
		{action.Run{Failure: failure}, []string{"-detach"}, 0, "begins"},
	} {
		p := &planning{Actions: troubled(), planned: &c.run}
		p.planned.Number, p.planned.Why, p.planned.Ordered = 13, action.WhyOrder, p.Ordered
		s, w := filled(t)
		w.Options.Actions = p
		code, _, errs := s.bursar(t.Context(), append([]string{"actions", "run", "priority/nemo", "month=x"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%+v: %d %s", c.run, code, errs)
		}
	}
}

// An action that is disabled while an order waits would have the command wait for half an hour.
func TestActionsRun_ActionStoppedMeanwhile_IsSaid(t *testing.T) {
	for name, says := range map[string]string{
		"apel/site":       "run of apel/site ordered, but the action has been paused since: it is planned after: bursar actions resume apel/site",
		"webhook/grafana": "run of webhook/grafana ordered, but the action has been disabled since: its plugin crashed 5 times in 10 minutes: signal: killed; it is planned after: bursar actions resume webhook/grafana",
	} {
		s, w := filled(t)
		w.Options.Actions = &planning{Actions: troubled(), never: true}
		if code, _, errs := s.bursar(t.Context(), "actions", "run", name); code != 1 || !strings.Contains(errs, says) {
			t.Errorf("%s: %d %s", name, code, errs)
		}
	}
}
