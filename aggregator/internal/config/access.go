package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Access is the block access { … }: what clients may do, beside what their
// certificates say.
type Access struct {
	// PlainRole is what everybody may do on the listeners without TLS: roles with
	// commas between them, or none. Not written, it is admin while only this
	// machine reaches them.
	PlainRole hcl.String `hcl:"plain_role,optional"`
	// Clients are those of whom more is said.
	Clients []AccessClient `hcl:"client,block"`
}

// AccessClient is a block client "name" { … } of access.
type AccessClient struct {
	// Name is that in the certificate, or its common name.
	Name hcl.String `hcl:"name,label"`
	// Roles, when written, take the place of those in the certificate.
	Roles []hcl.String `hcl:"roles,optional"`
	// RolesAt is where they are written.
	RolesAt hcl.Range `hcl:"roles,attr_range"`
	// Rows, when written, are the only records that the client may see: those that
	// have, for at least one element of the list, under each of its keys one of the
	// values.
	Rows []map[string][]hcl.String `hcl:"rows,optional"`
	// RowsAt is where they are written.
	RowsAt hcl.Range `hcl:"rows,attr_range"`
}

// noRole is the plain_role of a listener that only says how it is.
const noRole = "none"

// Rules returns who may do what.
func (c *Config) Rules() access.Rules {
	r := access.Rules{Plain: identity.Admin, Clients: map[string]access.Client{}}
	switch plain := c.Access.PlainRole.Value; plain {
	case "":
	case noRole:
		r.Plain = 0
	default:
		r.Plain, _ = identity.ParseRights(plain) // an error gives none, and is reported by validate
	}
	for i := range c.Access.Clients {
		r.Clients[c.Access.Clients[i].Name.Value] = c.Access.Clients[i].rules()
	}
	return r
}

func (c *AccessClient) rules() access.Client {
	out := access.Client{Rows: access.AllRows()}
	if c.RolesAt != (hcl.Range{}) {
		rights, _ := c.rights()
		out.Rights = &rights
	}
	if c.RowsAt != (hcl.Range{}) {
		out.Rows = access.SomeRows(c.grants()...)
	}
	return out
}

func (c *AccessClient) rights() (rights identity.Rights, diags hcl.Diagnostics) {
	for _, role := range c.Roles {
		r, err := identity.ParseRights(role.Value)
		if err != nil || strings.Contains(role.Value, ",") {
			diags.Add(hcl.Errorf(role.Range, `invalid value for "roles"`, "%q is no role; expected one of %s", role.Value, strings.Join(identity.RightNames(), ", ")))
		}
		rights |= r
	}
	return rights, diags
}

func (c *AccessClient) grants() []access.Grant {
	var grants []access.Grant
	for _, row := range c.Rows {
		g := access.Grant{}
		for key, values := range row {
			g[key] = nil
			for _, v := range values {
				g[key] = append(g[key], v.Value)
			}
		}
		grants = append(grants, g)
	}
	return grants
}

func (a *Access) validate(api *API) hcl.Diagnostics {
	var diags hcl.Diagnostics
	switch plain := a.PlainRole.Value; {
	case plain == noRole:
	case plain != "":
		if _, err := identity.ParseRights(plain); err != nil {
			diags.Add(hcl.Errorf(a.PlainRole.Range, `invalid value for "plain_role"`, "%q; expected none, or some of %s with commas between them", plain, strings.Join(identity.RightNames(), ", ")))
		}
	case a.PlainRole.Range != (hcl.Range{}):
		diags.Add(hcl.Errorf(a.PlainRole.Range, `invalid value for "plain_role"`, "it is empty; expected roles such as read,write, or none"))
	default:
		for _, l := range api.Listen {
			if api.AllowPlainRemote && !loopback(l.Host) {
				diags.Add(hcl.Errorf(l.Range, "plain listener without a role", "other machines reach %s without a certificate; say what everybody may do there: access { plain_role = \"read,write\" }, or none", l))
			}
		}
	}
	for i := range a.Clients {
		diags.Extend(a.Clients[i].validate())
	}
	return diags
}

func (c *AccessClient) validate() hcl.Diagnostics {
	_, diags := c.rights()
	if c.Name.Value == "" {
		diags.Add(hcl.Errorf(c.Name.Range, "client without a name", "the label is the name in the certificate"))
	}
	if c.RolesAt == (hcl.Range{}) && c.RowsAt == (hcl.Range{}) {
		diags.Add(hcl.Errorf(c.Name.Range, "nothing is said of the client", "%q needs roles or rows", c.Name.Value))
	}
	if c.RowsAt != (hcl.Range{}) && len(c.Rows) == 0 {
		diags.Add(hcl.Errorf(c.RowsAt, `invalid value for "rows"`, "an empty list shows no record at all; leave the attribute out for all records, or take the role away"))
	}
	for _, row := range c.Rows {
		if len(row) == 0 {
			diags.Add(hcl.Errorf(c.RowsAt, `invalid value for "rows"`, "an element without keys; expected one like { site_id = [\"nemo\"] }"))
		}
		for _, key := range slices.Sorted(maps.Keys(row)) {
			if wrong := record.ValidateName(key); wrong != "" {
				diags.Add(hcl.Errorf(c.RowsAt, `invalid value for "rows"`, "%q: %s", key, wrong))
			}
			if len(row[key]) == 0 {
				diags.Add(hcl.Errorf(c.RowsAt, `invalid value for "rows"`, "%q has no values, so no record would be shown", key))
			}
		}
	}
	return diags
}
