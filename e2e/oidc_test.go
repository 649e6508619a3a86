//go:build e2e

package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/pages"
	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// people are those whom the provider of the tests knows.
var people = []rig.OIDCUser{
	{Name: "olga", Password: "pw-of-olga", Group: "operators"},
	{Name: "max", Password: "pw-of-max", Group: "atlas-managers"},
	{Name: "alice", Password: "pw-of-alice", Group: "students"},
}

// loginSite is a node at which people log in by a real provider.
type loginSite struct {
	t        *testing.T
	site     *site.Site
	node     *site.Aggregator
	provider *rig.OIDC
	roots    *x509.CertPool
}

func newLoginSite(t *testing.T) *loginSite {
	t.Helper()
	l := &loginSite{t: t, site: site.New(t), roots: x509.NewCertPool()}
	l.node = l.site.Node(site.NodeSpec{})
	l.provider = rig.NewOIDC(t, l.site.Address(), people, l.node.TLSURL+"/ui/login/callback")
	l.node.Access = fmt.Sprintf(`oidc {
    issuer        = %q
    client_id     = %q
    client_secret = %q
    groups_claim  = "family_name"
    group "operators" { roles = ["operate"] }
    group "atlas-managers" {
      roles = ["read"]
      rows  = [{ group_id = ["atlas"] }]
    }
    group "*" {
      roles = ["read"]
      own   = true
    }
  }`, l.provider.Issuer, l.provider.Client, l.provider.Secret)
	l.node.Configure()
	ca, err := os.ReadFile(l.node.Files.CA)
	if err != nil || !l.roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority: ", err)
	}
	l.node.Start()
	l.node.AwaitReady()
	record := func(id, user, group string) string {
		return fmt.Sprintf(`{"record_id":%q,"meta":{"user_id":[%q],"group_id":[%q]},"components":[{"name":"Cores","amount":1,"scores":[]}],"start_time":"2026-02-01T00:00:00Z","stop_time":"2026-02-01T01:00:00Z"}`, id, user, group)
	}
	l.node.Post("/records", "["+record("of-alice", "alice", "chem")+","+record("of-bob", "bob", "atlas")+","+record("of-carl", "carl", "chem")+"]")
	return l
}

// person is a client with cookies, and the addresses that it was sent to.
type person struct {
	*http.Client
	l    *loginSite
	path []*url.URL
}

func (l *loginSite) person() *person {
	l.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	p := &person{l: l}
	p.Client = &http.Client{
		Jar: jar, Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error { p.path = append(p.path, r.URL); return nil },
	}
	l.t.Cleanup(p.CloseIdleConnections)
	return p
}

// get returns the status and the text of a page, and where it is.
func (p *person) get(address string) (int, string, *url.URL) {
	p.l.t.Helper()
	resp, err := p.Get(address)
	if err != nil {
		p.l.t.Fatal(err)
	}
	return p.read(resp)
}

func (p *person) read(resp *http.Response) (int, string, *url.URL) {
	p.l.t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.l.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Request.URL
}

func (p *person) post(address string, form url.Values) (int, string, *url.URL) {
	p.l.t.Helper()
	resp, err := p.PostForm(address, form)
	if err != nil {
		p.l.t.Fatal(err)
	}
	return p.read(resp)
}

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// fill fills in the form of the provider that a page has.
func (p *person) fill(form string, at *url.URL, who rig.OIDCUser) (int, string, *url.URL) {
	p.l.t.Helper()
	id := hiddenID.FindStringSubmatch(form)
	if id == nil {
		p.l.t.Fatalf("%s has no form to log in: %s", at, form)
	}
	return p.post(strings.TrimSuffix(p.l.provider.Issuer, "/")+"/login/username", url.Values{"id": {id[1]}, "username": {who.Name}, "password": {who.Password}})
}

