package access_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestRules_AnyClient_IsForCertificatesOfWhichNothingIsSaid(t *testing.T) {
	write, none := identity.Read|identity.Write, identity.Rights(0)
	rules := access.Rules{Clients: map[string]access.Client{
		access.AnyClient: {Rights: &write, Rows: access.AllRows()},
		"blocked":        {Rights: &none, Rows: access.AllRows()},
	}}
	for _, c := range []struct {
		id   identity.Identity
		want identity.Rights
	}{
		{identity.Identity{Role: identity.Client, Name: "collector-7"}, write},
		{identity.Identity{Role: identity.Client, Name: "blocked"}, 0},
		{identity.Identity{Role: identity.Client, Name: "prometheus", Rights: identity.Monitor}, identity.Monitor},
		{identity.Identity{Role: identity.Client, Name: "operator", Rights: identity.Admin}, identity.Admin},
		{identity.Identity{Role: identity.Agent, Name: "head1"}, 0},
	} {
		if got := rules.Of(c.id).Rights; got != c.want {
			t.Errorf("%s has %s, want %s", c.id, got, c.want)
		}
	}
	if got := (&access.Rules{}).Of(identity.Identity{Role: identity.Client, Name: "collector-7"}).Rights; got != 0 {
		t.Errorf("without a block it has %s", got)
	}
}
