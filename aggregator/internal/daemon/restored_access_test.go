package daemon

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
)

// restore takes the cluster back to a snapshot and returns the answer.
func (g *guarded) restore(admin *http.Client, query string, snapshot io.Reader) string {
	g.t.Helper()
	resp, err := admin.Post(g.tls+"/v1/snapshot:restore"+query, "application/octet-stream", snapshot)
	if err != nil {
		g.t.Fatal(err)
	}
	status, text := readAnswer(resp)
	if status != http.StatusOK {
		g.t.Fatal(status, text)
	}
	return text
}

func TestRestore_AgentRemovedSinceTheSnapshot_StaysRemovedOrIsInTheStatus(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	admin, c := g.ready(), g.admin()
	for _, name := range []string{"head1", "head2"} {
		if _, err := join.Join(t.Context(), g.host(), g.token(c, identity.Agent, ""), agentRequest(name, newKey(t))); err != nil {
			t.Fatal(err)
		}
	}
	_, snapshot := ask(t, admin, g.tls, "GET", "/v1/snapshot")
	file := filepath.Join(t.TempDir(), "a.snapshot")
	if err := os.WriteFile(file, []byte(snapshot), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := join.Join(t.Context(), g.host(), g.token(c, identity.Agent, ""), agentRequest("head3", newKey(t))); err != nil {
		t.Fatal(err)
	}
	if status, text := ask(t, admin, g.tls, "DELETE", "/v1/agents/head1"); status != http.StatusOK {
		t.Fatal(status, text)
	}
	const finding = `"id":"agents-restored"`
	if text := g.restore(admin, "", strings.NewReader(snapshot)); !strings.Contains(text, `"agents_removed":["head1"]`) || strings.Contains(text, "unverified") {
		t.Error(text)
	}
	await(t, "the agents of before the restore are pulled from", func() bool {
		return slices.Equal(slices.Sorted(slices.Values(g.agg.manager.Names())), []string{"head2", "head3"})
	})
	if _, text := ask(t, admin, g.tls, "GET", "/v1/status"); strings.Contains(text, finding) || !strings.Contains(text, `"state":`) {
		t.Error(text)
	}

	for what, foreign := range map[string]bool{"the cluster was founded anew": false, "a cluster was given the snapshot of another": true} {
		t.Run(what, func(t *testing.T) {
			next := newGuarded(t, access.Rules{}, func(s *Settings) {
				if !foreign {
					s.BootstrapFrom = file
				}
			})
			admin := next.ready()
			if foreign {
				if text := next.restore(admin, "?foreign=true", strings.NewReader(snapshot)); !strings.Contains(text, `"agents_unverified":["head1","head2"]`) || strings.Contains(text, "agents_removed") {
					t.Error(text)
				}
			}
			says := func(want string) func() bool {
				return func() bool {
					_, text := ask(t, admin, next.tls, "GET", "/v1/status")
					return strings.Contains(text, `"state":`) && strings.Contains(text, finding) == (want != "") && strings.Contains(text, want)
				}
			}
			await(t, "the status names both", says("whether any was removed since is not known: head1, head2"))
			if status, text := ask(t, admin, next.tls, "DELETE", "/v1/agents/head1"); status != http.StatusOK {
				t.Fatal(status, text)
			}
			await(t, "the status names the other one", says("not known: head2"))
			if status, text := ask(t, admin, next.tls, "DELETE", "/v1/agents/head2"); status != http.StatusOK {
				t.Fatal(status, text)
			}
			await(t, "the status no longer says so", says(""))
		})
	}
}

func (g *guarded) removeAgent(admin *http.Client, name string) error {
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodDelete, g.tls+"/v1/agents/"+name, nil)
	if err != nil {
		return err
	}
	resp, err := admin.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the agent %s is not removed: %s", name, resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

func TestRestore_AgentRemovedWhileTheSnapshotArrives_StaysRemoved(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	admin, c := g.ready(), g.admin()
	for _, name := range []string{"head1", "head2"} {
		if _, err := join.Join(t.Context(), g.host(), g.token(c, identity.Agent, ""), agentRequest(name, newKey(t))); err != nil {
			t.Fatal(err)
		}
	}
	_, snapshot := ask(t, admin, g.tls, "GET", "/v1/snapshot")
	body, sent := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(sent, snapshot[:len(snapshot)/2])
		if err == nil { // the first half has been read
			err = g.removeAgent(admin, "head1")
		}
		if err == nil {
			_, err = io.WriteString(sent, snapshot[len(snapshot)/2:])
		}
		done <- errors.Join(err, sent.CloseWithError(err))
	}()
	text := g.restore(admin, "", body)
	if err := <-done; err != nil || !strings.Contains(text, `"agents_removed":["head1"]`) {
		t.Errorf("%s %v", text, err)
	}
	await(t, "the other agent is pulled from", func() bool { return slices.Equal(g.agg.manager.Names(), []string{"head2"}) })
}

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

	g.restore(admin, "", strings.NewReader(snapshot))
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
				next.restore(admin, "?foreign=true", strings.NewReader(snapshot))
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
