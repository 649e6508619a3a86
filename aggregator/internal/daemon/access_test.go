package daemon

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/logtest"
	"github.com/bursar-accounting/bursar/proto/programtest"
	"github.com/bursar-accounting/bursar/proto/racetest"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// guarded is an aggregator with a TLS listener, and a plain one with the given
// roles.
type guarded struct {
	t          *testing.T
	ca         *identitytest.CA
	agg        *Aggregator
	plain, tls string
	log        logtest.Log
}

func newGuarded(t *testing.T, rules access.Rules, set ...func(*Settings)) *guarded {
	t.Helper()
	g := &guarded{t: t, ca: identitytest.New(t)}
	var open [2]net.Listener
	for i := range open {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		open[i] = l
	}
	g.plain, g.tls = "http://"+open[0].Addr().String(), "https://"+open[1].Addr().String()
	settings := Settings{
		Name: "agg1", DataDir: t.TempDir(), MinFree: 1 << 20, // how full the machine's disk is shall not matter
		Plain: open[:1], TLS: open[1:], Keys: g.ca.Keys(identity.Aggregator, "agg1"),
		Access: rules, Authority: g.ca.Authority(), Log: slog.New(slog.NewTextHandler(&g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, s := range set {
		s(&settings)
	}
	var err error
	g.agg, err = Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.agg.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g
}

// client makes an HTTP client with a certificate.
func (g *guarded) client(id identity.Identity) *http.Client {
	g.t.Helper()
	files := g.ca.Issue(id)
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		g.t.Fatal(err)
	}
	pool := g.ca.Pool()
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{cert}},
		DisableKeepAlives: true,
	}}
}

