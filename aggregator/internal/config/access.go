package config

import (
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/local"
	"github.com/bursar-accounting/bursar/proto/origin"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Access is the block access { … }: what clients may do, beside what their
// certificates say.
type Access struct {
	// PlainRole is what everyone may do on the TCP listeners without TLS: monitor,
	// read and write, with commas between them, or none. Not written, it is none:
	// such a listener says whether the node is healthy, and no more.
	PlainRole hcl.String `hcl:"plain_role,optional"`
	// Clients are those of whom more is said.
	Clients []AccessClient `hcl:"client,block"`
	// OIDC is where people log in to the pages; nil: nowhere.
	OIDC *OIDC `hcl:"oidc,block"`
	// WidgetOrigins are the origins, such as https://ood.example.org, whose pages may show
	// /ui/widget, the reader's own usage, in a frame; not written, none may.
	WidgetOrigins []hcl.String `hcl:"widget_origins,optional"`
	// Views are views of the pages Usage and Records, which these pages name.
	Views []SavedView `hcl:"view,block"`
}

// SavedView is a block view "name" { … } of access: a name for a view of the page Usage or Records.
type SavedView struct {
	Name hcl.String `hcl:"name,label"`
	// Address is that of the view in a browser, without the name of the server, such as
	// /ui/usage?by=group_id&window=30d.
	Address hcl.String `hcl:"address"`
}

// validateViews checks the addresses of views.
func validateViews(views []SavedView) (diags hcl.Diagnostics) {
	for _, view := range views {
		at, err := url.Parse(view.Address.Value)
		if err != nil || at.IsAbs() || at.Host != "" || at.Path != "/ui/usage" && at.Path != "/ui/records" {
			diags.Add(hcl.Errorf(view.Address.Range, `invalid value for "address"`, "%q; expected a view of the page Usage or Records, such as /ui/usage?by=group_id&window=30d", view.Address.Value))
		}
	}
	return diags
}

// AccessClient is a block client "name" { … } of access.
type AccessClient struct {
	// Name is that in the certificate, or its common name; "*" stands for every
	// certificate of the authority that names no role and has no block of its own.
	Name hcl.String `hcl:"name,label"`
	// Roles, when written, take the place of those in the certificate.
	Roles []hcl.String `hcl:"roles,optional"`
	// RolesAt is where they are written.
	RolesAt hcl.Range `hcl:"roles,attr_range"`
	// Person, when written, is the user whose records the client may see: their own, and
	// those of the projects and groups that they lead by the directory.
	Person hcl.String `hcl:"person,optional"`
	// Rows, when written, are the only records that the client may see: those that
	// have, for at least one element of the list, under each of its keys one of the
	// values.
	Rows []map[string][]hcl.String `hcl:"rows,optional"`
	// RowsAt is where they are written.
	RowsAt hcl.Range `hcl:"rows,attr_range"`
	// Pseudonyms shows the client pseudonyms in the place of the names of persons.
	Pseudonyms bool `hcl:"pseudonyms,optional"`
	// PseudonymsAt is where that is written.
	PseudonymsAt hcl.Range `hcl:"pseudonyms,attr_range"`
}

// noRole is the plain_role of a listener that only says how it is.
const noRole = "none"

// plainRights are what a plain listener can give.
const plainRights = identity.Monitor | identity.Read | identity.Write

// Rules returns who may do what.
func (c *Config) Rules() access.Rules {
	r := access.Rules{Clients: map[string]access.Client{}, Hosts: c.Aggregator.API.plainHosts(), Framers: textsOf(c.Access.WidgetOrigins)}
	if plain := c.Access.PlainRole.Value; plain != "" && plain != noRole {
		r.Plain, _ = identity.ParseRights(plain) // an error gives none, and is reported by validate
		r.Plain &= plainRights
	}
	for _, view := range c.Access.Views {
		r.Views = append(r.Views, access.SavedView{Name: view.Name.Value, Address: view.Address.Value})
	}
	for i := range c.Access.Clients {
		r.Clients[c.Access.Clients[i].Name.Value] = c.Access.Clients[i].clientRules()
	}
	if c.Access.OIDC != nil {
		r.OIDC = c.Access.OIDC.oidcRules()
	}
	return r
}

func (c *AccessClient) clientRules() access.Client {
	out := access.Client{Rows: access.AllRows()}
	if c.RolesAt != (hcl.Range{}) {
		rights, _ := c.parseRights()
		out.Rights = &rights
	}
	out.Person, out.Pseudonyms = c.Person.Value, c.Pseudonyms
	if c.RowsAt != (hcl.Range{}) {
		out.Rows = access.SomeRows(c.rowGrants()...)
	}
	return out
}

func (c *AccessClient) parseRights() (rights identity.Rights, diags hcl.Diagnostics) {
	for _, role := range c.Roles {
		r, err := identity.ParseRights(role.Value)
		if err != nil || strings.Contains(role.Value, ",") {
			diags.Add(hcl.Errorf(role.Range, `invalid value for "roles"`, "unknown role %q; %s", role.Value, hcl.DidYouMean(role.Value, identity.RightNames())))
		}
		rights |= r
	}
	return rights, diags
}

func (c *AccessClient) rowGrants() []access.Grant {
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
	switch plain := a.PlainRole; {
	case plain.Value == noRole:
	case plain.Value != "":
		diags.Extend(checkPlainRole(plain))
	case plain.Range != (hcl.Range{}):
		diags.Add(hcl.Errorf(plain.Range, `invalid value for "plain_role"`, "it is empty; expected roles such as read,write, or none"))
	default:
		diags.Extend(api.checkMissingRole())
	}
	for i := range a.Clients {
		diags.Extend(a.Clients[i].validate())
	}
	if a.OIDC != nil {
		diags.Extend(a.OIDC.validate())
	}
	diags.Extend(validateViews(a.Views))
	for _, o := range a.WidgetOrigins {
		if why := originProblem(o.Value); why != "" {
			diags.Add(hcl.Errorf(o.Range, `invalid value for "widget_origins"`, "%q; %s", o.Value, why))
		}
	}
	return diags
}

// originProblem says why no pages of an origin may show the widget; "" where they may.
func originProblem(origin string) string {
	parts := regexp.MustCompile(`^(https?)://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?$`).FindStringSubmatch(origin)
	switch {
	case parts == nil:
		return "expected an origin such as https://ood.example.org, with its port where that is not 443, and without a path or wildcards"
	case parts[1] == "http" && !local.IsLoopback(parts[2]):
		return "expected https, since others on the way could put any page around the widget"
	}
	return ""
}

// checkPlainRole reports roles that do not exist, and those that no plain listener gives.
func checkPlainRole(plain hcl.String) hcl.Diagnostics {
	rights, err := identity.ParseRights(plain.Value)
	if err != nil {
		return hcl.Diagnostics{hcl.Errorf(plain.Range, `invalid value for "plain_role"`, "%q; expected none, or some of %s with commas between them", plain.Value, plainRights)}
	}
	if more := rights &^ plainRights; more != 0 {
		return hcl.Diagnostics{hcl.Errorf(plain.Range, `invalid value for "plain_role"`, "%s is never given without a certificate, since any user of this machine and any page in its browsers could use it; administer over the unix socket (root and the group bursar may, and bursar finds it by itself) or with a certificate, and keep some of %s, or none", more, plainRights)}
	}
	return nil
}

// checkMissingRole reports plain listeners of which nothing says what they give.
func (a *API) checkMissingRole() hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, l := range a.Listen {
		switch {
		case a.AllowPlainRemote && !local.IsLoopback(l.Host):
			diags.Add(hcl.Errorf(l.Range, "plain listener without a role", "other machines reach %s without a certificate; grant a role to everyone there: access { plain_role = \"read,write\" }, or none", l))
		case l.Range != (hcl.Range{}):
			diags.Add(hcl.Warnf(l.Range, "plain listener without a role", "%s serves /health_check alone; say access { plain_role = \"read,write\" } for AUDITOR's clients on this machine, \"monitor\" for Prometheus, or \"none\"; to administer, use the unix socket, which bursar finds by itself", l))
		}
	}
	return diags
}

