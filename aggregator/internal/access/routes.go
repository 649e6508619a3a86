package access

import (
	"strings"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// Need is what a route takes.
type Need struct {
	// Rights: one of them is needed.
	Rights identity.Rights
	// Open lets everyone in, without a certificate too. What is open and reads or writes
	// more than the health asks for a token.
	Open bool
	// Private routes never answer at a plain TCP address, whatever its role.
	Private bool
	// Whole routes are about all records: who sees only some of them is refused.
	Whole bool
	// Audit notes in the audit log, and in the daemon's, who asked and what came of it.
	Audit bool
	// Look notes in the audit log, once a day, that someone asked for this, since what it shows
	// may be of persons.
	Look bool
	// Pseudonyms routes show pseudonyms to who sees these in the place of names, or name no one.
	// Others refuse such readers.
	Pseudonyms bool
	// Hold breaks a refused connection off instead of answering it: the clients
	// of the route take any answer for success and drop what they have.
	Hold bool
}

// Roles lists the roles that the route takes, those that include another left
// out; "" when it is open.
func (n Need) Roles() string {
	if n.Open {
		return ""
	}
	return n.Rights.String()
}

// Widget is the path of the page that dashboards show in a frame. Who has not logged in gets
// it without figures, since the page to log in is in no frame.
const Widget = "/ui/widget"

// Routes is what each route of the REST interface takes, pages included. The key
// is the method and the pattern; HEAD is as GET. A route that is not here is
// refused, whoever asks.
func Routes() map[string]Need {
	const (
		some    = identity.Monitor | identity.Read | identity.Write | identity.Operate | identity.Admin
		figures = identity.Monitor | identity.Read // of those with a row filter the view refuses Read
	)
	table := map[string]Need{
		"GET /health_check":       {Open: true},
		"GET /ui/login":           {Open: true}, // the token decides
		"POST /ui/login":          {Open: true}, // the token decides
		"GET /ui/login/oidc":      {Open: true}, // the provider decides
		"GET /ui/login/callback":  {Open: true}, // the provider has decided
		"POST /ui/logout":         {Open: true},
		"GET /v1/join":            {Open: true, Private: true}, // certificates of authorities are public
		"POST /v1/join":           {Open: true, Private: true}, // the token decides, which a plain address must not see
		"GET /metrics":            {Rights: identity.Monitor},
		"GET /record/{record_id}": {Rights: identity.Read},
		"GET /records":            {Rights: identity.Read},
		"POST /record":            {Rights: identity.Write, Hold: true},
		"PUT /record":             {Rights: identity.Write, Hold: true},
		"POST /records":           {Rights: identity.Write, Hold: true},
	}
	const quarantined = "/v1/quarantine/{agent}/{type}/{label}/{id...}"
	add := func(need Need, routes ...string) {
		for _, r := range routes {
			table[r] = need
		}
	}
	add(Need{Rights: identity.Read},
		"GET /v1/records", "GET /v1/records/{id...}", "GET /v1/jobs", "GET /v1/usage", "GET /v1/distributions", "GET /v1/directory", "GET /v1/subscription", "GET /v1/budgets", "GET /v1/reports", "GET /v1/reports/{report}", "GET /v1/changes", "GET /v1/changes/digest", "GET /v1/changes/open", "GET /v1/conflicts", "GET /v1/holdings", "GET /v1/waiting", "GET /v1/retention", "GET /v1/kinds",
		"GET /v1/quarantine", "GET "+quarantined)
	add(Need{Rights: identity.Read, Private: true}, "GET /v1/config") // it names people and machines
	add(Need{Rights: figures}, "GET /v1/agents", "GET /v1/capacity", "GET /v1/prices", "GET /v1/gaps", "GET /v1/completeness", "GET /v1/counters", "GET /v1/status", "GET /v1/cluster",
		"GET /v1/cluster/members", "GET /v1/alerts", "GET /ui/agents", "GET /ui/actions", "GET /ui/alerts", "GET /ui/cluster")
	const action, actions = "/v1/actions/{type}/{label}", "/v1/actions/{type}/{label...}"
	const page = "/ui/actions/{type}/{label}"
	const effect = action + "/runs/{run}/effects/{effect"
	add(Need{Rights: figures}, "GET /v1/actions", "GET "+action+"/runs", "GET "+action+"/runs/{run}")
	add(Need{Rights: identity.Read}, "GET "+effect+"}", "GET "+page+"/runs/{run}/effects/{effect}")
	add(Need{Rights: figures}, "GET "+page, "GET "+page+"/runs/{run}")
	add(Need{Rights: identity.Operate, Audit: true}, "POST /ui/quarantine")
	add(Need{Rights: identity.Operate, Audit: true, Whole: true}, "POST "+page+"/plan", "POST "+actions+":plan", "POST "+actions+":run", "POST "+actions+":pause", "POST "+actions+":resume",
		"POST "+effect+"...}:retry", "POST "+effect+"...}:skip")
	add(Need{Rights: identity.Operate, Audit: true, Whole: true}, "POST /v1/alerts/silences", "DELETE /v1/alerts/silences/{id...}")
	add(Need{Rights: identity.Operate, Audit: true}, "POST /v1/check", "DELETE /v1/waiting/{id...}", "POST /v1/kinds:repair",
		"DELETE /v1/records/{id...}", "POST /v1/records/{id...}:undelete", "DELETE "+quarantined, "POST "+quarantined+":retry")
	add(Need{Rights: identity.Operate, Audit: true}, "POST /v1/imports/{name}")
	add(Need{Rights: identity.Operate}, "POST /v1/imports/{name}/{epoch}") // many of one import, whose begin is noted
	add(Need{Rights: figures}, "GET /v1/archives")
	add(Need{Rights: identity.Read}, "GET /v1/archives/rows")
	add(Need{Rights: identity.Operate, Audit: true}, "PUT /v1/archives/{name}", "POST /v1/archives/{name...}:restore", "DELETE /v1/archives/{name}")
	add(Need{Rights: identity.Admin, Audit: true, Whole: true},
		"GET /v1/snapshot", "POST /v1/snapshot:restore", "POST /v1/cluster/members", "DELETE /v1/cluster/members/{id}",
		"POST /v1/cluster/leader:transfer", "PUT /v1/config", "POST /v1/sessions",
		"GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens/{id}", "DELETE /v1/agents/{name}")
	add(Need{Rights: some}, "GET /v1/openapi.yaml",
		"GET /ui/{$}", "GET /ui/static/{file}", "GET /ui/{anything...}", "GET /favicon.ico")
	add(Need{Rights: identity.Read}, "GET /{$}", "GET /ui/overview", "GET /ui/me", "GET "+Widget, "GET /ui/projects", "GET /ui/centre", "GET /ui/budgets", "GET /ui/prices", "GET /ui/distributions", "GET /ui/records", "GET /ui/record", "GET /ui/quarantine", "GET /ui/conflicts", "GET /ui/usage", "GET /ui/reports")
	add(Need{Rights: identity.Admin, Audit: true, Whole: true}, "GET /v1/audit", "POST /v1/audit:erase")
	changeNeeds(table, func(n *Need) { n.Look = true },
		"GET /record/{record_id}", "GET /records", "GET /v1/records", "GET /v1/records/{id...}", "GET /v1/jobs", "GET /v1/usage", "GET /v1/distributions",
		"GET /v1/directory", "GET /v1/subscription", "GET /v1/reports/{report}", "GET /v1/changes", "GET /v1/changes/open", "GET /v1/conflicts", "GET /v1/holdings", "GET /v1/archives/rows",
		"GET /v1/quarantine", "GET "+quarantined, "GET "+effect+"}", "GET "+page+"/runs/{run}/effects/{effect}",
		"GET /ui/me", "GET "+Widget, "GET /ui/projects", "GET /ui/centre", "GET /ui/distributions", "GET /ui/records", "GET /ui/record", "GET /ui/quarantine",
		"GET /ui/conflicts", "GET /ui/usage", "GET /ui/reports")
	changeNeeds(table, func(n *Need) { n.Pseudonyms = true }, pseudonymRoutes()...)
	return table
}

// changeNeeds changes what some routes of a table take.
func changeNeeds(table map[string]Need, change func(*Need), routes ...string) {
	for _, route := range routes {
		need := table[route]
		change(&need)
		table[route] = need
	}
}

// pseudonymRoutes are those that show pseudonyms in the place of names, or name no one.
func pseudonymRoutes() []string {
	return []string{
		"GET /record/{record_id}", "GET /records", "GET /v1/records", "GET /v1/records/{id...}", "GET /v1/jobs", "GET /v1/usage", "GET /v1/distributions",
		"GET /v1/changes", "GET /v1/changes/digest", "GET /v1/changes/open", "GET /v1/capacity", "GET /v1/gaps", "GET /v1/completeness", "GET /v1/openapi.yaml",
		"GET /{$}", "GET /ui/{$}", "GET /ui/static/{file}", "GET /ui/{anything...}", "GET /favicon.ico", "GET /ui/usage", "GET /ui/records", "GET /ui/record",
	}
}

// rolesInWords writes roles as in "read or monitor".
func rolesInWords(r identity.Rights) string { return strings.ReplaceAll(r.String(), ",", " or ") }
