package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// inside asks within the process.
func inside(g *rig) v1.API { return v1.API{Caller: g.server} }

func TestWhatIsAskedWithinTheProcessHasTheRightsOfItsPrincipal(t *testing.T) {
	g := newRig(t)
	ctx := access.With(t.Context(), access.Daemon())
	if _, err := inside(g).ListRecords(ctx, &v1.ListRecordsQuery{Limit: 1}); err != nil {
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
		err := g.server.Call(ctx, http.MethodGet, ask.path, nil, nil, nil)
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != want || p.Detail == "" {
			t.Errorf("%s: %v, want a problem %d with its detail", ask.path, err, want)
		}
	}
}

// A page that has read enough of an answer leaves it: nothing failed.
func TestAnAnswerThatIsLeftWithinTheProcessIsNotLogged(t *testing.T) {
	g := newRig(t)
	var list []string
	for i := range 1000 { // more than a piece
		list = append(list, fmt.Sprintf(`{"record_id":"r%d","meta":{"note":[%q]},"components":[],"start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-02T00:00:00Z"}`, i, strings.Repeat("x", 200)))
	}
	g.add(list...)
	n := 0
	for _, err := range inside(g).ListRecordsLines(access.With(t.Context(), access.Daemon()), &v1.ListRecordsQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			break
		}
	}
	if log := g.log.String(); strings.Contains(log, "broken off") {
		t.Error(log)
	}
}

func TestWhatIsOrderedWithinTheProcessHasTheRightsOfItsPrincipal(t *testing.T) {
	fake := &actions{}
	g := newRig(t, func(o *api.Options, _ *store.Options) { o.Actions = fake })
	body := v1.ActionOrder{Arguments: map[string]string{"month": "2026-10"}}
	ctx := access.With(t.Context(), access.Daemon())
	if plan, err := inside(g).PlanAction(ctx, "exec", "a", body); err != nil || len(plan.Effects) != 1 {
		t.Errorf("%+v, %v", plan, err)
	}
	ctx = access.With(t.Context(), access.Principal{Name: "somebody", Rights: identity.Monitor | identity.Read, Rows: access.AllRows()})
	_, err := inside(g).PlanAction(ctx, "exec", "a", body)
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusForbidden {
		t.Errorf("without the role: %v", err)
	}
	if len(fake.orders) != 1 {
		t.Errorf("ordered: %q", fake.orders)
	}
}
