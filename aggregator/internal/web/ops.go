package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// The routes of an action.
const (
	actionRoute = "/ui/actions/{type}/{label}"
	runRoute    = actionRoute + "/runs/{run}"
	effectRoute = runRoute + "/effects/{effect}"
	planRoute   = actionRoute + "/plan"
)

// titled is what a page shows when it has a title of its own.
type titled interface{ title() string }

// refreshed reports whether a page renews itself.
func refreshed(page string) bool {
	switch page {
	case "overview", "agents", "cluster", "actions", "action", "run":
		return true
	}
	return false
}

// mayConfig reports whether who asks may see the cluster's configuration.
func mayConfig(r *http.Request) bool {
	who := access.From(r.Context())
	return who.May(identity.Read) && who.Rows.All()
}

// ask fills into from /v1; false where the principal may not see that, or where
// there is nothing of it.
func (p *Pages) ask(r *http.Request, path string, query url.Values, into any) (bool, error) {
	err := p.V1.GetJSON(r.Context(), path, query, into)
	if problem, ok := errors.AsType[*client.Problem](err); ok && (problem.Status == http.StatusForbidden || problem.Status == http.StatusNotFound) {
		return false, nil
	}
	return err == nil, err
}
