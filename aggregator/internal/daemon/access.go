package daemon

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/record"
)

// maxConnection is how old a connection of the REST interface may get, so that
// certificates that were renewed, and authorities that went, count for all.
const maxConnection = time.Hour

// makeGate makes the gate by which requests come in.
func (a *Aggregator) makeGate() *access.Gate {
	a.bearers = &bearers{a: a, used: map[string]enrol.BearerUse{}, noted: map[string]time.Time{}}
	a.gate = &access.Gate{Tokens: a.bearers, Own: a.ownRows}
	if a.set.Keys != nil {
		a.gate.Certificates = a.set.Keys
		a.registry.MustRegister(a.set.Keys.Collector())
	}
	a.gate.Set(a.set.Access)
	return a.gate
}

// ownRows are the records of a person, as the directory says now.
func (a *Aggregator) ownRows(person string) access.Rows {
	return access.TestedRows(a.currentDirectory().Own(person, record.Time(calendar.Now().UnixMicro())))
}

// SetAccess changes who may do what, for open connections too.
func (a *Aggregator) SetAccess(r access.Rules) { a.gate.Set(r) }

type begunKey struct{}

// begun says when a connection began.
type begun struct {
	at         time.Time
	generation uint64 // of this node's certificates
}

// certGeneration counts how often this node's certificates were renewed.
func (a *Aggregator) certGeneration() uint64 {
	if a.set.Keys == nil {
		return 0
	}
	return a.set.Keys.Generation()
}

// connContext has the context note when a connection began, and who made it over the unix socket.
func (a *Aggregator) connContext(ctx context.Context, c net.Conn) context.Context {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		if _, ok := wrapped.NetConn().(*net.UnixConn); ok {
			ctx = access.WithLocal(ctx, a.socketUser(wrapped.NetConn()))
		}
	}
	return context.WithValue(ctx, begunKey{}, begun{time.Now(), a.certGeneration()})
}

// closeOldConns ends connections that are old, or older than this node's certificates,
// after the request that they are at: the next one shows what is valid now at both
// ends.
func (a *Aggregator) closeOldConns(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := r.Context().Value(begunKey{}).(begun)
		if ok && (time.Since(b.at) > maxConnection || r.TLS != nil && b.generation != a.certGeneration()) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
