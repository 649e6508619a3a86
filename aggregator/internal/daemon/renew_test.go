package daemon

import (
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/join"
)

// joined is the certificate of an agent that has joined with a token of that name.
func (g *guarded) joined(c *client.Client, name, tokenName string, key *ecdsa.PrivateKey) *x509.Certificate {
	g.t.Helper()
	got, err := join.Join(g.t.Context(), g.host(), g.token(c, identity.Agent, tokenName), agentRequest(name, key))
	if err != nil {
		g.t.Fatal(err)
	}
	list, err := identity.ParseCertificates([]byte(got.Certificate))
	if err != nil {
		g.t.Fatal(err)
	}
	return list[0]
}

func TestSign_MachinesOfTheCluster_AreRenewedAndNoOthers(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	c := g.admin()
	refused := func(what, caller string, c *x509.Certificate, want string) {
		t.Helper()
		if _, err := g.agg.signRenewal(caller, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	head1 := g.joined(c, "head1", "", newKey(t))
	await(t, "it is pulled from", func() bool { return slices.Contains(g.agg.manager.Names(), "head1") })
	later(t, head1)
	for _, caller := range []string{"agg1", "agg2"} { // whichever leads
		next, err := g.agg.signRenewal(caller, head1)
		if err != nil {
			t.Fatal(err)
		}
		id, err := identity.Of(next)
		if err != nil || id.Name != "head1" || id.Role != identity.Agent || !next.NotAfter.After(head1.NotAfter) {
			t.Error(id, err, next.NotAfter)
		}
	}
	agg2 := g.ca.Keys(identity.Aggregator, "agg2").Leaf()
	later(t, agg2)
	if _, err := g.agg.signRenewal("agg2", agg2); err != nil {
		t.Error("another node's own: ", err)
	}
	refused("a node asks for that of another", "agg3", agg2, "agg3 asks for the certificate of agg2")
	head9 := g.ca.Keys(identity.Agent, "head9").Leaf()
	later(t, head9)
	refused("an agent of nowhere", "agg1", head9, "does not pull from the agent head9")
	g.joined(c, "head1", "head1", newKey(t))
	refused("an agent that was replaced", "agg1", head1, "another machine has joined as agent/head1")

	elsewhere := identitytest.New(t)
	if _, err := g.agg.signRenewal("agg2", elsewhere.Keys(identity.Aggregator, "agg2").Leaf()); !errors.Is(err, identity.ErrForeign) {
		t.Error("of another authority: ", err)
	}
}

// later waits until a certificate that is signed now ends later: they end in whole seconds.
func later(t *testing.T, c *x509.Certificate) {
	await(t, "a second has passed", func() bool { return time.Since(identity.Issued(c)) > 2*time.Second })
}

func TestRenew_NoNodeHasTheAuthority_IsLeftToTheSite(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	if _, err := g.agg.renewCertificate(t.Context(), identitytest.New(t).Keys(identity.Aggregator, "agg1").Leaf()); !errors.Is(err, identity.ErrForeign) {
		t.Error(err)
	}
}