// ask is the status of an answer and its text; 0 when the connection broke. A request
// that has a body has a bad one.
func ask(t *testing.T, c *http.Client, base, route, path string, header ...string) (int, string) {
	t.Helper()
	method, _, _ := strings.Cut(route, " ")
	var body io.Reader
	if method == http.MethodPost || method == http.MethodPut {
		body = strings.NewReader("not even JSON")
	}
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range header {
		name, value, ok := strings.Cut(h, ": ")
		if !ok {
			continue
		}
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	return readAnswer(resp)
}

// readAnswer is the status of an answer and its text; 0 when the connection broke.
func readAnswer(resp *http.Response) (int, string) {
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// matrix says who may use each route: m monitor, r read, w write, o operate,
// a admin, * everyone, and an example of its path.
func matrix() map[string][2]string {
	const job = "/v1/quarantine/head1/slurm/nemo/1"
	return map[string][2]string{
		"GET /health_check":       {"*", "/health_check"},
		"GET /ui/login":           {"*", "/ui/login?token=x"},
		"POST /ui/login":          {"*", "/ui/login"},
		"GET /ui/login/oidc":      {"*", "/ui/login/oidc"},
		"GET /ui/login/callback":  {"*", "/ui/login/callback?code=x&state=y"},
		"POST /ui/logout":         {"*", "/ui/logout"},
		"GET /v1/join":            {"*", "/v1/join"},
		"POST /v1/join":           {"*", "/v1/join"},
		"GET /metrics":            {"moa", "/metrics"},
		"POST /record":            {"wa", "/record"},
		"PUT /record":             {"wa", "/record"},
		"POST /records":           {"wa", "/records"},
		"GET /records":            {"roa", "/records"},
		"GET /record/{record_id}": {"roa", "/record/x"},

		"GET /v1/records":                     {"roa", "/v1/records"},
		"GET /v1/records/{id...}":             {"roa", "/v1/records/x"},
		"GET /v1/jobs":                        {"roa", "/v1/jobs?id=x"},
		"DELETE /v1/records/{id...}":          {"oa", "/v1/records/x"},
		"POST /v1/records/{id...}:undelete":   {"oa", "/v1/records/x:undelete"},
		"GET /v1/usage":                       {"roa", "/v1/usage?window=2026"},
		"GET /v1/directory":                   {"roa", "/v1/directory"},
		"GET /v1/subscription":                {"roa", "/v1/subscription"},
		"GET /v1/budgets":                     {"roa", "/v1/budgets"},
		"GET /v1/reports":                     {"roa", "/v1/reports"},
		"GET /v1/reports/{report}":            {"roa", "/v1/reports/usage"},
		"GET /v1/distributions":               {"roa", "/v1/distributions?window=2026-02"},
		"GET /v1/prices":                      {"mroa", "/v1/prices"},
		"GET /v1/capacity":                    {"mroa", "/v1/capacity"},
		"GET /v1/changes":                     {"roa", "/v1/changes"},
		"GET /v1/changes/digest":              {"roa", "/v1/changes/digest"},
		"GET /v1/changes/open":                {"roa", "/v1/changes/open"},
		"GET /v1/agents":                      {"mroa", "/v1/agents"},
		"GET /v1/counters":                    {"mroa", "/v1/counters"},
		"GET /v1/gaps":                        {"mroa", "/v1/gaps"},
		"GET /v1/completeness":                {"mroa", "/v1/completeness"},
		"GET /v1/status":                      {"mroa", "/v1/status"},
		"GET /v1/quarantine":                  {"roa", "/v1/quarantine"},
		"GET " + quarantinedRoute:             {"roa", job},
		"DELETE " + quarantinedRoute:          {"oa", job},
		"POST " + quarantinedRoute + ":retry": {"oa", job + ":retry"},
		"GET /v1/conflicts":                   {"roa", "/v1/conflicts"},
		"GET /v1/holdings":                    {"roa", "/v1/holdings?name=x"},
		"POST /v1/imports/{name}":             {"oa", "/v1/imports/import"},
		"POST /v1/imports/{name}/{epoch}":     {"oa", "/v1/imports/import/00"},
		"GET /v1/waiting":                     {"roa", "/v1/waiting"},
		"DELETE /v1/waiting/{id...}":          {"oa", "/v1/waiting/x"},
		"GET /v1/retention":                   {"roa", "/v1/retention?months=18"},
		"GET /v1/kinds":                       {"roa", "/v1/kinds"},
		"POST /v1/kinds:repair":               {"oa", "/v1/kinds:repair"},
		"GET /v1/openapi.yaml":                {"mrwoa", "/v1/openapi.yaml"},

		"GET /v1/alerts":                      {"mroa", "/v1/alerts"},
		"GET /v1/archives":                    {"mroa", "/v1/archives"},
		"GET /v1/archives/rows":               {"roa", "/v1/archives/rows?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z"},
		"PUT /v1/archives/{name}":             {"oa", "/v1/archives/x"},
		"POST /v1/archives/{name...}:restore": {"oa", "/v1/archives/x:restore"},
		"DELETE /v1/archives/{name}":          {"oa", "/v1/archives/x"},
		"POST /v1/alerts/silences":            {"oa", "/v1/alerts/silences"},
		"DELETE /v1/alerts/silences/{id...}":  {"oa", "/v1/alerts/silences/x"},
		"GET /v1/actions":                     {"mroa", "/v1/actions"},
		"GET " + actionRoute + "/runs":        {"mroa", "/v1/actions/exec/x/runs"},
		"GET " + actionRoute + "/runs/{run}":  {"mroa", "/v1/actions/exec/x/runs/1"},
		"GET " + effectRoute + "}":            {"roa", "/v1/actions/exec/x/runs/1/effects/0"},
		"POST " + effectRoute + "...}:retry":  {"oa", "/v1/actions/exec/x/runs/1/effects/0:retry"},
		"POST " + effectRoute + "...}:skip":   {"oa", "/v1/actions/exec/x/runs/1/effects/0:skip"},
		"POST " + actionsRoute + ":plan":      {"oa", "/v1/actions/exec/x:plan"},
		"POST " + actionsRoute + ":run":       {"oa", "/v1/actions/exec/x:run"},
		"POST " + actionsRoute + ":pause":     {"oa", "/v1/actions/exec/x:pause"},
		"POST " + actionsRoute + ":resume":    {"oa", "/v1/actions/exec/x:resume"},

		"GET /v1/audit":                    {"a", "/v1/audit"},
		"POST /v1/audit:erase":             {"a", "/v1/audit:erase"},
		"POST /v1/sessions":                {"a", "/v1/sessions"},
		"GET /v1/tokens":                   {"a", "/v1/tokens"},
		"POST /v1/tokens":                  {"a", "/v1/tokens"},
		"DELETE /v1/tokens/{id}":           {"a", "/v1/tokens/x"},
		"DELETE /v1/agents/{name}":         {"a", "/v1/agents/x"},
		"POST /v1/check":                   {"oa", "/v1/check"},
		"GET /v1/cluster":                  {"mroa", "/v1/cluster"},
		"GET /v1/cluster/members":          {"mroa", "/v1/cluster/members"},
		"POST /v1/cluster/members":         {"a", "/v1/cluster/members"},
		"DELETE /v1/cluster/members/{id}":  {"a", "/v1/cluster/members/x"},
		"POST /v1/cluster/leader:transfer": {"a", "/v1/cluster/leader:transfer"},
		"GET /v1/config":                   {"roa", "/v1/config"},
		"PUT /v1/config":                   {"a", "/v1/config"},
		"GET /v1/snapshot":                 {"a", "/v1/snapshot"},
		"POST /v1/snapshot:restore":        {"a", "/v1/snapshot:restore"},

		"GET /{$}":                       {"roa", "/"},
		"GET /ui/overview":               {"roa", "/ui/overview"},
		"GET /ui/me":                     {"roa", "/ui/me?user=mine"},
		"GET /ui/widget":                 {"roa", "/ui/widget"},
		"GET /ui/projects":               {"roa", "/ui/projects?period=2026-02"},
		"GET /ui/centre":                 {"roa", "/ui/centre?period=2026-02"},
		"GET /ui/budgets":                {"roa", "/ui/budgets"},
		"GET /ui/prices":                 {"roa", "/ui/prices"},
		"POST /ui/quarantine":            {"oa", "/ui/quarantine"},
		"GET /ui/distributions":          {"roa", "/ui/distributions?period=2026-02"},
		"GET /ui/cluster":                {"mroa", "/ui/cluster"},
		"GET /ui/{$}":                    {"mrwoa", "/ui/"},
		"GET /ui/usage":                  {"roa", "/ui/usage"},
		"GET /ui/reports":                {"roa", "/ui/reports"},
		"GET /ui/actions":                {"mroa", "/ui/actions"},
		"GET /ui/alerts":                 {"mroa", "/ui/alerts"},
		"GET /ui/actions/{type}/{label}": {"mroa", "/ui/actions/exec/x"},
		"GET /ui/actions/{type}/{label}/runs/{run}":                  {"mroa", "/ui/actions/exec/x/runs/1"},
		"GET /ui/actions/{type}/{label}/runs/{run}/effects/{effect}": {"roa", "/ui/actions/exec/x/runs/1/effects/0"},
		"POST /ui/actions/{type}/{label}/plan":                       {"oa", "/ui/actions/exec/x/plan"},

		"GET /ui/records":       {"roa", "/ui/records"},
		"GET /ui/record":        {"roa", "/ui/record?id=x"},
		"GET /ui/agents":        {"mroa", "/ui/agents"},
		"GET /ui/quarantine":    {"roa", "/ui/quarantine"},
		"GET /ui/conflicts":     {"roa", "/ui/conflicts"},
		"GET /ui/static/{file}": {"mrwoa", "/ui/static/style.css"},
		"GET /ui/{anything...}": {"mrwoa", "/ui/nothing"},
		"GET /favicon.ico":      {"mrwoa", "/favicon.ico"},
	}
}

const (
	quarantinedRoute = "/v1/quarantine/{agent}/{type}/{label}/{id...}"
	actionRoute      = "/v1/actions/{type}/{label}"
	actionsRoute     = "/v1/actions/{type}/{label...}"
	effectRoute      = actionRoute + "/runs/{run}/effects/{effect"
)

func TestARouteWithoutARuleOfAccessIsRefusedAndThisTestSaysSo(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	needs, expected := access.Routes(), matrix()
	served := g.agg.server.Served()
	for _, route := range served {
		if _, ok := needs[route]; !ok {
			t.Errorf("%s is served, but has no rule in access.Routes", route)
		}
		if _, ok := expected[route]; !ok {
			t.Errorf("%s is served, but not in the matrix of this test: say who may use it", route)
		}
	}
}

// someRoutes returns all routes that are served; in the check's run of the race detector a
// fifth of them, drawn anew each time, since each costs many requests there.
func (g *guarded) someRoutes() []string {
	routes := g.agg.server.Served()
	drawn := map[string]bool{}
	for _, i := range rand.Perm(len(routes))[:racetest.Few(len(routes))] {
		drawn[routes[i]] = true
	}
	return slices.DeleteFunc(slices.Clone(routes), func(route string) bool { return !drawn[route] })
}

func TestEveryRouteIsForItsRolesOnly(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	who := map[string]*http.Client{"-": g.client(identity.Identity{Role: identity.Client, Name: "nothing"})}
	for i, name := range identity.RightNames() {
		who[name[:1]] = g.client(identity.Identity{Role: identity.Client, Name: name, Rights: 1 << i})
	}
	for _, route := range g.someRoutes() {
		c := matrix()[route]
		for letter, client := range who {
			status, text := ask(g.t, client, g.tls, route, c[1])
			g.judge(route, letter, c[0] == "*" || strings.Contains(c[0], letter), http.StatusForbidden, status, text)
		}
		status, text := ask(g.t, http.DefaultClient, g.plain, route, c[1])
		g.judge(route, "without a certificate", c[0] == "*" && !strings.HasSuffix(route, "/v1/join"), http.StatusUnauthorized, status, text)
		status, text = ask(g.t, g.stranger(), g.tls, route, c[1])
		g.judge(route, "without a certificate by TLS", c[0] == "*", http.StatusUnauthorized, status, text)
		if c[0] != "*" {
			status, text = ask(g.t, g.stranger(), g.tls, route, c[1], "Accept: application/problem+json")
			if status != http.StatusUnauthorized || !strings.Contains(text, "without a certificate") {
				t.Errorf("%s without a certificate by TLS: %d %s", route, status, text)
			}
		}
	}
}

// stranger makes an HTTP client that trusts the authority and shows no certificate.
func (g *guarded) stranger() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: g.ca.Pool()},
		DisableKeepAlives: true,
	}}
}

