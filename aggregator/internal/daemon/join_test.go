package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/join"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// admin is a client that may everything.
func (g *guarded) admin() *client.Client {
	g.t.Helper()
	files := g.ca.Issue(identity.Identity{Role: identity.Client, Name: "root", Rights: identity.Admin})
	config, err := client.LoadTLS(files.CA, files.Cert, files.Key)
	if err != nil {
		g.t.Fatal(err)
	}
	config.RootCAs = g.ca.Pool()
	c, err := client.New(client.Options{Address: g.tls, TLS: config})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.Close)
	return c
}

func (g *guarded) host() string { return strings.TrimPrefix(g.tls, "https://") }

// token makes a token.
func (g *guarded) token(c *client.Client, role identity.Role, name string) join.Token {
	g.t.Helper()
	var issued v1.IssuedToken
	var err error
	for range 1800 { // a node that has just started may have no leader yet
		issued, err = c.CreateToken(g.t.Context(), v1.NewToken{Role: string(role), Name: name, LifetimeSeconds: 3600})
		if err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	t, err := join.Parse(issued.Token)
	if err != nil || issued.ID != t.Name() {
		g.t.Fatal(issued, err)
	}
	return t
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := identity.KeepKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func agentRequest(name string, key *ecdsa.PrivateKey) join.Request {
	return join.Request{Role: identity.Agent, Name: name, Address: "127.0.0.1:9", Hosts: []string{"agg1.example.org"}, Key: key}
}

func TestJoin_AgentWithAToken_GetsACertificateAndIsPulledFrom(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	c := g.admin()
	token, key := g.token(c, identity.Agent, ""), newKey(t)
	joined, err := join.Join(t.Context(), g.host(), token, agentRequest("head1", key))
	if err != nil {
		t.Fatal(err)
	}
	list, err := identity.ParseCertificates([]byte(joined.Certificate))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	id, err := identity.Of(list[0])
	if err != nil || id != (identity.Identity{Role: identity.Agent, Name: "head1"}) || !key.PublicKey.Equal(list[0].PublicKey) {
		t.Error(id, err)
	}
	if len(list[0].DNSNames)+len(list[0].IPAddresses) != 0 || joined.AuthorityKey != "" || len(joined.Nodes) != 0 {
		t.Error("an agent got what is for nodes", list[0].DNSNames, joined.Nodes)
	}
	if _, err := list[0].Verify(x509.VerifyOptions{Roots: g.ca.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		t.Error(err)
	}
	await(t, "the leader pulls from it", func() bool { return slices.Contains(g.agg.manager.Names(), "head1") })
	agents, err := c.Agents(t.Context(), nil)
	if err != nil || len(agents.Agents) != 1 || !agents.Agents[0].Joined || agents.Agents[0].Address != "127.0.0.1:9" {
		t.Errorf("%+v, %v", agents, err)
	}
	if _, err := c.RemoveAgent(t.Context(), "head1"); err != nil {
		t.Fatal(err)
	}
	await(t, "it is gone", func() bool { return len(g.agg.manager.Names()) == 0 })
	if _, err := join.Join(t.Context(), g.host(), token, agentRequest("head1", key)); err == nil || !strings.Contains(err.Error(), enrol.ErrRevoked.Error()) {
		t.Error("an agent that was removed came back: ", err)
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within two minutes: ", what)
		}
	}
}

func TestJoin_TokenUsedTwice_GivesTheSameKeyACertificateAndNoOther(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	c := g.admin()
	token, key := g.token(c, identity.Agent, ""), newKey(t)
	for range 3 {
		if _, err := join.Join(t.Context(), g.host(), token, agentRequest("head1", key)); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, token join.Token, r join.Request, reason error) {
		t.Helper()
		if _, err := join.Join(t.Context(), g.host(), token, r); err == nil || !strings.Contains(err.Error(), reason.Error()) {
			t.Errorf("%s: %v, want %v", what, err, reason)
		}
	}
	refused("another key", token, agentRequest("head1", newKey(t)), enrol.ErrUsed)
	refused("another name", token, agentRequest("head2", key), enrol.ErrName)
	refused("a new token takes a name in use", g.token(c, identity.Agent, ""), agentRequest("head1", newKey(t)), enrol.ErrName)
	if _, err := join.Join(t.Context(), g.host(), g.token(c, identity.Agent, "head1"), agentRequest("head1", newKey(t))); err != nil {
		t.Error("a token for that name does not replace the machine: ", err)
	}
	refused("another role", g.token(c, identity.Agent, ""), join.Request{Role: identity.Aggregator, Name: "agg2", Address: "127.0.0.1:9", Key: key}, enrol.ErrRole)
	refused("the name of the token is another one", g.token(c, identity.Agent, "head7"), agentRequest("head8", newKey(t)), enrol.ErrName)
	forged := g.token(c, identity.Agent, "")
	forged.Secret[3] ^= 1
	refused("a wrong secret", forged, agentRequest("head9", newKey(t)), enrol.ErrUnknown)
	revoked := g.token(c, identity.Agent, "")
	if _, err := c.RevokeToken(t.Context(), revoked.Name()); err != nil {
		t.Fatal(err)
	}
	refused("a revoked token", revoked, agentRequest("head9", newKey(t)), enrol.ErrRevoked)
	if _, err := c.RevokeToken(t.Context(), "nothing"); err == nil {
		t.Error("a token was revoked that there is not")
	}
}

func TestJoin_ManyMachinesWithOneToken_OneGetsIn(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	token := g.token(g.admin(), identity.Agent, "")
	var in atomic.Int32
	done := make(chan struct{})
	const machines = 8
	for i := range machines {
		key := newKey(t)
		go func() {
			defer func() { done <- struct{}{} }()
			if _, err := join.Join(t.Context(), g.host(), token, agentRequest("head"+string(rune('0'+i)), key)); err == nil {
				in.Add(1)
			}
		}()
	}
	for range machines {
		<-done
	}
	if in.Load() != 1 {
		t.Errorf("%d machines came in by one token", in.Load())
	}
}

func TestJoin_AggregatorWithAToken_GetsTheAuthority(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	token := g.token(g.admin(), identity.Aggregator, "")
	joined, err := join.Join(t.Context(), g.host(), token, join.Request{
		Role: identity.Aggregator, Name: "agg2", Address: "127.0.0.1:9", Hosts: []string{"agg2.example.org", "127.0.0.2"}, Key: newKey(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := identity.ParseCertificates([]byte(joined.Certificate))
	if err != nil || !slices.Equal(list[0].DNSNames, []string{"agg2.example.org"}) || len(list[0].IPAddresses) != 1 {
		t.Error(list, err)
	}
	if !strings.Contains(joined.AuthorityKey, "PRIVATE KEY") || !slices.ContainsFunc(joined.Nodes, func(n v1.JoinNode) bool { return n.Name == "agg1" }) {
		t.Error("a node lacks the authority or its peers", joined.Nodes)
	}
}

// impostor answers as an aggregator does, with a certificate of another authority, and
// notes what it is told.
func impostor(t *testing.T, authorities string, role identity.Role) (host string, told *atomic.Bool) {
	t.Helper()
	told = new(atomic.Bool)
	keys := identitytest.New(t).Keys(role, "agg1")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			told.Store(true)
		}
		offer := authorities
		if offer == "" {
			offer = string(identity.EncodeCertificates(keys.Authorities()...))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"authorities":"` + strings.ReplaceAll(offer, "\n", `\n`) + `"}`))
	}))
	s.TLS = keys.Open()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), told
}

func TestJoin_MachineInTheMiddle_NeverSeesTheSecret(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	token := join.New(identity.Fingerprint(g.ca.Authority().Certificate()))
	host, told := impostor(t, "", identity.Aggregator)
	if _, err := join.Join(t.Context(), host, token, agentRequest("head1", newKey(t))); !errors.Is(err, join.ErrAuthority) {
		t.Error("its own authority: ", err)
	}
	repeats, toldToo := impostor(t, string(identity.EncodeCertificates(g.ca.Authority().Certificate())), identity.Aggregator)
	if _, err := join.Join(t.Context(), repeats, token, agentRequest("head1", newKey(t))); err == nil {
		t.Error("it repeats the authority of the cluster, whose key it does not have")
	}
	if told.Load() || toldToo.Load() {
		t.Error("the secret was sent")
	}
}

func TestJoin_AnAgentThatPretendsToBeAnAggregator_NeverSeesTheSecret(t *testing.T) {
	ca := identitytest.New(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var told atomic.Bool
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told.Store(told.Load() || r.Method == http.MethodPost)
		w.Header().Set("Content-Type", "application/json")
		offer := string(identity.EncodeCertificates(ca.Authority().Certificate()))
		_, _ = w.Write([]byte(`{"authorities":"` + strings.ReplaceAll(offer, "\n", `\n`) + `"}`))
	})}
	go func() { _ = s.Serve(tls.NewListener(l, ca.Keys(identity.Agent, "head9").Open())) }() // until Close
	t.Cleanup(func() { _ = s.Close() })
	token := join.New(identity.Fingerprint(ca.Authority().Certificate()))
	_, err = join.Join(context.Background(), l.Addr().String(), token, agentRequest("head1", newKey(t)))
	if !errors.Is(err, identity.ErrIdentity) || told.Load() {
		t.Error(err, told.Load())
	}
}

func TestJoin_ManyWrongTokens_HaveToWait(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	token := g.token(g.admin(), identity.Agent, "")
	token.Secret[0] ^= 1
	key := newKey(t)
	for range 12 {
		if _, err := join.Join(t.Context(), g.host(), token, agentRequest("head1", key)); err == nil {
			t.Fatal("a wrong token was taken")
		} else if strings.Contains(err.Error(), "too many wrong tokens") {
			return
		}
	}
	t.Error("wrong tokens can be tried for ever")
}

func TestPulled_NameInBoth_TheConfigurationCounts(t *testing.T) {
	p := pulled{
		configured: []ingest.Agent{{Name: "a", Address: "configured:1"}},
		joined:     []enrol.Machine{{Name: "a", Address: "joined:1"}, {Name: "b", Address: "joined:2"}},
	}
	want := []ingest.Agent{{Name: "a", Address: "configured:1"}, {Name: "b", Address: "joined:2"}}
	if got := p.mergedAgents(); !slices.Equal(got, want) {
		t.Error(got)
	}
}
