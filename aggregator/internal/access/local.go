package access

import "context"

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
