package cli_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

// archiving is a cluster whose runs end after some looks.
type archiving struct {
	*planning

	asked map[string]string
}

// Run implements [api.Actions].
func (a *archiving) Run(_ context.Context, _ action.Name, _ string, arguments map[string]string) (int64, error) {
	a.asked = arguments
	return a.Ordered, nil
}

// History implements [api.Actions].
func (a *archiving) History(documents action.Documents, name action.Name, yield func(*action.Run) bool) error {
	if a.looks.Load() > 2 {
		a.planned.Ended = a.Ordered + 1
	}
	return a.planning.History(documents, name, yield)
}

func TestArchive_VerifyAndRestore_WaitForTheEndAndSayIt(t *testing.T) {
	const differs = "year=2024/month=03/records-1-000000000001.parquet has 7 bytes, want 8"
	for _, c := range []struct {
		args  []string
		run   action.Run
		asked map[string]string
		code  int
		says  string
	}{
		{[]string{"verify", "archive/site"}, action.Run{Effects: 1, Counts: action.Counts{Done: 1}}, map[string]string{"verify": "all"}, 0, differs},
		{[]string{"verify", "archive/site", "2024-03"}, action.Run{Effects: 1, Counts: action.Counts{Rejected: 1}}, map[string]string{"verify": "2024-03"}, 2, "1 of 1 archives: verify did not succeed"},
		{[]string{"restore", "archive/site", "2024-03-2"}, action.Run{Failure: "archive not found"}, map[string]string{"restore": "2024-03-2"}, 1, "run 13 of archive/site cannot be planned: archive not found"},
		{[]string{"restore", "archive/site"}, action.Run{}, nil, 1, "accepts 2 arg(s)"},
	} {
		a := &archiving{planning: &planning{Actions: &apitest.Actions{Ordered: 1e15}, planned: &c.run}}
		a.planned.Number, a.planned.Why, a.planned.Ordered = 13, action.WhyOrder, a.Ordered
		a.Runs = []*action.Run{a.planned}
		a.Effects = []action.Effect{{Name: "verify 2024-03", Attempts: []action.Attempt{{Number: 1, Message: differs}}}}
		s, w := filled(t)
		w.Options.Actions = a
		code, out, errs := s.bursar(t.Context(), append([]string{"archive"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.says) || !maps.Equal(a.asked, c.asked) {
			t.Errorf("%v: %d, asked %v\n%s%s", c.args, code, a.asked, out, errs)
		}
	}
}