// login logs in through the pages, and returns what it ends at.
func (p *person) login(who rig.OIDCUser, to string) (int, string, *url.URL) {
	p.l.t.Helper()
	_, text, _ := p.get(p.l.node.TLSURL + "/ui/login?" + url.Values{"to": {to}}.Encode())
	if !strings.Contains(text, `href="/ui/login/oidc?to=`+strings.ToLower(url.QueryEscape(to))) {
		p.l.t.Fatalf("the page to log in does not lead to the provider: %s", text)
	}
	_, form, at := p.get(p.l.node.TLSURL + "/ui/login/oidc?" + url.Values{"to": {to}}.Encode())
	return p.fill(form, at, who)
}

func TestOIDC_RealProvider_GivesRolesAndRowsByGroup(t *testing.T) {
	t.Parallel()
	l := newLoginSite(t)
	seen := map[string][]string{"olga": {"of-alice", "of-bob", "of-carl"}, "max": {"of-bob"}, "alice": {"of-alice"}}
	sessions := map[string]*person{}
	var secrets []string
	for _, who := range people {
		p := l.person()
		sessions[who.Name] = p
		if status, _, _ := p.get(l.node.TLSURL + "/v1/records"); status != http.StatusUnauthorized {
			t.Fatalf("before the login: %d", status)
		}
		_, form, at := p.get(l.node.TLSURL + "/ui/login/oidc")
		if _, text, at := p.fill(form, at, rig.OIDCUser{Name: who.Name, Password: "another"}); !strings.Contains(text, "password") {
			t.Fatalf("%s took a wrong password: %s", at, text)
		}
		status, text, at := p.login(who, "/v1/records")
		if status != http.StatusOK || at.String() != l.node.TLSURL+"/v1/records" {
			t.Fatalf("the login of %s ends at %s: %d %s", who.Name, at, status, text)
		}
		for _, id := range []string{"of-alice", "of-bob", "of-carl"} {
			if want := strings.Contains(strings.Join(seen[who.Name], " "), id); strings.Contains(text, `"`+id+`"`) != want {
				t.Errorf("%s sees %s: %t, want %t", who.Name, id, !want, want)
			}
		}
		check, _, _ := p.post(l.node.TLSURL+"/v1/check", nil)
		if may := who.Name == "olga"; (check == http.StatusForbidden) == may {
			t.Errorf("POST /v1/check by %s: %d", who.Name, check)
		}
		if status, _, _ := p.get(l.node.TLSURL + "/v1/tokens"); status != http.StatusForbidden {
			t.Errorf("GET /v1/tokens by %s: %d", who.Name, status)
		}
		secrets = append(secrets, who.Password)
		challenged := false
		for _, u := range p.path {
			q := u.Query()
			challenged = challenged || q.Get("code_challenge_method") == "S256" && q.Get("code_challenge") != ""
			if code := q.Get("code"); code != "" {
				secrets = append(secrets, code)
			}
		}
		if !challenged {
			t.Errorf("the login of %s is without PKCE: %s", who.Name, p.path)
		}
		node, _ := url.Parse(l.node.TLSURL)
		for _, c := range p.Jar.Cookies(node) {
			secrets = append(secrets, c.Value)
		}
	}
	l.node.Restart() // a session is one of the cluster
	l.node.AwaitReady()
	for name, p := range sessions {
		l.site.Eventually("the session of "+name+" outlives a restart", func() (bool, string) {
			status, text, _ := p.get(l.node.TLSURL + "/v1/records")
			return status == http.StatusOK, text
		})
		_, text, _ := p.post(l.node.TLSURL+"/ui/logout", nil)
		leave := regexp.MustCompile(`url=([^"]+)"`).FindStringSubmatch(text)
		if leave == nil {
			t.Fatalf("the logout of %s does not lead to the provider: %s", name, text)
		}
		if status, text, _ := p.get(strings.ReplaceAll(leave[1], "&amp;", "&")); status != http.StatusOK || !strings.Contains(text, "signed out") {
			t.Errorf("the logout of %s at the provider: %d %s", name, status, text)
		}
		if status, _, _ := p.get(l.node.TLSURL + "/v1/records"); status != http.StatusUnauthorized {
			t.Errorf("after the logout of %s: %d", name, status)
		}
	}
	log := l.node.Log(1 << 20)
	for _, secret := range secrets {
		if len(secret) > 6 && strings.Contains(log, secret) {
			t.Errorf("the log has the secret %s", secret)
		}
	}
}

