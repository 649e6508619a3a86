package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestWidget_Browser_IsFramedByConfiguredOriginsWithLoginAndWithout(t *testing.T) {
	rules := access.Rules{Framers: []string{"https://ood.example.org"}}
	g := newGuarded(t, rules)
	get := func(client *http.Client, address, path string) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // it was read
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body), resp.Header
	}
	framers := func(head http.Header) string {
		_, list, _ := strings.Cut(head.Get("Content-Security-Policy"), "frame-ancestors ")
		return list
	}
	reader := g.client(identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Read})
	if status, body, head := get(reader, g.tls, "/ui/widget"); status != http.StatusOK || framers(head) != "https://ood.example.org" || !strings.Contains(body, "Usage this month") {
		t.Errorf("%d %q: %s", status, framers(head), body)
	}
	stranger := &http.Client{}
	if status, body, head := get(stranger, g.plain, "/ui/widget"); status != http.StatusUnauthorized || framers(head) != "https://ood.example.org" || !strings.Contains(body, `target="_top">Log in`) {
		t.Errorf("%d %q: %s", status, framers(head), body)
	}
	if status, body, head := get(stranger, g.plain, "/ui/me"); status != http.StatusOK || framers(head) != "'none'" || !strings.Contains(body, "<form") {
		t.Errorf("the page to log in: %d %q: %s", status, framers(head), body)
	}
	rules.Framers = nil
	g.agg.SetAccess(rules)
	if _, _, head := get(reader, g.tls, "/ui/widget"); framers(head) != "'none'" {
		t.Errorf("after a reload: %q", framers(head))
	}
}
