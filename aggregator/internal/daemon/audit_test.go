package daemon

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// auditLog is what an administrator reads of the audit log.
func auditLog(t *testing.T, admin *http.Client, base, query string) []v1.AuditEntry {
	t.Helper()
	status, text := ask(t, admin, base, "GET /v1/audit", "/v1/audit?limit=100000&"+query)
	var out v1.Audit
	if err := json.Unmarshal([]byte(text), &out); status != http.StatusOK || err != nil || out.More {
		t.Fatalf("%d %v: %.500s", status, err, text)
	}
	return out.Entries
}

func TestAudit_EveryRouteThatChangesOrShowsPersons_IsInTheAuditLog(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	admin := g.client(identity.Identity{Role: identity.Client, Name: "root", Rights: identity.Admin})
	// What these show names no person, and no record.
	harmless := []string{
		"GET /v1/budgets", "GET /v1/reports", "GET /v1/changes/digest", "GET /v1/waiting", "GET /v1/retention", "GET /v1/kinds", "GET /v1/config",
		"GET /{$}", "GET /ui/overview", "GET /ui/budgets", "GET /ui/prices",
	}
	routes := g.someRoutes()
	for _, route := range routes {
		need := access.Routes()[route]
		if strings.HasPrefix(route, "GET ") && need.Rights == identity.Read && need.Look == slices.Contains(harmless, route) {
			t.Errorf("%s: say in access.Routes that what it shows may be of persons, or here that it is not", route)
		}
		ask(t, admin, g.tls, route, matrix()[route][1])
	}
	seen := map[string]bool{}
	for _, e := range auditLog(t, admin, g.tls, "who=client/root") {
		seen[e.Route] = true
		if e.Result == "" || e.From == "" || e.Roles != "admin" || e.Node != "agg1" {
			t.Errorf("%+v", e)
		}
	}
	for _, route := range routes {
		need := access.Routes()[route]
		if noted := need.Audit || need.Look; noted != seen[route] && route != "GET /v1/audit" && route != "POST /v1/snapshot:restore" {
			t.Errorf("%s: in the audit log: %v, want %v", route, seen[route], noted)
		}
	}
}

func TestAudit_WhoLookedAtWhom_IsFoundAtEveryNode(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	admin := g.client(identity.Identity{Role: identity.Client, Name: "root", Rights: identity.Admin})
	alice := g.client(identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Read})
	for range 3 {
		ask(t, alice, g.tls, "GET /v1/records", "/v1/records?meta[user_id][c]=bob&limit=5")
		ask(t, alice, g.tls, "GET /v1/records", "/v1/records?meta[user_id][c]=bob&limit=7")
	}
	ask(t, alice, g.tls, "GET /v1/records/{id...}", "/v1/records/nemo-1")
	ask(t, alice, g.tls, "GET /v1/tokens", "/v1/tokens")
	ask(t, admin, g.tls, "DELETE /v1/records/{id...}", "/v1/records/nemo-1")
	type line struct{ kind, who, route, about, result string }
	got := map[line]int{}
	for _, e := range auditLog(t, admin, g.tls, "") {
		got[line{e.Kind, e.Who, e.Route, e.About, e.Result}]++
	}
	for _, want := range []line{
		{"look", "client/alice", "GET /v1/records", "meta[user_id][c]=bob", "200"},
		{"look", "client/alice", "GET /v1/records/{id...}", "/v1/records/nemo-1", "404"},
		{"change", "client/root", "DELETE /v1/records/{id...}", "/v1/records/nemo-1", "404"},
	} {
		if got[want] != 1 {
			t.Errorf("%d of %+v in %+v", got[want], want, got)
		}
	}
	refusals := auditLog(t, admin, g.tls, "kind=refusal&who=client/alice")
	if len(refusals) != 1 || refusals[0].Route != "GET /v1/tokens" || !strings.Contains(refusals[0].Result, "admin") {
		t.Errorf("refusals: %+v", refusals)
	}
	if found := auditLog(t, admin, g.tls, url.Values{"about": {"=bob"}, "kind": {"look"}}.Encode()); len(found) != 1 {
		t.Errorf("about bob: %+v", found)
	}
	if status, text := ask(t, admin, g.tls, "GET /v1/audit", "/v1/audit?format=csv&kind=change"); status != http.StatusOK || !strings.HasPrefix(text, "time,kind,who,roles,from,route,about,result,node\n") {
		t.Errorf("%d %s", status, text)
	}
	for _, bad := range []string{"kind=x", "limit=0", "limit=x", "window=x", "from=2000-01-01", "else=1"} {
		if status, text := ask(t, admin, g.tls, "GET /v1/audit", "/v1/audit?"+bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, status, text)
		}
	}
}
