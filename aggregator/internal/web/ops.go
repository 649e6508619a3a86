package web

import (
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
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
type titled interface{ pageTitle() string }

// isRefreshed reports whether a page renews itself.
func isRefreshed(page string) bool {
	switch page {
	case "overview", "agents", "cluster", "actions", "alerts", "action", "run":
		return true
	}
	return false
}

// mayConfig reports whether who asks may see the cluster's configuration.
func mayConfig(r *http.Request) bool {
	who := access.From(r.Context())
	return who.May(identity.Read) && who.Rows.All()
}

// mapViews returns what pages show of a list.
func mapViews[T, V any](list []T, view func(T) V) []V {
	out := make([]V, len(list))
	for i := range list {
		out[i] = view(list[i])
	}
	return out
}
