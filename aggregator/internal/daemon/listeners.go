package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/proto/identity"
)

const (
	// stopTime is how long requests may take to end when the daemon stops.
	stopTime = 10 * time.Second
	// transferTime bounds the search for another leader at the end.
	transferTime = 5 * time.Second
)

// serveListeners serves on all listeners until ctx ends. Then the leadership goes to
// another node and the requests end.
func (a *Aggregator) serveListeners(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-ctx.Done()
		a.transferLeadership(context.WithoutCancel(ctx))
		a.arrivals.Close()
		return nil
	})
	if l := a.set.Local; l != nil {
		g.Go(func() error { return a.serveREST(ctx, l, nil) })
	}
	for _, l := range a.set.Plain {
		g.Go(func() error { return a.serveREST(ctx, l, nil) })
	}
	for _, l := range a.set.TLS {
		g.Go(func() error { return a.serveREST(ctx, l, a.set.Keys.OpenToAgents()) })
	}
	return g.Wait()
}

// transferLeadership gives the leadership away, if this node has it and another one can.
func (a *Aggregator) transferLeadership(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	err := a.peer.TransferLeadership(ctx)
	if err != nil && !errors.Is(err, cluster.ErrNotLeader) && !errors.Is(err, cluster.ErrNoPeer) {
		a.set.Log.Warn("the leadership could not be handed on before the end", "error", err)
	}
}

// serveREST serves the REST interface on a listener until ctx ends, without TLS where keys is
// nil. Then it accepts no connections, each answer closes its connection, and it returns when
// the requests have ended.
func (a *Aggregator) serveREST(ctx context.Context, l net.Listener, keys *tls.Config) error {
	server := a.newHTTPServer(ctx, keys)
	l = a.conns.Listener(l)
	if keys != nil {
		l = tls.NewListener(l, keys)
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { ended <- endRequests(context.WithoutCancel(ctx), server) })
	err := server.Serve(l)
	if stop() {
		return errors.Join(fmt.Errorf("serve on %s: %w", l.Addr(), err), endRequests(context.WithoutCancel(ctx), server))
	}
	return <-ended
}

// newHTTPServer returns the server of the REST interface, and of the agents that dial in.
func (a *Aggregator) newHTTPServer(ctx context.Context, keys *tls.Config) *http.Server {
	s := &http.Server{
		Handler:           a.closeOldConns(a.server),
		ConnContext:       a.connContext,
		TLSConfig:         keys,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(&refusals{log: a.set.Log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){identity.AgentProtocol: a.serveAgent},
		Protocols:         new(http.Protocols),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true) // TLSNextProto alone would end it
	return s
}

// serveAgent keeps the connection of an agent that dials in until it ends. It is not a client
// of the REST interface: the bound of an address is not for many agents behind one.
func (a *Aggregator) serveAgent(_ *http.Server, conn *tls.Conn, _ http.Handler) {
	api.Uncount(conn.NetConn())
	a.arrivals.Serve(conn)
}

// endRequests lets the requests end that are under way, and breaks off those that take longer
// than stopTime.
func endRequests(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	err := errors.Join(server.Shutdown(ctx), server.Close())
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
