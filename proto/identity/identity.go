package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Role is what a peer may be.
type Role string

// The roles that a certificate can carry.
const (
	Aggregator Role = "aggregator"
	Agent      Role = "agent"
	Client     Role = "client"
)

// Roles lists all roles.
func Roles() []Role { return []Role{Aggregator, Agent, Client} }

// scheme of the URI that carries an identity.
const scheme = "bursar"

// Identity is a role and a name, and of a client what it may do.
type Identity struct {
	Role   Role
	Name   string
	Rights Rights // of a client only
}

// String returns role/name.
func (id Identity) String() string { return string(id.Role) + "/" + id.Name }

// URI returns the subject alternative name that carries id.
func (id Identity) URI() *url.URL {
	u := &url.URL{Scheme: scheme, Host: string(id.Role), Path: "/" + id.Name}
	if id.Rights != 0 {
		u.RawQuery = rightsKey + id.Rights.String()
	}
	return u
}

// rightsKey is what stands before the roles of a client.
const rightsKey = "roles="

// parseURI reads what URI writes, and nothing else.
func parseURI(u *url.URL) (Identity, error) {
	id := Identity{Role: Role(u.Host), Name: strings.TrimPrefix(u.Path, "/")}
	if !slices.Contains(Roles(), id.Role) {
		return id, fmt.Errorf("%w: the certificate carries the unknown role %q", ErrIdentity, u.Host)
	}
	if err := CheckName(id.Name); err != nil {
		return id, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	if u.RawQuery != "" {
		rights, ok := strings.CutPrefix(u.RawQuery, rightsKey)
		if !ok || id.Role != Client {
			return id, fmt.Errorf("%w: the certificate of %s carries %q", ErrIdentity, id, u.RawQuery)
		}
		var err error
		if id.Rights, err = ParseRights(rights); err != nil {
			return id, err
		}
	}
	if u.User != nil || u.Opaque != "" || u.Fragment != "" || u.ForceQuery {
		return id, fmt.Errorf("%w: the certificate of %s carries more than an identity", ErrIdentity, id)
	}
	return id, nil
}

// ErrIdentity is wrapped by the errors about a peer that is not who it should
// be.
var ErrIdentity = errors.New("wrong identity")

var validName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$`)

// CheckName returns an error when name cannot name a peer: it is letters,
// digits, dots, dashes and underscores, at most 128.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is no name of a peer: use letters, digits, '.', '-' and '_', at most 128", name)
	}
	return nil
}

// Of returns the identity in a certificate. One without a role is a client named
// by its common name, without roles. The error wraps [ErrIdentity].
func Of(cert *x509.Certificate) (Identity, error) {
	var found []*url.URL
	for _, u := range cert.URIs {
		if u.Scheme == scheme {
			found = append(found, u)
		}
	}
	switch len(found) {
	case 0:
		return Identity{Role: Client, Name: cert.Subject.CommonName}, nil
	case 1:
		id, err := parseURI(found[0])
		if err != nil {
			return Identity{}, err
		}
		return id, nil
	}
	return Identity{}, fmt.Errorf("%w: the certificate carries %d identities", ErrIdentity, len(found))
}

// Peer returns the identity of the other end of a connection whose certificate
// was verified. The error wraps [ErrIdentity].
func Peer(state tls.ConnectionState) (Identity, error) {
	if len(state.VerifiedChains) == 0 {
		return Identity{}, fmt.Errorf("%w: no verified certificate", ErrIdentity)
	}
	return Of(state.PeerCertificates[0])
}

// requireRole returns a check of a connection that accepts the roles, and of these
// only the one with that name when name is not empty.
func requireRole(name string, roles ...Role) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		id, err := Peer(state)
		if err != nil {
			return err
		}
		if !slices.Contains(roles, id.Role) {
			return fmt.Errorf("%w: the peer's certificate is for %s, and this end accepts %s only", ErrIdentity, id, joinRoles(roles))
		}
		if name != "" && id.Name != name {
			return fmt.Errorf("%w: the peer's certificate is for %s, want %s", ErrIdentity, id, name)
		}
		return nil
	}
}

func joinRoles(roles []Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, " or ")
}
