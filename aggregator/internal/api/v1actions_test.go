package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// actions are one action with one run.
type actions struct {
	orders []string
	fails  error
}

func (a *actions) run() *action.Run {
	return &action.Run{Number: 1, Why: action.WhyOrder, By: "me", Arguments: map[string]string{"month": "2026-10"}, Class: 3, Version: "1", Planned: 1, Index: 7, Ended: 2, Effects: 1, Counts: action.Counts{Unknown: 1}, Partial: true, Notes: []string{"note"}}
}

func (a *actions) List(action.Documents) ([]action.Status, error) {
	mark, failure := &action.Mark{By: "me", At: 1, Why: "because"}, &action.Mark{At: 1, Why: "no mail address of carol"}
	return []action.Status{
		{Name: action.Name{Type: "exec", Label: "a"}, Configured: true, Schedule: "@hourly", Stored: action.State{Paused: mark, Disabled: failure, Problem: failure, Since: 3, Doubtful: []uint64{1}}, Last: a.run(), Current: a.run()},
		{Name: action.Name{Type: "exec", Label: "b"}},
	}, nil
}

func (a *actions) History(_ action.Documents, _ action.Name, yield func(*action.Run) bool) error {
	for range 3 {
		if !yield(a.run()) {
			break
		}
	}
	return a.fails
}

func (a *actions) Show(action.Documents, action.Name, uint64) (*action.Run, []action.Effect, error) {
	return a.run(), []action.Effect{{Name: "e", State: action.Unknown, Digest: "d", Key: "k", Tries: 1, Attempts: []action.Attempt{{Number: 1, Node: "n", Term: 2, Begun: 3, Fence: 4, Ended: 5, Outcome: action.Unknown, Message: "m"}}}, {Name: "f", State: action.Planned}}, a.fails
}

func (a *actions) Payload(action.Documents, action.Name, uint64, int) ([]byte, string, error) {
	return []byte("bytes"), "shown", a.fails
}

func (*actions) Kept(action.Documents, action.Name) ([]byte, error) { return nil, nil }

func (a *actions) Plan(_ context.Context, name action.Name, arguments map[string]string) (*sdk.Plan, *action.Run, error) {
	return &sdk.Plan{Effects: []sdk.Effect{{Name: "e", Summary: "s", Payload: []byte("bytes"), Show: "shown"}}}, a.run(), a.note("plan", name, arguments)
}

func (a *actions) note(what ...any) error {
	if a.fails == nil {
		a.orders = append(a.orders, strings.TrimSpace(fmt.Sprintln(what...)))
	}
	return a.fails
}

func (a *actions) Run(_ context.Context, name action.Name, by string, arguments map[string]string) (int64, error) {
	return 9, a.note("run", name, by, arguments)
}

func (a *actions) Pause(_ context.Context, name action.Name, by, why string) error {
	return a.note("pause", name, by, why)
}

func (a *actions) Resume(_ context.Context, name action.Name) error { return a.note("resume", name) }

func (a *actions) Retry(_ context.Context, name action.Name, by string, run uint64, effect int) error {
	return a.note("retry", name, by, run, effect)
}

func (a *actions) Skip(_ context.Context, name action.Name, by string, run uint64, effect int) error {
	return a.note("skip", name, by, run, effect)
}

func TestActionsAreShownAndTakeOrders(t *testing.T) {
	acts := &actions{}
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Actions = acts })
	const one = "/v1/actions/exec/a"
	for path, want := range map[string]string{
		"/v1/actions":             `"state":"not configured"`,
		one + "/runs":             `"more":false`,
		one + "/runs?limit=2":     `"more":true`,
		one + "/runs/1":           `"fence":4`,
		one + "/runs/1/effects/0": `{"show":"shown","payload":"Ynl0ZXM="}`,
	} {
		if a := rg.do("GET", path, ""); a.status != http.StatusOK || !strings.Contains(a.body, want) {
			t.Errorf("GET %s: %v", path, a)
		}
	}
	for _, x := range []struct {
		path, body string
		status     int
		order      string
	}{
		{":plan", "", http.StatusOK, "plan exec/a map[]"},
		{":plan", `{"arguments":{"month":"2026-10"}}`, http.StatusOK, "plan exec/a map[month:2026-10]"},
		{":run", "", http.StatusAccepted, "run exec/a bursar map[]"},
		{":pause", `{"why":"maintenance"}`, http.StatusAccepted, "pause exec/a bursar maintenance"},
		{":resume", "", http.StatusAccepted, "resume exec/a"},
		{"/runs/1/effects/2:retry", "", http.StatusAccepted, "retry exec/a bursar 1 2"},
		{"/runs/1/effects/2:skip", "", http.StatusAccepted, "skip exec/a bursar 1 2"},
	} {
		a := rg.do("POST", one+x.path, x.body)
		if a.status != x.status || len(acts.orders) == 0 || acts.orders[len(acts.orders)-1] != x.order {
			t.Errorf("POST %s: %v; %q", x.path, a, acts.orders)
		}
	}
	for _, x := range []struct {
		fails  error
		path   string
		body   string
		status int
	}{
		{action.ErrNone, ":run", "", http.StatusNotFound},
		{action.ErrRefused, ":resume", "", http.StatusConflict},
		{action.ErrChanged, "/runs/1/effects/2:skip", "", http.StatusConflict},
		{api.ErrNotNow, ":pause", "", http.StatusServiceUnavailable},
		{fmt.Errorf("no such key"), ":plan", "", http.StatusUnprocessableEntity},
		{nil, ":run", `{"argument":{}}`, http.StatusBadRequest},
		{nil, "/runs/x/effects/2:skip", "", http.StatusNotFound},
		{nil, "/b:run", "", http.StatusNotFound},
	} {
		acts.fails = x.fails
		if a := rg.do("POST", one+x.path, x.body); a.status != x.status {
			t.Errorf("POST %s: %v, want %d", x.path, a, x.status)
		}
	}
}

func TestRuns_WhoReadsSomeRecords_IsToldWhatNamesNobodyElse(t *testing.T) {
	who := access.Principal{Rights: identity.Read | identity.Monitor, Rows: access.SomeRows(access.Grant{"group_id": {"atlas"}})}
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		o.Actions, o.Who = &actions{}, func(*http.Request) access.Principal { return who }
	})
	for _, path := range []string{"/v1/actions", "/v1/actions/exec/a/runs", "/v1/actions/exec/a/runs/1"} {
		for _, all := range []bool{false, true} {
			if who.Rows = access.SomeRows(access.Grant{"group_id": {"atlas"}}); all {
				who.Rows = access.AllRows()
			}
			body := rg.do("GET", path, "").body
			for _, text := range []string{`"note"`, "2026-10"} {
				if strings.Contains(body, text) != all {
					t.Errorf("%s, all %v: %s", path, all, body)
				}
			}
			if strings.HasSuffix(path, "/1") && strings.Contains(body, `"attempts"`) != all || !strings.Contains(body, `"planned"`) {
				t.Errorf("%s, all %v: %s", path, all, body)
			}
		}
	}
}
