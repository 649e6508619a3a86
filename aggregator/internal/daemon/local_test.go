package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/local"
)

// unguarded is an aggregator with a unix socket and a plain listener.
type unguarded struct {
	t      *testing.T
	agg    *Aggregator
	plain  string
	client *http.Client // of the socket
}

func newUnguarded(t *testing.T, rules access.Rules) *unguarded {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "api.sock")
	socket, err := local.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	o := &unguarded{t: t, plain: "http://" + plain.Addr().String(), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return local.Dial(ctx, path)
		}},
	}}
	o.agg, err = Open(Settings{Name: "agg1", DataDir: t.TempDir(), MinFree: 1 << 20, Local: socket, Plain: []net.Listener{plain}, Access: rules, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- o.agg.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return o
}

func TestSocket_AnyRoute_IsForItsUserAndNoPageOfAnotherSite(t *testing.T) {
	o := newUnguarded(t, access.Rules{Plain: identity.Monitor | identity.Read | identity.Write, Hosts: []string{"agg1.example.org"}})
	plain := &http.Client{CheckRedirect: o.client.CheckRedirect, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, route := range o.agg.server.Served() {
		path, need := matrix()[route][1], access.Routes()[route]
		method, _, _ := strings.Cut(route, " ")
		if strings.Contains(route, ":restore") || strings.Contains(route, "transfer") {
			continue // it would end what the other routes need; the rule below is the same
		}
		refused := func(what string, status int, want int) {
			t.Helper()
			if need.Hold && (status == 0) || !need.Hold && status == want {
				return
			}
			t.Errorf("%s %s: answered with %d", route, what, status)
		}
		status, text := ask(t, o.client, "http://localhost", route, path)
		if status == 0 || status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusMisdirectedRequest {
			t.Errorf("%s over the socket: %d %s", route, status, text)
		}
		for _, via := range []struct {
			name   string
			client *http.Client
			base   string
		}{{"plain", plain, o.plain}, {"over the socket", o.client, "http://localhost"}} {
			if !strings.HasSuffix(route, " /health_check") {
				status, _ = ask(t, via.client, via.base, route, path, "Host: evil.example", "Origin: http://evil.example")
				refused(via.name+" for another host", status, http.StatusMisdirectedRequest)
			}
			if method == http.MethodGet {
				continue
			}
			for _, header := range []string{"Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
				status, _ = ask(t, via.client, via.base, route, path, header)
				refused(via.name+" from "+header, status, http.StatusForbidden)
			}
		}
	}
	if status, text := ask(t, plain, o.plain, "GET", "/v1/config"); status != http.StatusForbidden {
		t.Errorf("the configuration at a plain address: %d %s", status, text)
	}
	if status, text := ask(t, plain, o.plain, "GET", "/v1/records", "Host: agg1.example.org:8000"); status != http.StatusOK {
		t.Errorf("the name of the configuration: %d %s", status, text)
	}
}

func TestLogin_TokenOfTheSocket_OpensOneBrowserThatChangesNothing(t *testing.T) {
	o := newUnguarded(t, access.Rules{})
	status, text := ask(t, o.client, "http://localhost", "POST", "/v1/sessions")
	var link struct{ URL string }
	if err := json.Unmarshal([]byte(text), &link); err != nil || status != http.StatusCreated || !strings.HasPrefix(link.URL, o.plain+"/ui/login?token=") {
		t.Fatal(status, text, err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: o.client.CheckRedirect}
	path := strings.TrimPrefix(link.URL, o.plain)
	if status, text := ask(t, browser, o.plain, "GET", path, "Host: evil.example"); status != http.StatusMisdirectedRequest {
		t.Errorf("a login for another host: %d %s", status, text)
	}
	if status, text := ask(t, browser, o.plain, "GET", path); status != http.StatusSeeOther {
		t.Fatalf("the link: %d %s", status, text)
	}
	for _, again := range []string{path, "/ui/login?token=x"} {
		if status, text := ask(t, &http.Client{CheckRedirect: browser.CheckRedirect}, o.plain, "GET", again); status != http.StatusGone {
			t.Errorf("%s by another browser: %d %s", again, status, text)
		}
	}
	if status, text := ask(t, &http.Client{}, o.plain, "GET", "/ui/login"); status != http.StatusOK || !strings.Contains(text, `name="token" type="password" autocomplete="off"`) {
		t.Errorf("the page to log in: %d %s", status, text)
	}
	for _, route := range o.agg.server.Served() {
		if route == "POST /ui/logout" {
			continue
		}
		may := matrix()[route]
		status, text := ask(t, browser, o.plain, route, may[1])
		if strings.HasSuffix(route, "/ui/login") {
			continue
		}
		looks := may[0] == "*" || strings.ContainsAny(may[0], "mr")
		if refused := status == http.StatusForbidden || status == 0; refused == looks {
			t.Errorf("%s by the browser: %d %s", route, status, text)
		}
		status, text = ask(t, &http.Client{}, o.plain, route, may[1])
		if refused := status == http.StatusUnauthorized || status == 0; refused == (may[0] == "*" && !strings.HasSuffix(route, "/v1/join")) {
			t.Errorf("%s without a session: %d %s", route, status, text)
		}
	}
	cookies := browser.Jar.Cookies(&url.URL{Scheme: "http", Host: strings.TrimPrefix(o.plain, "http://"), Path: "/"})
	if status, text := ask(t, browser, o.plain, "POST", "/ui/logout"); status != http.StatusSeeOther {
		t.Errorf("the logout: %d %s", status, text)
	}
	if status, text := ask(t, &http.Client{}, o.plain, "GET", "/v1/records", "Cookie: "+cookies[0].String()); status != http.StatusUnauthorized {
		t.Errorf("the cookie after the logout: %d %s", status, text)
	}
}
