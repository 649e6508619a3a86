package access

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/origin"
)

// Rules say what each client may do, beside what its certificate says.
type Rules struct {
	// Plain is what everyone may do who reaches a plain TCP listener.
	Plain identity.Rights
	// Hosts are the names and addresses by which this node is asked without TLS.
	Hosts origin.Hosts
	// Clients are those of whom the configuration says something, by the name in
	// the certificate, and under [AnyClient] those of whom nothing does.
	Clients map[string]Client
	// OIDC is the provider by which people log in at the pages; nil: there is none.
	OIDC *OIDC
	// Framers are the origins whose pages may show the widget in a frame.
	Framers []string
	// Views are what the pages Usage and Records name, for all readers but those with pseudonyms.
	Views []SavedView
}

// SavedView is a name for a view of a page.
type SavedView struct{ Name, Address string }

// OIDC is a provider of OpenID Connect, and what the people may do whom it knows.
type OIDC struct {
	Issuer, ClientID, Secret string
	Scopes                   []string
	// UserClaim names the user as records do, and GroupsClaim has the groups.
	UserClaim, GroupsClaim string
	// Groups say what members may do: the first one that someone is in counts, and
	// [AnyClient] is everyone.
	Groups []GroupClient
}

// GroupClient is what the members of a group of a provider may do.
type GroupClient struct {
	Group  string
	Rights identity.Rights
	Rows   Rows
	// Own gives each of them their own records, by the directory, in place of Rows.
	Own bool
	// Pseudonyms is that of [Principal].
	Pseudonyms bool
}

// Denial says why a user of the provider with these groups may do nothing; "" when there is
// something.
func (o *OIDC) Denial(user string, groups []string) string {
	if p := o.principalOf(Principal{}, user, groups); p.Rights == 0 {
		return p.Why
	}
	return ""
}

// principalOf is what a user of the provider may do.
func (o *OIDC) principalOf(p Principal, user string, groups []string) Principal {
	for _, g := range o.Groups {
		if g.Group != AnyClient && !slices.Contains(groups, g.Group) {
			continue
		}
		if p.Rights, p.Rows, p.Pseudonyms = g.Rights, g.Rows, g.Pseudonyms; g.Own {
			p.Person = user
		}
		return p
	}
	p.Why = "no group of " + user + " has a role here: an administrator gives one by access.oidc of the configuration"
	return p
}

// AnyClient is the name of all clients that have no name of their own in the
// configuration and no role in their certificate, as an AUDITOR without RBAC takes every
// certificate of its CA.
const AnyClient = "*"

// Client is what the configuration says of a client.
type Client struct {
	// Rights take the place of what the certificate says; nil leaves it.
	Rights *identity.Rights
	// Rows are the records that it may see.
	Rows Rows
	// Person, when not empty, is the user whose records these are, by the directory, in
	// place of Rows.
	Person string
	// Pseudonyms is that of [Principal].
	Pseudonyms bool
}

// Of returns the principal that has proved to be id.
func (r *Rules) Of(id identity.Identity) Principal {
	p := Principal{Name: id.String()}
	switch id.Role {
	case identity.Aggregator: // a node holds all of it anyway
		p.Rights, p.Rows = identity.Admin, AllRows()
	case identity.Client:
		p.Rights, p.Rows = id.Rights, AllRows()
		c, ok := r.Clients[id.Name]
		if !ok && id.Rights == 0 {
			c, ok = r.Clients[AnyClient]
		}
		if ok {
			p.Rows, p.Person, p.Pseudonyms = c.Rows, c.Person, c.Pseudonyms
			if c.Rights != nil {
				p.Rights = *c.Rights
			}
		}
	case identity.Agent: // it is pulled from, and asks nothing
	}
	return p
}

// Certificates judge connections that were made before.
type Certificates interface {
	// Valid returns an error when a certificate that was verified once would not
	// be let in any more.
	Valid(chain []*x509.Certificate) error
}

// Gate says who makes a request. The zero value lets no one in.
type Gate struct {
	rules atomic.Pointer[Rules]
	// Certificates judge those of open connections; nil believes them until they
	// end.
	Certificates Certificates
	// Sessions are those of browsers at a plain listener.
	Sessions Sessions
	// Tokens are those of the API; nil: there are none.
	Tokens Tokens
	// Own are the records of a person, by the directory; nil: a person has none.
	Own func(person string) Rows
}

