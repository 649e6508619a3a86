package access

import (
	"context"
	"fmt"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// Principal makes a request. The zero value has no rights.
type Principal struct {
	// Name is for the log, and for what is stored about who did something. It is
	// empty when the certificate, if any, names no one.
	Name string
	// Rights are its roles.
	Rights identity.Rights
	// Rows are the records that it may see.
	Rows Rows
	// Person is the user whose records these are, by the directory; "" where Rows do not
	// follow from one.
	Person string
	// Pseudonyms says that it sees pseudonyms in the place of the names of persons.
	Pseudonyms bool
	// Why says why it has no roles, when that has a reason of its own.
	Why string
	// Stale says that a new connection would have to prove again who is there.
	Stale bool
	// Plain says that the request came to a plain TCP address and is of no session, so
	// any user or browser of this machine may have made it.
	Plain bool
	// Misdirected says that the request is for a host that this node does not have;
	// Why says for which one.
	Misdirected bool
}

// May reports whether p has one of the roles, by itself or by one that includes
// it.
func (p Principal) May(of identity.Rights) bool { return p.Rights.Any(of) }

// SeesAll reports whether p reads all records, and so whatever is said of people.
func (p Principal) SeesAll() bool { return p.May(identity.Read) && p.Rows.All() && !p.Pseudonyms }

// Refusal says in words why p may not do what takes one of the roles.
func (p Principal) Refusal(what string, of identity.Rights) string {
	switch {
	case p.Rights == 0 && p.Why != "":
		return fmt.Sprintf("%s takes the role %s: %s", what, rolesInWords(of), p.Why)
	case p.Rights == 0:
		return fmt.Sprintf("%s takes the role %s, and %s has no role", what, rolesInWords(of), p.Name)
	}
	return fmt.Sprintf("%s takes the role %s, and %s has %s only", what, rolesInWords(of), p.Name, p.Rights)
}

// Daemon is the daemon itself: it sees everything. No request comes from it.
func Daemon() Principal {
	return Principal{Name: "bursar", Rights: identity.Admin, Rows: AllRows()}
}

type key struct{}

// With returns a context of a request by p.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns who makes the request of ctx; no one without one.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(key{}).(Principal)
	return p
}

type localKey struct{}

// WithLocal returns a context of a connection over the unix socket, which user made.
func WithLocal(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, localKey{}, user)
}

// localUser returns who made the connection over the unix socket; false for another
// connection.
func localUser(ctx context.Context) (user string, ok bool) {
	user, ok = ctx.Value(localKey{}).(string)
	return user, ok
}
