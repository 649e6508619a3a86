package api_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
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
