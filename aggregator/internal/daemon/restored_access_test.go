package daemon

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
)

func TestRestore_TokenRevokedSinceTheSnapshot_IsRefusedOrInTheStatus(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	admin := g.ready()
	revoked, id := g.bearer(enrol.Scope{Roles: "read"}, time.Hour, time.Now())
	expired, _ := g.bearer(enrol.Scope{Roles: "read"}, time.Hour, time.Now().Add(-2*time.Hour))
	_, _, session := g.logIn(g.tls, strings.TrimPrefix(revoked, "Authorization: Bearer "))
	_, snapshot := ask(t, admin, g.tls, "GET", "/v1/snapshot")
	file := filepath.Join(t.TempDir(), "a.snapshot")
	if err := os.WriteFile(file, []byte(snapshot), 0o600); err != nil {
		t.Fatal(err)
	}
	later, _ := g.bearer(enrol.Scope{Roles: "read"}, time.Hour, time.Now())
	revoke := func(g *guarded, admin *http.Client) {
		t.Helper()
		if status, text := ask(t, admin, g.tls, "DELETE", "/v1/tokens/"+id); status != http.StatusOK {
			t.Fatal(status, text)
		}
	}
	opens := func(g *guarded, what, header string, want bool) {
		t.Helper()
		if status, text := ask(t, g.stranger(), g.tls, "GET", "/v1/records", header); (status == http.StatusOK) != want {
			t.Errorf("%s: %d %.200s", what, status, text)
		}
	}
	revoke(g, admin)

	resp, err := admin.Post(g.tls+"/v1/snapshot:restore", "application/octet-stream", bytes.NewReader([]byte(snapshot)))
	if err != nil {
		t.Fatal(err)
	}
	if status, text := readAnswer(resp); status != http.StatusOK {
		t.Fatal(status, text)
	}
	opens(g, "revoked, and the cluster was restored", revoked, false)
	opens(g, "its session", session, false)
	opens(g, "made later", later, true)
	if _, text := ask(t, admin, g.tls, "GET", "/v1/status"); strings.Contains(text, "tokens-restored") || !strings.Contains(text, `"state":`) {
		t.Error(text)
	}

	for what, change := range map[string]func(*Settings){
		"the cluster was founded anew":                func(s *Settings) { s.BootstrapFrom = file },
		"a cluster was given the snapshot of another": nil,
	} {
		t.Run(what, func(t *testing.T) {
			var next *guarded
			if change != nil {
				next = newGuarded(t, access.Rules{}, change)
				admin = next.ready()
			} else {
				next = newGuarded(t, access.Rules{})
				admin = next.ready()
				resp, err := admin.Post(next.tls+"/v1/snapshot:restore?foreign=true", "application/octet-stream", bytes.NewReader([]byte(snapshot)))
				if err != nil {
					t.Fatal(err)
				}
				if status, text := readAnswer(resp); status != http.StatusOK {
					t.Fatal(status, text)
				}
			}
			const finding = `"id":"tokens-restored"`
			await(t, "the status says so", func() bool {
				_, text := ask(t, admin, next.tls, "GET", "/v1/status")
				return strings.Contains(text, finding) && strings.Contains(text, "1 token is valid as in the snapshot of ")
			})
			opens(next, "valid again", revoked, true)
			opens(next, "its session", session, false)
			opens(next, "expired", expired, false)
			opens(next, "made later", later, false)
			revoke(next, admin)
			opens(next, "revoked again", revoked, false)
			await(t, "the status no longer says so", func() bool {
				_, text := ask(t, admin, next.tls, "GET", "/v1/status")
				return !strings.Contains(text, finding)
			})
		})
	}
}