// Set changes the rules, for requests on open connections too.
func (g *Gate) Set(r Rules) { g.rules.Store(&r) }

// OIDC is the provider of the rules; nil: there is none.
func (g *Gate) OIDC() *OIDC {
	if rules := g.rules.Load(); rules != nil {
		return rules.OIDC
	}
	return nil
}

// Framers are the origins whose pages may show the widget in a frame.
func (g *Gate) Framers() []string {
	if rules := g.rules.Load(); rules != nil {
		return rules.Framers
	}
	return nil
}

// Views are the views that pages name.
func (g *Gate) Views() []SavedView {
	if rules := g.rules.Load(); rules != nil {
		return rules.Views
	}
	return nil
}

// Who returns who makes a request: by its certificate, or on a plain listener
// what everyone is there.
func (g *Gate) Who(r *http.Request) Principal {
	rules := g.rules.Load()
	switch {
	case rules == nil:
		return Principal{Why: "this server has no rules of access"}
	case r.Header.Get("Authorization") != "" && g.Tokens != nil:
		return g.bearerOf(rules, r)
	case r.TLS == nil:
		return g.plainPrincipal(rules, r)
	case len(r.TLS.PeerCertificates) == 0:
		if p, ok := g.sessionOf(rules, r); ok {
			return p
		}
		return Principal{Why: "the request came without a certificate: show one (-client-cert and -client-key, or BURSAR_CLIENT_CERT and BURSAR_CLIENT_KEY), or send a token (BURSAR_TOKEN)"}
	}
	id, err := identity.Peer(*r.TLS)
	if err == nil {
		err = g.validateChain(r.TLS.PeerCertificates)
	}
	if err != nil {
		return Principal{Why: err.Error(), Stale: true}
	}
	return g.limitToOwner(rules.Of(id))
}

// limitToOwner gives a principal that is of a person the rows of that person, and takes of one
// that sees pseudonyms what beside reading needs names or changes them.
func (g *Gate) limitToOwner(p Principal) Principal {
	if p.Pseudonyms {
		p.Rights = p.Rights.Whole() & identity.Read
	}
	if p.Person == "" {
		return p
	}
	p.Rows = Rows{}
	if g.Own != nil {
		p.Rows = g.Own(p.Person)
	}
	return p
}

// plainPrincipal returns who makes a request without TLS: the user at the other end of the
// unix socket, who may do everything, the browser of a session, or just anyone.
func (g *Gate) plainPrincipal(rules *Rules, r *http.Request) Principal {
	from, _ := splitHost(r.RemoteAddr)
	p := Principal{Name: "plain at " + from, Why: "this address serves /health_check alone: on this machine, use the unix socket as root or as a member of the group bursar, or open the link that bursar login prints; from others, use a certificate; the configuration gives more by access.plain_role"}
	user, local := localUser(r.Context())
	if local {
		p.Name = user + " at the socket"
	}
	if err := rules.Hosts.Check(r); err != nil {
		return misdirectedPrincipal(p, err)
	}
	p.Rights, p.Rows = rules.Plain, AllRows()
	if local {
		p.Rights = identity.Admin
	} else if by, ok := g.Sessions.sessionOf(r); ok {
		p.Name, p.Rights = "a browser of "+by, p.Rights|sessionRights
	} else if s, ok := g.sessionOf(rules, r); ok {
		s.Rights = s.Rights.Whole() & sessionRights // browsers show the cookie to other ports of this machine
		return s
	} else {
		p.Plain = !rules.Plain.Any(identity.Admin) // no configuration gives that
	}
	return p
}

// misdirectedPrincipal is who asks for a host that this node does not have.
func misdirectedPrincipal(p Principal, err error) Principal {
	p.Why, p.Misdirected = err.Error()+": use the address of this node, or add the name to api.hosts of its configuration", true
	return p
}

func (g *Gate) validateChain(chain []*x509.Certificate) error {
	if g.Certificates != nil {
		return g.Certificates.Valid(chain)
	}
	if end := chain[0].NotAfter; time.Now().After(end) {
		return fmt.Errorf("%w: the certificate ended on %s", identity.ErrIdentity, end.UTC().Format(time.DateOnly))
	}
	return nil
}

// splitHost takes the port off an address; "" when it has none.
func splitHost(address string) (host, port string) {
	if host, port, err := net.SplitHostPort(address); err == nil {
		return host, port
	}
	return address, ""
}
