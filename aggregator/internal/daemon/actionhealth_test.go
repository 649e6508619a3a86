package daemon

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
)

func TestEachTroubleOfAnActionIsAFindingWithARemedy(t *testing.T) {
	s := &action.Status{Name: action.Name{Type: "exec", Label: "a"}, Configured: true, Card: action.State{
		Paused: &action.Mark{By: "me", At: 1, Why: "because"}, Disabled: &action.Mark{At: 1, Why: "it crashed"}, Problem: &action.Mark{At: 1, Why: "no such key"}, Doubtful: []uint64{3},
	}, Last: &action.Run{Number: 4, Ended: 1, Partial: true, Counts: action.Counts{Rejected: 2}}}
	var ids []string
	for _, f := range actionFindings(s) {
		ids = append(ids, f.ID)
		if f.What == "" || !strings.HasPrefix(f.Do, "bursar actions ") || f.About != "exec/a" {
			t.Errorf("%+v", f)
		}
	}
	if got := strings.Join(ids, " "); got != "action-paused action-disabled action-failing action-unknown action-rejected action-partial" {
		t.Error(got)
	}
	if found := actionFindings(&action.Status{Name: s.Name, Configured: true}); len(found) > 0 {
		t.Errorf("an action that is well: %+v", found)
	}
}
