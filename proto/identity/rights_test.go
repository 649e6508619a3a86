package identity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/url"
	"testing"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

func TestACertificateCarriesTheRolesOfItsClient(t *testing.T) {
	ca := identitytest.New(t)
	id := identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Read | identity.Operate}
	files := ca.Issue(id)
	keys, err := identity.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := keys.Identity(); err != nil || got != id {
		t.Errorf("%+v, %v", got, err)
	}
	if got := id.URI().String(); got != "bursar://client/alice?roles=read,operate" {
		t.Error(got)
	}
}

func TestRolesThatAreNotUnderstoodRefuseTheCertificate(t *testing.T) {
	for _, uri := range []string{
		"bursar://client/alice?roles=", "bursar://client/alice?roles=king", "bursar://client/alice?roles=read,read",
		"bursar://client/alice?roles=read&roles=admin", "bursar://client/alice?role=read", "bursar://client/alice?",
		"bursar://agent/head1?roles=read", "bursar://aggregator/agg1?roles=admin", "bursar://client/alice?roles=Read",
		"bursar://client/alice?roles=read,%20admin", "bursar://client/alice#admin", "bursar://admin@client/alice",
	} {
		u, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := identity.Of(&x509.Certificate{URIs: []*url.URL{u}}); !errors.Is(err, identity.ErrIdentity) {
			t.Errorf("%s: %+v, %v", uri, id, err)
		}
	}
	if id, err := identity.Of(&x509.Certificate{Subject: pkix.Name{CommonName: "x"}}); err != nil || id.Rights != 0 {
		t.Errorf("a common name alone: %+v, %v", id, err)
	}
}

func TestRolesIncludeOthers(t *testing.T) {
	const all = identity.Monitor | identity.Read | identity.Write | identity.Operate | identity.Admin
	for _, c := range []struct{ has, whole identity.Rights }{
		{0, 0},
		{identity.Monitor, identity.Monitor},
		{identity.Read, identity.Read},
		{identity.Write, identity.Write},
		{identity.Operate, identity.Operate | identity.Read | identity.Monitor},
		{identity.Admin, all},
	} {
		if got := c.has.Whole(); got != c.whole {
			t.Errorf("%s includes %s, want %s", c.has, got, c.whole)
		}
	}
}
