package daemon

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// post sends a form as a page of this server does.
func (g *guarded) post(c *http.Client, path string, form url.Values) (int, *http.Response) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.tls+path, strings.NewReader(form.Encode()))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode, resp
}

func TestPassword_SessionOfAnyRole_MayWhatTheUserMayUntilItEnds(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	header, _ := "", g.ready()
	admin, err := client.New(client.Options{Address: g.tls, TLS: g.client(identity.Identity{Role: identity.Client, Name: "boss", Rights: identity.Admin}).Transport.(*http.Transport).TLSClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	const secret = "correct horse battery"
	for i, name := range identity.RightNames() {
		if _, err := admin.AddUser(t.Context(), v1.NewUser{Name: name, Password: secret, Roles: name}); err != nil {
			t.Fatal(err)
		}
		c := still(g.browser())
		status, resp := g.post(c, "/ui/login", url.Values{"name": {name}, "password": {secret}, "to": {"//evil.example"}})
		if status != http.StatusSeeOther || resp.Header.Get("Location") != "/" {
			t.Fatalf("%s: %d %s", name, status, resp.Header.Get("Location"))
		}
		for _, cookie := range resp.Cookies() {
			if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode {
				t.Errorf("the cookie %+v", cookie)
			}
			header = "Cookie: " + cookie.Name + "=" + cookie.Value
		}
		letter := identity.RightNames()[i][:1]
		for _, route := range g.someRoutes() {
			if strings.Contains(route, ":restore") || strings.Contains(route, "transfer") || strings.Contains(route, "logout") {
				continue
			}
			m := matrix()[route]
			status, text := ask(t, g.stranger(), g.tls, route, m[1], header)
			g.judge(route, "a user with "+letter, m[0] == "*" || strings.Contains(m[0], letter), http.StatusForbidden, status, text)
			if method, _, _ := strings.Cut(route, " "); method != http.MethodGet {
				status, text = ask(t, g.stranger(), g.tls, route, m[1], header, "Sec-Fetch-Site: cross-site")
				g.judge(route, "a page of another site with a session of "+letter, false, http.StatusForbidden, status, text)
			}
		}
		if i%2 == 0 {
			_, err = admin.SetPassword(t.Context(), name, v1.NewPassword{Password: secret + "!"})
		} else {
			_, err = admin.RemoveUser(t.Context(), name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if status, text := ask(t, g.stranger(), g.tls, "GET", "/v1/openapi.yaml", header); status != http.StatusUnauthorized {
			t.Errorf("%s: the session of before opens: %d %.200s", name, status, text)
		}
	}
	list, err := admin.Users(t.Context())
	if err != nil || len(list.Users) != 3 {
		t.Error(list, err)
	}
	for _, bad := range []v1.NewUser{{Name: "monitor", Password: secret, Roles: "read"}, {Name: "x", Password: "short", Roles: "read"}, {Name: "../x", Password: secret, Roles: "read"}, {Name: "x", Password: secret}} {
		if _, err := admin.AddUser(t.Context(), bad); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if log := g.log.String(); strings.Contains(log, secret) || strings.Contains(log, "bs1_") {
		t.Error("the log has a password or a cookie")
	}
	logins, err := admin.Audit(t.Context(), &v1.AuditQuery{Kind: "login"})
	if err != nil || len(logins.Entries) != len(identity.RightNames()) || !strings.HasPrefix(logins.Entries[0].Who, "user/") || logins.Entries[0].Result != "logged in by password" {
		t.Errorf("logins in the audit log: %+v %v", logins, err)
	}
	all, err := admin.Audit(t.Context(), &v1.AuditQuery{Limit: 100_000})
	if err != nil || strings.Contains(fmt.Sprint(all), secret) || strings.Contains(fmt.Sprint(all), "bs1_") {
		t.Errorf("the audit log has a password or a cookie: %v", err)
	}
}

func TestPassword_WrongTooOften_WaitsWhoeverAsks(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	g.ready()
	c := still(g.browser())
	for range 100 {
		status, _ := g.post(c, "/ui/login", url.Values{"name": {"alice"}, "password": {"wrong password"}})
		if status == http.StatusTooManyRequests {
			return
		} else if status != http.StatusUnauthorized {
			t.Fatal(status)
		}
	}
	t.Error("a hundred wrong passwords are looked at")
}
