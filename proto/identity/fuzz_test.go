package identity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/url"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/proto/identity"
)

func FuzzOf(f *testing.F) {
	for _, uri := range []string{"bursar://agent/head1", "bursar://king/x", "bursar:agent", "bursar://agent", "bursar://client//", "https://agent/x", "bursar://agent/a%2fb",
		"bursar://client/alice?roles=read,write", "bursar://client/alice?roles=", "bursar://client/alice?roles=read&roles=admin", "bursar://client/alice?roles=admin%2Cread", "bursar://agent/a?roles=read", "bursar://x@client/alice#y"} {
		f.Add(uri, "alice")
	}
	f.Fuzz(func(t *testing.T, uri, common string) {
		u, err := url.Parse(uri)
		if err != nil {
			return
		}
		cert := &x509.Certificate{URIs: []*url.URL{u}, Subject: pkix.Name{CommonName: common}}
		id, err := identity.Of(cert)
		if err != nil {
			if !errors.Is(err, identity.ErrIdentity) {
				t.Errorf("%s: %v", uri, err)
			}
			return
		}
		if !slices.Contains(identity.Roles(), id.Role) {
			t.Errorf("%s gives the role %q", uri, id.Role)
		}
		if u.Scheme != "bursar" {
			if id.Rights != 0 {
				t.Errorf("%s gives the roles %s", uri, id.Rights)
			}
			return
		}
		if identity.CheckName(id.Name) != nil {
			t.Errorf("%s gives the name %q", uri, id.Name)
		}
		if id.Rights != 0 && (id.Role != identity.Client || id.Rights >= 1<<len(identity.RightNames())) {
			t.Errorf("%s gives %s the roles %s", uri, id, id.Rights)
		}
		again, err := identity.Of(&x509.Certificate{URIs: []*url.URL{id.URI()}})
		if err != nil || again != id {
			t.Errorf("%s is %v, and written again it is %v, %v", uri, id, again, err)
		}
	})
}

func FuzzParseRights(f *testing.F) {
	for _, text := range []string{"read", "read,write", "admin,admin", "", ",", "Read", "read, write", "king"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := identity.ParseRights(text)
		if err != nil {
			if r != 0 || !errors.Is(err, identity.ErrIdentity) {
				t.Errorf("%q: %s and %v", text, r, err)
			}
			return
		}
		if again, err := identity.ParseRights(r.String()); err != nil || again != r || r == 0 {
			t.Errorf("%q is %s, and that is %s, %v", text, r, again, err)
		}
	})
}