// plainHosts are the names by which the plain listeners are asked.
func (a *API) plainHosts() origin.Hosts {
	var names origin.Hosts
	for _, h := range a.Hosts {
		names = append(names, h.Value)
	}
	for _, l := range a.Listen {
		if ip, err := netip.ParseAddr(l.Host); l.Host != "" && (err != nil || !ip.IsUnspecified()) {
			names = append(names, l.Host)
		}
	}
	return names
}

// checkPseudonyms says what cannot go with pseudonyms.
func (c *AccessClient) checkPseudonyms(rights identity.Rights) hcl.Diagnostics {
	switch {
	case !c.Pseudonyms:
		return nil
	case c.RolesAt != (hcl.Range{}) && rights != identity.Read:
		return hcl.Diagnostics{hcl.Errorf(c.PseudonymsAt, `invalid value for "pseudonyms"`, `it goes with roles = ["read"] alone; other roles show names or change them`)}
	case c.Person.Range != (hcl.Range{}):
		return hcl.Diagnostics{hcl.Errorf(c.PseudonymsAt, `invalid value for "pseudonyms"`, "a person and pseudonyms exclude each other: who sees the records of one person knows the name")}
	}
	return nil
}

func (c *AccessClient) validate() hcl.Diagnostics {
	rights, diags := c.parseRights()
	diags.Extend(c.checkPseudonyms(rights))
	if c.Name.Value == "" {
		diags.Add(hcl.Errorf(c.Name.Range, "client without a name", "the label is the name in the certificate"))
	}
	if c.RolesAt == (hcl.Range{}) && c.RowsAt == (hcl.Range{}) && c.Person.Range == (hcl.Range{}) && !c.Pseudonyms {
		diags.Add(hcl.Errorf(c.Name.Range, "client without roles", "%q needs roles, rows, a person or pseudonyms", c.Name.Value))
	}
	if c.Person.Range != (hcl.Range{}) && (c.Person.Value == "" || c.RowsAt != (hcl.Range{})) {
		diags.Add(hcl.Errorf(c.Person.Range, `invalid value for "person"`, "expected the name of a user, and no rows beside it"))
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
