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
	for _, uri := range []string{"bursar://agent/head1", "bursar://king/x", "bursar:agent", "bursar://agent", "bursar://client//", "https://agent/x", "bursar://agent/a%2fb"} {
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
		if u.Scheme == "bursar" && identity.CheckName(id.Name) != nil {
			t.Errorf("%s gives the name %q", uri, id.Name)
		}
	})
}