func TestACertificateOfAnotherAuthority_ConnectsNowhere(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	other := &guarded{t: t, ca: identitytest.New(t)}
	c := other.client(identity.Identity{Role: identity.Client, Name: "eve", Rights: identity.Admin})
	c.Transport.(*http.Transport).TLSClientConfig.RootCAs = g.ca.Pool()
	if status, text := ask(g.t, c, g.tls, "GET", "/health_check"); status != 0 {
		t.Errorf("%d %s", status, text)
	}
}

// judge fails the test when the answer is not that of who may, or may not.
func (g *guarded) judge(route, who string, may bool, refusal, status int, text string) {
	g.t.Helper()
	refused := status == http.StatusForbidden || status == http.StatusUnauthorized || status == 0
	switch {
	case may && refused:
		g.t.Errorf("%s by %s: refused with %d %s", route, who, status, text)
	case may:
	case !refused:
		g.t.Errorf("%s by %s: answered with %d", route, who, status)
	case access.Routes()[route].Hold:
		if status != 0 {
			g.t.Errorf("%s by %s: a client would take %d for success and drop its copy", route, who, status)
		}
	case status != refusal:
		g.t.Errorf("%s by %s: %d, want %d", route, who, status, refusal)
	}
}

func TestAnAgentDoesNotEvenConnectAndANodeMayEverything(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	agent := g.client(identity.Identity{Role: identity.Agent, Name: "head1"})
	if status, text := ask(g.t, agent, g.tls, "GET", "/health_check"); status != 0 {
		t.Errorf("an agent: %d %s", status, text)
	}
	node := g.client(identity.Identity{Role: identity.Aggregator, Name: "agg2"})
	if status, text := ask(g.t, node, g.tls, "GET", "/v1/status"); status != http.StatusOK {
		t.Errorf("a node: %d %s", status, text)
	}
}

