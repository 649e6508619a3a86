package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

func TestOnlyWritersMayWrite(t *testing.T) {
	ca := identitytest.New(t)
	keys := ca.Keys(identity.Agent, "head1")
	asked := make(chan error, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- Writers(keys, []string{"collector1"})(r)
	}))
	s.TLS = keys.Public()
	s.StartTLS()
	defer s.Close()
	for name, c := range map[string]struct {
		id  identity.Identity
		may bool
	}{
		"role write":           {identity.Identity{Role: identity.Client, Name: "tardis", Rights: identity.Write | identity.Read}, true},
		"role admin":           {identity.Identity{Role: identity.Client, Name: "root", Rights: identity.Admin}, true},
		"role read":            {identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Read}, false},
		"named":                {identity.Identity{Role: identity.Client, Name: "collector1"}, true},
		"not named":            {identity.Identity{Role: identity.Client, Name: "collector2"}, false},
		"named, but no client": {identity.Identity{Role: identity.Aggregator, Name: "collector1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := ca.Client(ca.Issue(c.id)).Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if err := <-asked; (err == nil) != c.may {
				t.Error(err)
			}
		})
	}
	if err := Writers(keys, nil)(httptest.NewRequest("POST", "/record", nil)); err == nil {
		t.Error("without a certificate")
	}
	anyone := Writers(keys, []string{Every})
	for role, may := range map[identity.Role]bool{identity.Client: true, identity.Aggregator: false} {
		got := make(chan error, 1)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- anyone(r) }))
		s.TLS = keys.Public()
		s.StartTLS()
		resp, err := ca.Client(ca.Issue(identity.Identity{Role: role, Name: "somebody"})).Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if err := <-got; (err == nil) != may {
			t.Errorf("%s: %v", role, err)
		}
		s.Close()
	}
}
