package daemon

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// bearer makes a token of the API, and returns its header and its id.
func (g *guarded) bearer(scope enrol.Scope, life time.Duration, made time.Time) (header, id string) {
	g.t.Helper()
	view, err := g.agg.replica.Read(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	defer view.Close()
	write := func(ctx context.Context, c store.Command) (any, error) { return g.agg.replica.Write(ctx, c) }
	text, b, err := enrol.CreateBearer(g.t.Context(), view, write, enrol.NewBearer{Scope: scope, Life: life, By: "test"}, made)
	if err != nil {
		g.t.Fatal(err)
	}
	return "Authorization: Bearer " + text, b.ID
}

// ready waits until the node answers, and returns a client that may do everything.
func (g *guarded) ready() *http.Client {
	g.t.Helper()
	admin := g.client(identity.Identity{Role: identity.Client, Name: "boss", Rights: identity.Admin})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if status, text := ask(g.t, admin, g.tls, "GET", "/v1/tokens"); status == http.StatusOK {
			return admin
		} else if time.Now().After(deadline) {
			g.t.Fatal(status, text)
		}
	}
}

func TestToken_AnyRoute_IsForItsRolesOnlyAndNowhereWritten(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	admin := g.ready()
	var secrets []string
	by := map[string]string{}
	for i, name := range identity.RightNames() {
		by[name[:1]], _ = g.bearer(enrol.Scope{Roles: identity.Rights(1 << i).String()}, time.Hour, time.Now())
		secrets = append(secrets, by[name[:1]][len(by[name[:1]])-26:])
	}
	expired, _ := g.bearer(enrol.Scope{Roles: "admin"}, time.Hour, time.Now().Add(-2*time.Hour))
	revoked, id := g.bearer(enrol.Scope{Roles: "admin"}, time.Hour, time.Now())
	if status, text := ask(t, admin, g.tls, "DELETE", "/v1/tokens/"+id); status != http.StatusOK {
		t.Fatal(status, text)
	}
	wrong := by["a"][:len(by["a"])-1] + "?"
	secrets = append(secrets, expired[len(expired)-26:], revoked[len(revoked)-26:], wrong[len(wrong)-26:])
	quiet := func(route, text string) {
		t.Helper()
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s: the answer has a token: %s", route, text)
			}
		}
	}
	for _, route := range g.someRoutes() {
		if strings.Contains(route, ":restore") || strings.Contains(route, "transfer") {
			continue // it would end what the other routes need; the rule below is the same
		}
		c := matrix()[route]
		for letter, header := range by {
			may := c[0] == "*" || strings.Contains(c[0], letter)
			status, text := ask(t, g.stranger(), g.tls, route, c[1], header)
			g.judge(route, "a token of "+letter, may, http.StatusForbidden, status, text)
			quiet(route, text)
			status, text = ask(t, g.stranger(), g.plain, route, c[1], header)
			g.judge(route, "a token over loopback of "+letter, may, http.StatusForbidden, status, text)
			quiet(route, text)
		}
		for what, header := range map[string]string{
			"an expired token": expired, "a revoked token": revoked, "a wrong token": wrong, "no bearer": "Authorization: Basic eDp5", "nothing": "Authorization: Bearer",
		} {
			for _, client := range []*http.Client{g.stranger(), admin} { // a token counts in place of a certificate
				status, text := ask(t, client, g.tls, route, c[1], header)
				g.judge(route, what, c[0] == "*", http.StatusUnauthorized, status, text)
				quiet(route, text)
			}
		}
	}
	quiet("the log", g.log.String())
	g.agg.bearers.writeUses(t.Context())
	_, text := ask(t, admin, g.tls, "GET", "/v1/tokens")
	if strings.Count(text, `"used_from":"127.0.0.1"`) != len(by) {
		t.Error("the last uses are not noted: ", text)
	}
}

func TestToken_FromAnotherMachineWithoutTLS_IsRefused(t *testing.T) {
	gate := &access.Gate{Tokens: &bearers{}}
	gate.Set(access.Rules{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/v1/records", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer bt1_0123456789abcdef_x")
	r.RemoteAddr = "192.0.2.7:4711"
	if p := gate.Who(r); p.Rights != 0 || !strings.Contains(p.Why, "TLS only") {
		t.Errorf("%+v", p)
	}
}

func TestToken_WithRows_ShowsThemOnly(t *testing.T) {
	g := secretive(t)
	all := g.client(identity.Identity{Role: identity.Client, Name: "all", Rights: identity.Admin})
	g.sow(all)
	for _, scope := range []enrol.Scope{
		{Roles: "read", Rows: []map[string][]string{{"group_id": {"mine"}}}},
		{Roles: "read", Person: "me"}, {Roles: "read", Person: "leader"},
	} {
		header, _ := g.bearer(scope, time.Hour, time.Now())
		status, text := ask(t, g.stranger(), g.tls, "GET", "/v1/records", header)
		if status != http.StatusOK || !strings.Contains(text, "mine-1") || strings.Contains(text, "secret") {
			t.Errorf("%+v: %d %s", scope, status, text)
		}
	}
	header, _ := g.bearer(enrol.Scope{Roles: "read", Person: "secret-pi"}, time.Hour, time.Now())
	if status, text := ask(t, g.stranger(), g.tls, "GET", "/v1/records", header); status != http.StatusOK || strings.Contains(text, "mine") || !strings.Contains(text, "secret-1") {
		t.Errorf("a principal investigator: %d %s", status, text)
	}
}