func TestTheConfigurationGivesAndTakesRolesWithoutARestart(t *testing.T) {
	none := identity.Rights(0)
	read := identity.Read
	g := newGuarded(t, access.Rules{})
	alice := g.client(identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Read})
	bob := g.client(identity.Identity{Role: identity.Client, Name: "bob"})
	want := func(who string, c *http.Client, url string, want int) {
		t.Helper()
		if status, text := ask(g.t, c, url, "GET", "/records"); status != want {
			t.Errorf("%s: %d %s, want %d", who, status, text, want)
		}
	}
	want("alice by her certificate", alice, g.tls, 200)
	want("bob has no role", bob, g.tls, 403)
	want("plain", http.DefaultClient, g.plain, 401)
	g.agg.SetAccess(access.Rules{Plain: identity.Read, Clients: map[string]access.Client{
		"alice": {Rights: &none, Rows: access.AllRows()}, "bob": {Rights: &read, Rows: access.AllRows()},
	}})
	want("alice, whose role was taken", alice, g.tls, 403)
	want("bob, who was given one", bob, g.tls, 200)
	want("plain, which was given one", http.DefaultClient, g.plain, 200)
}

func TestEveryRouteAboutAllRecords_WhoSeesSome_IsRefused(t *testing.T) {
	all := identity.Read | identity.Write | identity.Operate | identity.Admin | identity.Monitor
	physics := map[string][]string{"group_id": {"physics"}}
	rules := access.Rules{Clients: map[string]access.Client{"some": {Rights: &all, Rows: access.SomeRows(physics)}}}
	oidcGroup(&rules, "some", access.GroupClient{Rights: all, Rows: access.SomeRows(physics)})
	g := newGuarded(t, rules)
	g.ready()
	ways := g.ways("some", all, enrol.Scope{Rows: []map[string][]string{physics}})
	// These change records that he sees, or add some, and judge by themselves.
	own := []string{
		"POST /record", "PUT /record", "POST /records", "POST /v1/imports/{name}", "POST /v1/imports/{name}/{epoch}", "POST /v1/check",
		"DELETE /v1/records/{id...}", "POST /v1/records/{id...}:undelete", "DELETE /v1/waiting/{id...}", "DELETE " + quarantinedRoute, "POST " + quarantinedRoute + ":retry",
		"POST /ui/quarantine", "POST /ui/login", "POST /ui/logout", "POST /v1/join",
	}
	for _, route := range g.agg.server.Served() {
		if strings.HasPrefix(route, "GET ") && !access.Routes()[route].Whole || slices.Contains(own, route) {
			continue
		}
		for _, w := range ways {
			if status, text := ask(t, w.client, g.tls, route, matrix()[route][1], w.header); status != http.StatusForbidden || !strings.Contains(text, access.ErrRows.Error()) {
				t.Errorf("%s by %s: %d %s", route, w.name, status, text)
			}
		}
	}
}

