package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestAlerts_AreThoseOfTheStateOfTheAction(t *testing.T) {
	w := apitest.New(t)
	w.Options.Actions = apitest.Watching()
	list, err := w.API().Alerts(t.Context(), nil)
	if err != nil || len(list.Alerts) != 4 || len(list.Silences) != 1 || len(list.Receivers) != 2 || len(list.Rules) != 1 {
		t.Fatalf("%v %+v", err, list)
	}
	for i, want := range []string{"backup firing ", "budget-100 firing ", "gap silenced k3v9x2m4qa", "quarantine pending "} {
		if a := list.Alerts[i]; a.Rule+" "+a.State+" "+string(a.Silence) != want || a.Action != "site" {
			t.Errorf("%+v, want %s", a, want)
		}
	}
	some := access.Daemon()
	some.Rows = access.Rows{}
	if _, err := (v1.API{Caller: apitest.As{World: w, Principal: some}}).Alerts(t.Context(), nil); err == nil {
		t.Error("who sees no records sees alerts")
	}
}

func TestSilences_AreOrderedOfEachAction(t *testing.T) {
	w := apitest.New(t)
	actions := apitest.Watching()
	w.Options.Actions = actions
	api := w.API()
	made, err := api.SilenceAlerts(t.Context(), v1.AlertSilenceOrder{Match: map[string]string{"rule": "backup"}, Seconds: 60, Comment: "why"})
	if err != nil || len(made.Orders) != 1 || made.Orders[0].Action != "site" || len(made.ID) != 10 {
		t.Fatalf("%v %+v", err, made)
	}
	if _, err := api.ExpireSilence(t.Context(), "k3v9x2m4qa"); err != nil {
		t.Error(err)
	}
	asked := strings.Join(actions.Asked(), "\n")
	if !strings.Contains(asked, `map[silence:{"id":"`+made.ID+`","match":{"rule":"backup"},"from":"2026-03-01T12:00:00Z","until":"2026-03-01T12:01:00Z","author":"`) ||
		!strings.Contains(asked, "map[expire:k3v9x2m4qa]") {
		t.Error(asked)
	}
	for want, order := range map[string]v1.AlertSilenceOrder{
		"missing matcher":      {Seconds: 60},
		`unknown matcher "x"`:  {Match: map[string]string{"x": "y"}, Seconds: 60},
		"invalid duration":     {Match: map[string]string{"rule": "y"}},
		"at most 366 days":     {Match: map[string]string{"rule": "y"}, Seconds: 1 << 40},
		"no action alert/none": {Match: map[string]string{"rule": "y"}, Seconds: 60, Action: "none"},
	} {
		if _, err := api.SilenceAlerts(t.Context(), order); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", order, err, want)
		}
	}
	if _, err := api.ExpireSilence(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), `no silence "other"`) {
		t.Error(err)
	}
	w.Options.Actions = &apitest.Actions{}
	if _, err := api.SilenceAlerts(t.Context(), v1.AlertSilenceOrder{Match: map[string]string{"rule": "y"}, Seconds: 60}); err == nil || !strings.Contains(err.Error(), "no action of the type alert") {
		t.Error(err)
	}
}

// TestAlerts_AnswersAreAsDescribed checks them against openapi.yaml.
func TestAlerts_AnswersAreAsDescribed(t *testing.T) {
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Actions = apitest.Watching() })
	for _, a := range []answer{
		rg.do("GET", "/v1/alerts", ""), rg.do("GET", "/v1/alerts?format=csv", ""),
		rg.do("POST", "/v1/alerts/silences", `{"match":{"rule":"x"},"seconds":5}`), rg.do("DELETE", "/v1/alerts/silences/k3v9x2m4qa", ""),
	} {
		if a.status >= http.StatusBadRequest {
			t.Errorf("%+v", a)
		}
	}
}