func TestOIDC_RealProvider_CodeOfAnotherClientOrBrowser_OpensNoSession(t *testing.T) {
	t.Parallel()
	l := newLoginSite(t)
	for what, change := range map[string]func(q url.Values){
		"another audience": func(q url.Values) { q.Set("client_id", l.provider.Other) },
		"another PKCE":     func(q url.Values) { q.Set("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM") },
		"another nonce":    func(q url.Values) { q.Set("nonce", "another") },
		"another state":    func(q url.Values) { q.Set("state", "another") },
	} {
		p := l.person()
		follow := p.CheckRedirect
		p.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		resp, err := p.Get(l.node.TLSURL + "/ui/login/oidc")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		p.CheckRedirect = follow
		to, err := resp.Location()
		if err != nil {
			t.Fatal(err)
		}
		q := to.Query()
		change(q)
		to.RawQuery = q.Encode()
		_, form, at := p.get(to.String())
		status, text, at := p.fill(form, at, people[0])
		if status != http.StatusBadRequest || !strings.HasPrefix(at.String(), l.node.TLSURL) || !strings.Contains(text, "The login failed") {
			t.Errorf("%s: %s answers %d %s", what, at, status, text)
		}
		if status, _, _ := p.get(l.node.TLSURL + "/v1/records"); status != http.StatusUnauthorized {
			t.Errorf("%s opened a session: %d", what, status)
		}
	}
}

func TestOIDC_RealProvider_UserWhoseGroupsHaveNoRole_IsToldAndOpensNoSession(t *testing.T) {
	t.Parallel()
	l := newLoginSite(t)
	l.node.Access = strings.Replace(l.node.Access, `group "*"`, `group "teachers"`, 1)
	l.node.Configure()
	l.node.Restart()
	l.node.AwaitReady()
	p := l.person()
	status, text, at := p.login(people[2], "/v1/records")
	if status != http.StatusBadRequest || !strings.Contains(text, "no group of alice has a role here") {
		t.Errorf("%s answers %d %s", at, status, text)
	}
	node, _ := url.Parse(l.node.TLSURL)
	if cookies := p.Jar.Cookies(node); len(cookies) > 0 {
		t.Error(cookies)
	}
}

// A page allows its forms to lead to this server only, and a browser holds the redirects of
// a form to that.
func TestOIDC_RealProvider_InChromium_LogsInAndOut(t *testing.T) {
	t.Parallel()
	l := newLoginSite(t)
	b := pages.NewTrustingBrowser(t)
	tab := b.Tab(t, l.node.TLSURL)
	tab.Load("/ui/login?to=/ui/records", http.StatusOK)
	tab.Follow("a", "Log in")
	pages.Eval[bool](tab, `(() => {
  document.querySelector("#username").value = "alice";
  document.querySelector("#password").value = "pw-of-alice";
  document.querySelector("form").submit();
  return true;
})()`)
	tab.Await(`location.pathname === "/ui/records"`)
	tab.Ready()
	if text := tab.HTML(); !strings.Contains(text, "of-alice") || strings.Contains(text, "of-bob") {
		t.Errorf("the records of alice: %s", text)
	}
	tab.Follow("footer button", "Log out")
	tab.Await(`location.pathname === "/logged-out" && document.body.textContent.includes("signed out")`)
	tab.Load("/ui/records", http.StatusOK)
	tab.Await(`location.pathname === "/ui/login"`)
}
