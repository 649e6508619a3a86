package daemon

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// logIn types a token at the page to log in, and returns the status, the text of the answer
// and the header of the session.
func (g *guarded) logIn(base, token string) (status int, text, header string) {
	g.t.Helper()
	form := url.Values{"token": {token}, "to": {"//evil.example"}}
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, base+"/ui/login", strings.NewReader(form.Encode()))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := g.stranger().Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	status, text = readAnswer(resp)
	for _, cookie := range resp.Cookies() {
		if !cookie.HttpOnly || cookie.Secure != strings.HasPrefix(base, "https:") || cookie.SameSite != http.SameSiteLaxMode || resp.Header.Get("Location") != "/" {
			g.t.Errorf("the cookie %+v, to %s", cookie, resp.Header.Get("Location"))
		}
		header = "Cookie: " + cookie.Name + "=" + cookie.Value
	}
	return status, text, header
}

func TestTokenSession_AnyRoute_MayWhatTheTokenMayUntilItIsRevoked(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	admin := g.ready()
	var secrets []string
	for i, name := range identity.RightNames() {
		bearer, id := g.bearer(enrol.Scope{Roles: name}, time.Hour, time.Now())
		token := strings.TrimPrefix(bearer, "Authorization: Bearer ")
		status, text, header := g.logIn(g.tls, " "+token+"\r\n")
		if status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", name, status, text)
		}
		status, text, plain := g.logIn(g.plain, token)
		if status != http.StatusSeeOther {
			t.Fatalf("%s over loopback: %d %s", name, status, text)
		}
		secrets = append(secrets, token[len(token)-26:], header[len(header)-26:], plain[len(plain)-26:])
		letter := name[:1]
		looks, refusal := map[string]string{"monitor": "m", "read": "r", "operate": "mr", "admin": "mr"}[name], http.StatusForbidden
		if looks == "" {
			refusal = http.StatusUnauthorized
		}
		for _, route := range g.someRoutes() {
			if strings.Contains(route, ":restore") || strings.Contains(route, "transfer") || strings.Contains(route, "logout") {
				continue // they would end what the other routes need
			}
			m := matrix()[route]
			status, text := ask(t, g.stranger(), g.tls, route, m[1], header)
			g.judge(route, "a session of a token with "+name, m[0] == "*" || strings.Contains(m[0], letter), http.StatusForbidden, status, text)
			status, text = ask(t, g.stranger(), g.plain, route, m[1], plain)
			g.judge(route, "a session over loopback of a token with "+name, m[0] == "*" || strings.ContainsAny(m[0], looks), refusal, status, text)
			if method, _, _ := strings.Cut(route, " "); method != http.MethodGet {
				status, text = ask(t, g.stranger(), g.tls, route, m[1], header, "Sec-Fetch-Site: cross-site")
				g.judge(route, "a page of another site with a session of "+name, false, http.StatusForbidden, status, text)
			}
		}
		if i%2 == 0 {
			if status, text := ask(t, g.stranger(), g.tls, "POST", "/ui/logout", header); status != http.StatusSeeOther {
				t.Errorf("%s: log out: %d %s", name, status, text)
			}
			if status, _ := ask(t, g.stranger(), g.tls, "GET", "/v1/openapi.yaml", bearer); status != http.StatusOK {
				t.Errorf("%s: the logout has taken the token: %d", name, status)
			}
		}
		if status, text := ask(t, admin, g.tls, "DELETE", "/v1/tokens/"+id); status != http.StatusOK {
			t.Fatal(status, text)
		}
		for base, header := range map[string]string{g.tls: header, g.plain: plain} {
			if status, text := ask(t, g.stranger(), base, "GET", "/v1/openapi.yaml", header); status != http.StatusUnauthorized {
				t.Errorf("%s: the session of a revoked token opens %s: %d %.200s", name, base, status, text)
			}
		}
		if status, text, header := g.logIn(g.tls, token); status != http.StatusUnauthorized || header != "" || !strings.Contains(text, "Login failed: the token was revoked: ask an administrator") {
			t.Errorf("%s: a revoked token: %d %s", name, status, text)
		}
	}
	g.agg.bearers.writeUses(t.Context())
	_, text := ask(t, admin, g.tls, "GET", "/v1/tokens")
	if strings.Count(text, `"used_from":"127.0.0.1"`) != len(identity.RightNames()) {
		t.Error("the last uses are not noted: ", text)
	}
	logins := auditLog(t, admin, g.tls, "kind=login")
	begun := 0
	for _, e := range logins {
		if e.Result == "logged in by token" && e.Who != "" && e.From != "" {
			begun++
		}
	}
	if begun != 2*len(identity.RightNames()) {
		t.Errorf("%d logins in the audit log: %+v", begun, logins)
	}
	noted := fmt.Sprint(auditLog(t, admin, g.tls, ""))
	for _, secret := range secrets {
		if strings.Contains(g.log.String(), secret) || strings.Contains(noted, secret) {
			t.Error("a log has a token or a cookie")
		}
	}
}

