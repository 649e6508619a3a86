package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/proto/alerts"
)

func TestEachTroubleOfAnActionIsAFindingWithARemedy(t *testing.T) {
	s := &action.Status{Name: action.Name{Type: "exec", Label: "a"}, Configured: true, Stored: action.State{
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
	s.Name.Type = alertType
	if n := len(actionFindings(s)); n != 4 {
		t.Errorf("an alert whose receivers do not take its messages has %d findings beside that of its state", n)
	}
	if found := actionFindings(&action.Status{Name: s.Name, Configured: true}); len(found) > 0 {
		t.Errorf("an action that is well: %+v", found)
	}
}

func TestAction_EffectsRetriedOften_AreOneFindingWithTheFirstAnswer(t *testing.T) {
	run := &action.Run{Number: 7, Effects: 26}
	found := retryFindings("archive/site", run, []action.Effect{
		{Name: "write 2024-04", First: 2, Attempts: []action.Attempt{{Message: "503"}, {Message: "the bucket x is not there"}}}, {Name: "write 2024-05", First: 1},
	})
	if len(found) != 1 || found[0].What != "action archive/site retries 2 of 26 effects of run 7; write 2024-04: the bucket x is not there" ||
		found[0].Public != "action archive/site retries 2 of 26 effects of run 7" || !found[0].Since.Equal(action.Instant(1)) {
		t.Errorf("%+v", found)
	}
	if found := retryFindings("archive/site", run, nil); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestAlert_ReceiversThatTakeNothing_AreOneFinding(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	state := &alerts.State{
		Problems: []alerts.Problem{{Rule: "money", Why: "no such budget", Since: since}},
		Receivers: map[string]*alerts.Receiver{
			"mail ops to=a@example.org": {}, "mail ops to=b@example.org": {Problem: "550 no such user", Failing: since}, "webhook chat": {Problem: "503", Failing: since},
		},
	}
	found := alertFindings("alert/site", state)
	if len(found) != 2 || found[0].ID != "alert-undelivered" || found[0].What != "alert/site cannot tell 2 of 3 receivers; mail ops to=b@example.org: 550 no such user" || !found[0].Since.Equal(since) ||
		found[1].ID != "alert-rule" || found[1].What != "alert/site cannot evaluate 1 of its rules; money: no such budget" {
		t.Errorf("%+v", found)
	}
	if found[0].Public != "alert/site cannot tell 2 of 3 receivers" || found[1].Public != "alert/site cannot evaluate 1 of its rules" {
		t.Errorf("who sees some records is told %q and %q", found[0].Public, found[1].Public)
	}
	if found := alertFindings("alert/site", &alerts.State{}); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}
