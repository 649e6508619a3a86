package config

import (
	"net/url"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/local"
)

// OIDC is the block oidc { … } of access: the provider of OpenID Connect at which people
// log in to the pages.
type OIDC struct {
	// Issuer is the address of the provider, below which it answers
	// /.well-known/openid-configuration.
	Issuer hcl.String `hcl:"issuer"`
	// ClientID and ClientSecret are those of this cluster at the provider, which must know
	// the address https://HOST:PORT/ui/login/callback of each node.
	ClientID     hcl.String `hcl:"client_id"`
	ClientSecret hcl.String `hcl:"client_secret,optional"`
	// Scopes are asked for beside openid; not written, it is profile.
	Scopes []hcl.String `hcl:"scopes,optional"`
	// UserClaim is the claim with the name of the user as records have it.
	UserClaim hcl.String `hcl:"user_claim,optional" default:"preferred_username"`
	// GroupsClaim is the claim with the groups.
	GroupsClaim hcl.String `hcl:"groups_claim,optional" default:"groups"`
	// Groups say what people may do: the first block that names a group of someone counts.
	Groups []OIDCGroup `hcl:"group,block"`
	Range  hcl.Range   `hcl:",def_range"`
}

// OIDCGroup is a block group "name" { … } of oidc; "*" is everyone whom the provider knows.
type OIDCGroup struct {
	Name  hcl.String   `hcl:"name,label"`
	Roles []hcl.String `hcl:"roles"`
	// Own gives each of them the records that the directory gives them: their own, and
	// those of the projects and groups that they lead.
	Own    bool                      `hcl:"own,optional"`
	Rows   []map[string][]hcl.String `hcl:"rows,optional"`
	RowsAt hcl.Range                 `hcl:"rows,attr_range"`
	// Pseudonyms shows them pseudonyms in the place of the names of persons.
	Pseudonyms   bool      `hcl:"pseudonyms,optional"`
	PseudonymsAt hcl.Range `hcl:"pseudonyms,attr_range"`
}

// asClient says the same as a client of access.
func (g *OIDCGroup) asClient() *AccessClient {
	return &AccessClient{Name: g.Name, Roles: g.Roles, RolesAt: g.Name.Range, Rows: g.Rows, RowsAt: g.RowsAt, Pseudonyms: g.Pseudonyms, PseudonymsAt: g.PseudonymsAt}
}

func (o *OIDC) oidcRules() *access.OIDC {
	out := &access.OIDC{
		Issuer: o.Issuer.Value, ClientID: o.ClientID.Value, Secret: o.ClientSecret.Value, Scopes: textsOf(o.Scopes),
		UserClaim: o.UserClaim.Value, GroupsClaim: o.GroupsClaim.Value,
	}
	if o.Scopes == nil {
		out.Scopes = []string{"profile"}
	}
	for i := range o.Groups {
		g := &o.Groups[i]
		c := g.asClient().clientRules()
		out.Groups = append(out.Groups, access.GroupClient{Group: g.Name.Value, Rights: *c.Rights, Rows: c.Rows, Own: g.Own, Pseudonyms: g.Pseudonyms})
	}
	return out
}

func (o *OIDC) validate() hcl.Diagnostics {
	var diags hcl.Diagnostics
	u, err := url.Parse(o.Issuer.Value)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		diags.Add(hcl.Errorf(o.Issuer.Range, `invalid value for "issuer"`, "%q; expected an address such as https://sso.example.org/realms/hpc", o.Issuer.Value))
	case u.Scheme == "http" && !local.IsLoopback(u.Hostname()):
		diags.Add(hcl.Errorf(o.Issuer.Range, `invalid value for "issuer"`, "%q; expected https, since others on the way could log in as anyone", o.Issuer.Value))
	}
	if o.ClientID.Value == "" {
		diags.Add(hcl.Errorf(o.ClientID.Range, `invalid value for "client_id"`, "it is empty; the provider gives one"))
	}
	if len(o.Groups) == 0 {
		diags.Add(hcl.Errorf(o.Range, "provider without groups", `people could do nothing; say what people may do: group "*" { roles = ["read"], own = true }`))
	}
	for i := range o.Groups {
		g := &o.Groups[i]
		diags.Extend(g.asClient().validate())
		if g.Own && g.RowsAt != (hcl.Range{}) {
			diags.Add(hcl.Errorf(g.RowsAt, `invalid value for "rows"`, "own and rows exclude each other"))
		}
		if g.Own && g.Pseudonyms {
			diags.Add(hcl.Errorf(g.PseudonymsAt, `invalid value for "pseudonyms"`, "own and pseudonyms exclude each other: who sees the own records knows the name"))
		}
		if i+1 < len(o.Groups) && g.Name.Value == access.AnyClient {
			diags.Add(hcl.Errorf(g.Name.Range, "groups that never count", `"*" is everyone, so the blocks after it never count; write it last`))
		}
		if slices.ContainsFunc(o.Groups[:i], func(b OIDCGroup) bool { return b.Name.Value == g.Name.Value }) {
			diags.Add(hcl.Errorf(g.Name.Range, "group named twice", "%q has a block already", g.Name.Value))
		}
	}
	return diags
}
