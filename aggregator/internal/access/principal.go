package access

import (
	"context"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// Principal is who asks. The zero value is nobody.
type Principal struct {
	// Name is for the log, and for what is stored about who did something.
	Name string
	// Rights are its roles.
	Rights identity.Rights
	// Rows are the records that it may see.
	Rows Rows
}

// May reports whether p has one of the roles, by itself or by one that includes
// it.
func (p Principal) May(of identity.Rights) bool { return p.Rights.Any(of) }

// Daemon is the daemon itself: it sees everything. No request comes from it.
func Daemon() Principal {
	return Principal{Name: "bursar", Rights: identity.Admin, Rows: AllRows()}
}

type key struct{}

// With returns a context of a request by p.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns who makes the request of ctx; nobody without one.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(key{}).(Principal)
	return p
}
