package api_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestWhatIsAskedWithinTheProcessHasTheRightsOfItsPrincipal(t *testing.T) {
	g := newRig(t)
	var answer struct {
		Records []struct {
			ID string `json:"record_id"`
		} `json:"records"`
	}
	ctx := access.With(t.Context(), access.Daemon())
	if err := g.server.GetJSON(ctx, "/v1/records", url.Values{"limit": {"1"}}, &answer); err != nil {
		t.Errorf("the daemon itself: %v", err)
	}
	for want, ask := range map[int]struct {
		rights identity.Rights
		path   string
	}{
		http.StatusForbidden:  {identity.Write, "/v1/records"},
		http.StatusNotFound:   {identity.Read, "/v1/nothing"},
		http.StatusBadRequest: {identity.Read, "/v1/usage"},
	} {
		ctx := access.With(t.Context(), access.Principal{Name: "somebody", Rights: ask.rights, Rows: access.AllRows()})
		err := g.server.GetJSON(ctx, ask.path, nil, &answer)
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != want || p.Detail == "" {
			t.Errorf("%s: %v, want a problem %d with its detail", ask.path, err, want)
		}
	}
}

func TestWhatIsOrderedWithinTheProcessHasTheRightsOfItsPrincipal(t *testing.T) {
	fake := &actions{}
	g := newRig(t, func(o *api.Options, _ *store.Options) { o.Actions = fake })
	var plan struct {
		Effects []struct{ Name string } `json:"effects"`
	}
	body := map[string]any{"arguments": map[string]string{"month": "2026-10"}}
	ctx := access.With(t.Context(), access.Daemon())
	if err := g.server.PostJSON(ctx, "/v1/actions/exec/a:plan", body, &plan); err != nil || len(plan.Effects) != 1 {
		t.Errorf("%+v, %v", plan, err)
	}
	ctx = access.With(t.Context(), access.Principal{Name: "somebody", Rights: identity.Monitor | identity.Read, Rows: access.AllRows()})
	err := g.server.PostJSON(ctx, "/v1/actions/exec/a:plan", body, &plan)
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusForbidden {
		t.Errorf("without the role: %v", err)
	}
	if len(fake.orders) != 1 {
		t.Errorf("ordered: %q", fake.orders)
	}
}