func TestToken_ExpiredWrongOrOfAnotherCluster_IsRefusedInOneSentence(t *testing.T) {
	g, other := newGuarded(t, access.Rules{}), newGuarded(t, access.Rules{})
	g.ready()
	other.ready()
	bearer := func(g *guarded, made time.Time) string {
		header, _ := g.bearer(enrol.Scope{Roles: "admin"}, time.Hour, made)
		return strings.TrimPrefix(header, "Authorization: Bearer ")
	}
	own := bearer(g, time.Now())
	for token, why := range map[string]string{
		bearer(other, time.Now()):                        "token not found",
		other.token(other.admin(), "agent", "").String(): "this token is for a machine that joins",
		g.token(g.admin(), "aggregator", "").String():    "this token is for a machine that joins",
		own[:len(own)-1] + "?":                           "token not found",
		own[:len(own)-1]:                                 "token not found",
		own + own:                                        "token not found",
		"<script>":                                       "token not found: a token of the API begins with bt1_",
		bearer(g, time.Now().Add(-2*time.Hour)):          "the token has expired",
	} {
		status, text, header := g.logIn(g.tls, token)
		if want := `role="alert">Login failed: ` + why + ": " + access.AskForAnother + ".</p>"; status != http.StatusUnauthorized || header != "" || !strings.Contains(text, want) || strings.Contains(text, token) {
			t.Errorf("%s at the page: %d %s", why, status, text)
		}
		status, text = ask(t, g.stranger(), g.tls, "GET", "/v1/records", "Authorization: Bearer "+token)
		if want := why + ": " + access.AskForAnother; status != http.StatusUnauthorized || !strings.Contains(text, want) || strings.Contains(text, token) {
			t.Errorf("%s in the header: %d %s", why, status, text)
		}
	}
}

// Someone writes a token where it does not belong.
func TestToken_AnywhereInARequest_IsInNoLog(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	admin := g.ready()
	header, _ := g.bearer(enrol.Scope{Roles: "admin"}, time.Hour, time.Now())
	machine := g.token(g.admin(), "agent", "").String()
	bearer := strings.TrimPrefix(header, "Authorization: Bearer ")
	_, _, cookie := g.logIn(g.tls, bearer)
	_, session, _ := strings.Cut(cookie, "=")
	secrets := map[string]string{bearer: bearer[len(bearer)-20:], machine: machine[20:40], session: session[len(session)-20:]}
	for _, token := range slices.Sorted(maps.Keys(secrets)) {
		g.logIn(g.tls, token)
		g.logIn(g.plain, token)
		for _, client := range []*http.Client{admin, g.stranger()} {
			for _, route := range g.someRoutes() {
				if strings.Contains(route, ":restore") || strings.Contains(route, "transfer") {
					continue
				}
				path := strings.Replace(matrix()[route][1], "/x", "/"+token, 1)
				path, _, _ = strings.Cut(path, "?")
				for _, query := range []string{"", "?token=" + token, "?" + token, "?id=" + token + "&record_id=" + token + "&code=" + token + "&state=" + token + "&to=/" + token} {
					ask(t, client, g.tls, route, path+query)
				}
			}
			for _, path := range []string{"/", "/ui/", "/v1/", "/v1/tokens/", "/v1/agents/", "/ui/login/", "/record/"} {
				for _, method := range []string{"GET", "POST", "DELETE", "PUT", "OPTIONS"} {
					ask(t, client, g.tls, method, path+token, "Authorization: Basic "+token)
					ask(t, client, g.plain, method, path+token, "Origin: https://"+token, "Cookie: x="+token)
				}
			}
		}
		if _, text := ask(t, admin, g.tls, "DELETE", "/v1/tokens/"+token); strings.Contains(text, secrets[token]) || !strings.Contains(text, "token not found") {
			t.Errorf("a whole token as the id to revoke: %s", text)
		}
	}
	audited := fmt.Sprint(auditLog(t, admin, g.tls, ""))
	if !strings.Contains(audited, "***") {
		t.Error("no entry of the audit log has a token's place, so this test asks nothing of it")
	}
	log := g.log.String() + audited
	for _, secret := range secrets {
		if at := strings.Index(log, secret); at >= 0 {
			t.Errorf("the log has a token: %s", fmt.Sprintf("%.400s", log[max(0, at-200):]))
		}
	}
	if !strings.Contains(log, "***") {
		t.Error("no line of the log has a token's place, so this test asks nothing")
	}
}
