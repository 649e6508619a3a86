//go:build e2e

package pages

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/bursar-accounting/bursar/e2e/site"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// typeToken types a token at the page to log in, key by key, and sends it.
func typeToken(tab *Tab, token string) {
	tab.t.Helper()
	tab.mu.Lock()
	tab.missing = tab.base.JoinPath("/ui/login").String() // a refusal is no 200
	tab.mu.Unlock()
	Eval[bool](tab, "window.left = true")
	get(tab, "type a token", chromedp.SendKeys("#token", token+"\r"))
	tab.Await("!window.left")
	tab.Ready()
}

func TestLogin_TokenTypedInABrowser_OpensThePagesOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	node := s.Node(site.NodeSpec{})
	node.Start()
	node.AwaitReady()
	node.Post("/records", `[{"record_id":"r1","meta":{"user_id":["alice"],"group_id":["atlas"]},"components":[{"name":"Cores","amount":1,"scores":[]}],"start_time":"2026-02-01T00:00:00Z","stop_time":"2026-02-01T01:00:00Z"}]`)
	create := func(args ...string) string {
		t.Helper()
		out, err := node.Bursar(append([]string{"token", "create", "-role", "read"}, args...)...)
		for word := range strings.FieldsSeq(out) {
			if err == nil && strings.HasPrefix(word, "bt1_") {
				return word
			}
		}
		t.Fatal(out, err)
		return ""
	}
	short, good := create("-name", "short", "-ttl", "1m"), create("-name", "good")
	tab := NewTrustingBrowser(t).Tab(t, node.TLSURL)
	tab.Look("light", 1280, 900)

	tab.Refused("/ui/records")
	refused := func(what, token, why string) {
		t.Helper()
		typeToken(tab, token)
		if page := Eval[string](tab, "document.body.innerText"); !strings.Contains(page, why) || strings.Contains(tab.HTML(), token) {
			t.Errorf("%s, want %q without the token: %s", what, why, page)
		}
		if Eval[string](tab, "document.cookie") != "" || count(tab, "#token") != 1 {
			t.Errorf("%s: the form is not there, or a script reads the cookie", what)
		}
	}
	tab.Refused("/ui/login?to=" + url.QueryEscape("/ui/records"))
	refused("a wrong token", good[:len(good)-4]+"AAAA", "Login failed: token not found")
	refused("what is no token", "my password", "Login failed: ")

	typeToken(tab, good) // the form still knows where it leads
	if at := Eval[string](tab, "location.pathname"); at != "/ui/records" || !strings.Contains(tab.HTML(), "atlas") {
		t.Errorf("the token leads to %s: %s", at, tab.HTML())
	}
	if Eval[string](tab, "document.cookie") != "" {
		t.Error("a script reads the cookie of the session")
	}
	tab.Open("/", 200) // the session goes on
	tab.Follow("footer button", "Log out")
	tab.Refused("/ui/records")
	if strings.Contains(tab.HTML(), "atlas") {
		t.Error("the session goes on after the logout")
	}

	s.Eventually("the short token has expired", func() (bool, string) {
		out, err := node.Bursar("token", "list", "-format", "json")
		var list v1.Tokens
		if err == nil {
			err = json.Unmarshal([]byte(out), &list)
		}
		for _, k := range list.Tokens {
			if err == nil && k.Name == "short" {
				return k.State == "expired", out
			}
		}
		return false, out
	})
	tab.Refused("/ui/login")
	refused("an expired token", short, "Login failed: the token has expired")
	if problems := tab.Problems(); len(problems) > 0 {
		t.Error(problems)
	}
}
