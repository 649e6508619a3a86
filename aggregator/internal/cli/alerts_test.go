package cli_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

func TestAlerts_List_ShowsWhatFiresAndWhatCannotBeTold(t *testing.T) {
	s, _ := acting(t, apitest.Watching())
	code, out, errs := s.bursar(t.Context(), "alerts", "list")
	for _, want := range []string{"firing", "backup", "agg1", "2026-03-01 09:00:00", "silenced", "pending", "budget-100", "Silences", "k3v9x2m4qa", "rule=ga*", "anna", "<known>"} {
		if !strings.Contains(out, want) {
			t.Errorf("%d: %s lacks %s", code, out, want)
		}
	}
	for _, want := range []string{"mail ops to=a@example.org has taken no messages of alert/site since", "550 <no>", `Rule money of alert/site has failed since 2026-03-01 07:00:00: budget "bell" not found`} {
		if !strings.Contains(strings.Join(strings.Fields(errs), " "), want) {
			t.Errorf("%s lacks %s", errs, want)
		}
	}
	if code != 0 {
		t.Error(code)
	}
	if code, _, errs := s.bursar(t.Context(), "alerts", "list", "-check", "-format", "json"); code != 2 || !strings.Contains(errs, "2 alerts fire") {
		t.Error(code, errs)
	}
	s, _ = acting(t, &apitest.Actions{})
	if code, _, errs := s.bursar(t.Context(), "alerts", "list", "-check"); code != 0 || !strings.Contains(errs, "No alert fires.") {
		t.Error(code, errs)
	}
}

func TestAlerts_Silence_WaitsUntilItHolds(t *testing.T) {
	actions := apitest.Watching()
	s, _ := acting(t, actions)
	if code, _, errs := s.bursar(t.Context(), "alerts", "silence", "rule=backup", "about=agg*", "-for", "2h", "-comment", "why"); code != 0 || !strings.Contains(errs, "run 1 is planned") {
		t.Error(code, errs)
	}
	if code, _, errs := s.bursar(t.Context(), "alerts", "expire", "k3v9x2m4qa"); code != 0 {
		t.Error(code, errs)
	}
	if asked := strings.Join(actions.Asked(), "\n"); !strings.Contains(asked, `"match":{"about":"agg*","rule":"backup"}`) || !strings.Contains(asked, `"until":"2026-03-01T14:00:00Z"`) {
		t.Error(asked)
	}
	for want, args := range map[string][]string{
		`unknown matcher "host"`: {"silence", "host=x"}, "is not NAME=VALUE": {"silence", "backup"}, "-for": {"silence", "rule=x", "-for", "soon"}, "no silence": {"expire", "none"},
	} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"alerts"}, args...)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}
