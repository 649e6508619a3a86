package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// cluster answers what a plan asks for.
func cluster(status string) *sdk.Data {
	return sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status" {
			_, _ = io.WriteString(w, status)
			return
		}
		if r.URL.Path == "/v1/records" {
			if strings.Contains(status, "open") && r.URL.Query().Get("open") == "true" {
				_, _ = io.WriteString(w, `{"records":[{"record_id":"a"}],"next":"c"}`)
				return
			}
			_, _ = io.WriteString(w, `{"records":[],"next":null}`)
			return
		}
		_, _ = io.WriteString(w, `{"cluster":"C","epoch":"E","changes":[],"last":9}`)
	}))
}

func TestPlan_StateAndArguments_SayWhatIsDone(t *testing.T) {
	a, err := configure(text("url", "https://ch1"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state     string
		arguments map[string]string
		want      string
	}{
		"the first":            {"", nil, "follow check"},
		"nothing changed":      {`{"change":9,"epoch":"E","checked":"2026-11-28T11:00:00Z"}`, nil, ""},
		"changes":              {`{"change":8,"epoch":"E","checked":"2026-11-28T11:00:00Z"}`, nil, "follow"},
		"another epoch":        {`{"change":9,"epoch":"D","checked":"2026-11-28T11:00:00Z"}`, nil, "follow"},
		"a check is due":       {`{"change":9,"epoch":"E","checked":"2026-11-27T11:00:00Z"}`, nil, "follow check"},
		"a check is ordered":   {`{"change":9,"epoch":"E","checked":"2026-11-28T11:00:00Z"}`, map[string]string{"check": "all"}, "follow check"},
		"replaced and written": {`{"change":9,"epoch":"E","checked":"2026-11-28T11:00:00Z"}`, map[string]string{"replace": "all"}, "replace check"},
	} {
		p, err := a.Plan(t.Context(), sdk.PlanStart{Now: now, State: []byte(c.state), Arguments: c.arguments}, cluster(`{"last_change":9}`))
		var got []string
		for i := range p.Effects {
			got = append(got, p.Effects[i].Name)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, %v, want %s", name, got, err, c.want)
		}
	}
	idle := sdk.PlanStart{Now: now, State: []byte(`{"change":9,"epoch":"E","checked":"2026-11-28T11:00:00Z"}`)}
	if p, err := a.Plan(t.Context(), idle, cluster(`{"last_change":9,"open":1}`)); err != nil || len(p.Effects) != 1 || p.Effects[0].Name != doFollow {
		t.Errorf("nothing changed, and records go on: %+v, %v", p, err)
	}
	for _, arguments := range []map[string]string{{"check": "some"}, {"drop": "all"}, {"check": "all", "replace": "all"}} {
		if _, err := a.Plan(t.Context(), sdk.PlanStart{Now: now, Arguments: arguments}, cluster(`{"last_change":9}`)); err == nil || !strings.Contains(err.Error(), "use check=all or replace=all") {
			t.Errorf("%v: %v", arguments, err)
		}
	}
	if _, err := a.Plan(t.Context(), sdk.PlanStart{Now: now}, cluster(`{}`)); err == nil || !strings.Contains(err.Error(), "the last change is unknown") {
		t.Errorf("a node that has not read its records: %v", err)
	}
}

func TestExecute_EffectOfANewerPlugin_IsRejected(t *testing.T) {
	a, err := configure(text("url", "https://ch1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{`{"version":2,"do":"follow"}`, `{`} {
		if r := a.Execute(t.Context(), sdk.Attempt{Effect: sdk.Effect{Payload: []byte(payload)}}, nil); r.Outcome != sdk.Rejected {
			t.Errorf("%s: %+v", payload, r)
		}
	}
}