// failingAction sets an action exec/x up that cannot be planned: its plugin ends with the text.
func failingAction(t *testing.T, text string) func(*Settings) {
	t.Helper()
	dir := t.TempDir()
	path, file := filepath.Join(dir, "bursar-action-exec"), filepath.Join(dir, "aggregator.hcl")
	if err := programtest.WriteProgram(path, "#!/bin/sh\necho "+text+" >&2\nexit 3\n"); err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf("aggregator {\n name = \"agg1\"\n data_dir = \"data\"\n}\nplugin \"action\" \"exec\" {\n path = %q\n}\naction \"exec\" \"x\" {\n schedule = \"@manual\"\n}\n", path)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, _, diags := config.Load(file)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return func(s *Settings) {
		s.Files, s.Actions = loaded.Shared(), Actions{Local: loaded.LocalActions(), Plugins: loaded.ActionPlugins(), Dev: true}
	}
}

func TestEveryRoute_AnActionFails_ShowsTheTextOnlyToWhoSeesAll(t *testing.T) {
	const secret = "no mail address of carol"
	g := newGuarded(t, access.Rules{}, failingAction(t, secret))
	rights := identity.Read | identity.Operate | identity.Monitor
	all := g.client(identity.Identity{Role: identity.Client, Name: "all", Rights: rights})
	some := g.client(identity.Identity{Role: identity.Client, Name: "some", Rights: rights})
	monitor := g.client(identity.Identity{Role: identity.Client, Name: "monitor", Rights: identity.Monitor})
	g.agg.SetAccess(access.Rules{Clients: map[string]access.Client{"some": {Rights: &rights, Rows: access.SomeRows(access.Grant{"group_id": {"physics"}})}}})
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not within two minutes: ", what)
			}
		}
	}
	until("the action is ordered", func() bool {
		resp, err := all.Post(g.tls+"/v1/actions/exec/x:run", "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusAccepted
	})
	until("the action fails", func() bool {
		_, status := ask(t, all, g.tls, "GET", "/v1/status")
		_, runs := ask(t, all, g.tls, "GET", "/v1/actions/exec/x/runs") // a plan is tried again before there is a run
		return strings.Contains(status, secret) && strings.Contains(runs, secret)
	})
	shown := map[string]bool{}
	for _, route := range g.agg.server.Served() {
		path, is := strings.CutPrefix(route, "GET ")
		if !is {
			continue
		}
		_, text := ask(t, all, g.tls, route, matrix()[route][1])
		shown[path] = strings.Contains(text, secret)
		for name, c := range map[string]*http.Client{"some": some, "monitor": monitor} {
			if _, text := ask(t, c, g.tls, route, matrix()[route][1]); strings.Contains(text, "carol") {
				t.Errorf("%s shows the failure to %s: %s", route, name, text)
			}
		}
	}
	for _, path := range []string{"/v1/actions", "/v1/status", "/v1/actions/{type}/{label}/runs", "/ui/actions", "/ui/cluster", "/ui/overview"} {
		if !shown[path] {
			t.Errorf("%s does not show the failure to who sees all", path)
		}
	}
	for _, path := range []string{"/v1/actions", "/v1/status"} {
		var out struct {
			Actions []v1.Action
			v1.Verdict
		}
		_, text := ask(t, some, g.tls, "GET", path)
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(path, err, text)
		}
		var since time.Time
		for i := range out.Actions {
			since = out.Actions[i].Problem.At.Time
		}
		for i := range out.Findings {
			if f := &out.Findings[i]; f.ID == "action-failing" && f.What == "action exec/x cannot be planned" {
				since = f.Since.Time
			}
		}
		if since.IsZero() {
			t.Errorf("%s does not say since when the action fails: %s", path, text)
		}
	}
}
