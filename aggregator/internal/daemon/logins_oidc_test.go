package daemon

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// provider is one of OpenID Connect that knows one person and asks for no password.
type provider struct {
	t      *testing.T
	server *httptest.Server
	key    *rsa.PrivateKey
	claims map[string]any
	ask    url.Values // of the last authorization
	down   atomic.Bool
}

func newProvider(t *testing.T, claims map[string]any) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, claims: claims}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		at := p.server.URL
		reply(w, map[string]any{"issuer": at, "authorization_endpoint": at + "/auth", "token_endpoint": at + "/token", "jwks_uri": at + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /auth", func(w http.ResponseWriter, r *http.Request) {
		p.ask = r.URL.Query()
		http.Redirect(w, r, p.ask.Get("redirect_uri")+"?"+url.Values{"code": {"the-code"}, "state": {p.ask.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if r.PostFormValue("code") != "the-code" || base64.RawURLEncoding.EncodeToString(sum[:]) != p.ask.Get("code_challenge") {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		reply(w, map[string]any{"access_token": "at", "token_type": "Bearer", "id_token": p.token()})
	})
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	p.server.Start()
	t.Cleanup(p.server.Close)
	return p
}

// token is the signed token of the last authorization.
func (p *provider) token() string {
	all := map[string]any{"iss": p.server.URL, "aud": "bursar", "sub": "1", "nonce": p.ask.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, p.claims)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k"}}, nil)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	body, _ := json.Marshal(all)
	signed, err := signer.Sign(body)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	text, _ := signed.CompactSerialize()
	return text
}

// rules let people in by a provider: by each role a group, and everyone to their own.
func (p *provider) rules() access.Rules {
	o := &access.OIDC{Issuer: p.server.URL, ClientID: "bursar", Secret: "oidc-secret", Scopes: []string{"profile"}, UserClaim: "preferred_username", GroupsClaim: "groups"}
	for i, name := range identity.RightNames() {
		o.Groups = append(o.Groups, access.GroupClient{Group: "g-" + name, Rights: 1 << i, Rows: access.AllRows()})
	}
	o.Groups = append(o.Groups, access.GroupClient{Group: access.AnyClient, Rights: identity.Read, Own: true})
	return access.Rules{OIDC: o}
}

// browser is a client with cookies, which trusts the authority and follows redirects.
func (g *guarded) browser() *http.Client {
	c := g.stranger()
	jar, err := cookiejar.New(nil)
	if err != nil {
		g.t.Fatal(err)
	}
	c.Jar, c.CheckRedirect = jar, nil
	return c
}

// still makes a browser follow no redirects.
func still(c *http.Client) *http.Client {
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

func TestOIDC_SessionOfAnyRole_MayWhatItsGroupMay(t *testing.T) {
	p := newProvider(t, nil)
	g := newGuarded(t, p.rules())
	g.ready()
	for i, name := range identity.RightNames() {
		p.claims = map[string]any{"preferred_username": "alice", "groups": []string{"other", "g-" + name}}
		c := g.browser()
		if status, text := ask(t, c, g.tls, "GET", "/ui/login/oidc?to=/ui/static/style.css"); status != http.StatusOK || !strings.Contains(text, "{") {
			t.Fatalf("%s: %d %.300s", name, status, text)
		}
		still(c)
		letter := identity.RightNames()[i][:1]
		for _, route := range g.someRoutes() {
			if strings.Contains(route, ":restore") || strings.Contains(route, "transfer") || strings.Contains(route, "logout") {
				continue
			}
			m := matrix()[route]
			status, text := ask(t, c, g.tls, route, m[1])
			g.judge(route, "a session of "+letter, m[0] == "*" || strings.Contains(m[0], letter), http.StatusForbidden, status, text)
			if method, _, _ := strings.Cut(route, " "); method != http.MethodGet {
				status, text = ask(t, c, g.tls, route, m[1], "Origin: https://evil.example")
				g.judge(route, "a page of another site with a session of "+letter, false, http.StatusForbidden, status, text)
			}
		}
		status, text := ask(t, c, g.tls, "POST", "/ui/logout")
		if status != http.StatusSeeOther {
			t.Errorf("log out: %d %s", status, text)
		}
		if status, _ = ask(t, c, g.tls, "GET", "/v1/openapi.yaml"); status != http.StatusUnauthorized {
			t.Errorf("after the logout: %d", status)
		}
	}
	log := g.log.String()
	for _, secret := range []string{"oidc-secret", "the-code", "bs1_", p.ask.Get("nonce")} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

func TestOIDC_LoginThatIsForgedOrStolen_OpensNoSession(t *testing.T) {
	p := newProvider(t, map[string]any{"preferred_username": "alice", "groups": "g-admin"})
	g := newGuarded(t, p.rules())
	g.ready()
	back := func(c *http.Client) string { // where the provider sends the browser
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.tls+"/ui/login/oidc", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := still(c).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, resp.Header.Get("Location"), nil); err != nil {
			t.Fatal(err)
		}
		if resp, err = c.Do(req); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return strings.TrimPrefix(resp.Header.Get("Location"), g.tls)
	}
	for what, tamper := range map[string]func(c *http.Client, path string) (*http.Client, string){
		"another browser": func(_ *http.Client, path string) (*http.Client, string) { return still(g.browser()), path },
		"another state": func(c *http.Client, path string) (*http.Client, string) {
			return c, strings.Replace(path, "state=", "state=x", 1)
		},
		"another code": func(c *http.Client, path string) (*http.Client, string) {
			return c, strings.Replace(path, "the-code", "a-code", 1)
		},
		"a refusal":     func(c *http.Client, path string) (*http.Client, string) { return c, path + "&error=access_denied" },
		"another nonce": func(c *http.Client, path string) (*http.Client, string) { p.ask.Set("nonce", "x"); return c, path },
		"another PKCE": func(c *http.Client, path string) (*http.Client, string) {
			p.ask.Set("code_challenge", "x")
			return c, path
		},
		"another audience": func(c *http.Client, path string) (*http.Client, string) { p.claims["aud"] = "other"; return c, path },
		"an ended token":   func(c *http.Client, path string) (*http.Client, string) { p.claims["exp"] = 1; return c, path },
		"a token of no user": func(c *http.Client, path string) (*http.Client, string) {
			p.claims["preferred_username"] = ""
			return c, path
		},
	} {
		p.claims = map[string]any{"preferred_username": "alice", "groups": "g-admin"}
		c := g.browser()
		path := back(c)
		c, path = tamper(c, path)
		if status, text := ask(t, c, g.tls, "GET", path); status != http.StatusBadRequest {
			t.Errorf("%s: %d %.300s", what, status, text)
		}
		if status, _ := ask(t, c, g.tls, "GET", "/v1/openapi.yaml"); status != http.StatusUnauthorized {
			t.Errorf("%s opened a session: %d", what, status)
		}
	}
	p.claims = map[string]any{"preferred_username": "alice", "groups": "g-admin"}
	c := g.browser()
	path := back(c)
	if status, text := ask(t, c, g.tls, "GET", path); status != http.StatusSeeOther {
		t.Errorf("the login itself: %d %s", status, text)
	}
	if status, _ := ask(t, c, g.tls, "GET", path); status != http.StatusBadRequest {
		t.Errorf("the same login again: %d", status)
	}
}

func TestOIDC_ProviderDown_TheNodeSaysSoAndPeopleLogInLater(t *testing.T) {
	p := newProvider(t, map[string]any{"preferred_username": "alice"})
	p.down.Store(true)
	g := newGuarded(t, p.rules())
	admin := g.ready()
	c := g.browser()
	if status, text := ask(t, c, g.tls, "GET", "/ui/login/oidc"); status != http.StatusServiceUnavailable || !strings.Contains(text, "Try again") {
		t.Errorf("the login: %d %s", status, text)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, text := ask(t, admin, g.tls, "GET", "/v1/status"); strings.Contains(text, "login-provider") {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("the status does not say so: ", text)
		}
	}
	p.down.Store(false)
	g.agg.login.Ask()
	if status, text := ask(t, c, g.tls, "GET", "/", "Accept: text/html"); status != http.StatusOK || !strings.Contains(text, "/ui/login/oidc") {
		t.Errorf("a page without a session: %d %.500s", status, text)
	}
	if status, text := ask(t, c, g.tls, "GET", "/ui/login/oidc?to=/v1/openapi.yaml"); status != http.StatusOK || !strings.Contains(text, "openapi") {
		t.Errorf("the login later: %d %.300s", status, text)
	}
	if status, text := ask(t, c, g.tls, "GET", "/v1/capacity"); status != http.StatusForbidden {
		t.Errorf("who sees their own records sees %d %.300s", status, text)
	}
	for _, to := range []string{"//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"} {
		c := g.browser()
		if status, text := ask(t, c, g.tls, "GET", "/ui/login/oidc?"+url.Values{"to": {to}}.Encode()); status == 0 {
			t.Errorf("%s: %s", to, text)
		}
	}
}
