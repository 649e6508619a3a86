package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/proto/identity"
)

const (
	// stopTime is how long requests may take to end when the daemon stops.
	stopTime = 10 * time.Second
	// farewell is how long clients whose connections wait for their next request
	// are told, with the answer to it, that this one is the last.
	farewell = 2 * time.Second
	// transferTime bounds the search for another leader at the end.
	transferTime = 5 * time.Second
	// lastCallers is how long callers who are at the door are let in.
	lastCallers = 20 * time.Millisecond
)

// serveListeners serves on all listeners until ctx ends. Then the leadership goes to
// another node and the requests end.
func (a *Aggregator) serveListeners(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	patience := time.Duration(0)
	if a.transport != nil {
		patience = farewell // other nodes can answer what comes next
	}
	g.Go(func() error {
		<-ctx.Done()
		a.transferLeadership(context.WithoutCancel(ctx))
		a.arrivals.Close()
		return nil
	})
	if l := a.set.Local; l != nil {
		g.Go(func() error { return a.newFront(ctx, l, nil).serveUntilDone(ctx, patience) })
	}
	for _, l := range a.set.Plain {
		g.Go(func() error { return a.newFront(ctx, l, nil).serveUntilDone(ctx, patience) })
	}
	for _, l := range a.set.TLS {
		g.Go(func() error { return a.newFront(ctx, l, a.set.Keys.OpenToAgents()).serveUntilDone(ctx, patience) })
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

// front is the REST interface on one listener. It ends in steps, so that no
// request fails that another node could have answered: no one new is let in, each
// answer says that it is the last of its connection, and what stays silent after
// that is closed.
type front struct {
	server  *http.Server
	door    *drainingListener
	limits  *api.Conns
	secure  *tls.Config // nil: plain
	leaving atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (a *Aggregator) newFront(ctx context.Context, l net.Listener, secure *tls.Config) *front {
	f := &front{door: &drainingListener{Listener: l}, secure: secure, limits: a.conns, conns: map[net.Conn]struct{}{}}
	f.server = &http.Server{
		Handler: a.closeOldConns(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f.leaving.Load() {
				w.Header().Set("Connection", "close")
			}
			a.server.ServeHTTP(w, r)
		})),
		ConnContext:       a.connContext,
		TLSConfig:         secure,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(&refusals{log: a.set.Log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnState:         f.trackConn,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){identity.AgentProtocol: a.serveAgent},
		Protocols:         new(http.Protocols),
	}
	f.server.Protocols.SetHTTP1(true)
	f.server.Protocols.SetHTTP2(true) // TLSNextProto alone would end it
	return f
}

// serveAgent keeps the connection of an agent that dials in until it ends. It is not a client
// of the REST interface: the bound of an address is not for many agents behind one.
func (a *Aggregator) serveAgent(_ *http.Server, conn *tls.Conn, _ http.Handler) {
	api.Uncount(conn.NetConn())
	a.arrivals.Serve(conn)
}

// trackConn follows the connections.
func (f *front) trackConn(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(f.conns, c)
	default:
		f.conns[c] = struct{}{}
	}
}

// connCount counts the connections.
func (f *front) connCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns)
}

// serveUntilDone serves until ctx ends and the requests are done. Patience is how long the
// clients are told that this node goes.
func (f *front) serveUntilDone(ctx context.Context, patience time.Duration) error {
	in, ended := make(chan struct{}), make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		f.leaving.Store(true)
		f.door.drainBacklog()
		<-in
		ended <- f.drainRequests(context.WithoutCancel(ctx), patience)
	})
	l := f.limits.Listener(f.door)
	if f.secure != nil {
		l = tls.NewListener(l, f.secure)
	}
	err := f.server.Serve(l)
	close(in) // all callers
	if stop() {
		return fmt.Errorf("serve on %s: %w", f.door.Addr(), err)
	}
	return <-ended
}

// drainRequests lets the requests of all who were let in end.
func (f *front) drainRequests(ctx context.Context, patience time.Duration) error {
	for until := time.Now().Add(patience); f.connCount() > 0 && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	err := errors.Join(f.server.Shutdown(ctx), f.server.Close())
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// drainingListener is a listener that lets in who has come before it is closed: what the
// kernel has accepted and the program has not would be reset.
type drainingListener struct {
	net.Listener

	leaving atomic.Bool
	once    sync.Once
	failed  error // of the close
}

// Close closes the listener, once.
func (d *drainingListener) Close() error {
	d.once.Do(func() { d.failed = d.Listener.Close() })
	return d.failed
}

// drainBacklog lets in the last callers and then closes the listener. The kernel drops whatever
// begins a further connection: its client tries again a second later, and is refused then.
func (d *drainingListener) drainBacklog() {
	d.leaving.Store(true)
	tcp, ok := d.Listener.(*net.TCPListener)
	if !ok {
		_ = d.Close() // a unix socket, or a listener of a test
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, withoutSyn())
		})
	}
	_ = tcp.SetDeadline(time.Now().Add(lastCallers))
}

// withoutSyn is a filter that drops the segments of TCP with which connections begin.
func withoutSyn() *unix.SockFprog {
	const flags, syn, whole = 13, 2, 1 << 18
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: syn},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: whole},
	}
	return &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
}

// Accept returns the next caller; net.ErrClosed when the last one is in.
func (d *drainingListener) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if !d.leaving.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
		return c, err
	}
	if c := d.acceptWaiting(); c != nil {
		return c, nil
	}
	return nil, errors.Join(net.ErrClosed, d.Close())
}

// acceptWaiting returns a connection that the kernel has accepted by the end of the deadline, which
// keeps [net.Listener] from looking; nil when there is none.
func (d *drainingListener) acceptWaiting() (c net.Conn) {
	tcp, ok := d.Listener.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(listener uintptr) {
		fd, _, err := unix.Accept4(int(listener), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		file := os.NewFile(uintptr(fd), "")
		c, _ = net.FileConn(file)
		_ = file.Close() // the connection has its own descriptor
	})
	return c
}
