package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/httpapi"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/queue"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/local"
)

const (
	// maxConnections at a time; a plugin may have 4096 open files.
	maxConnections = 1024
	// portTime is how long the port may still be in use, by the process before.
	portTime = 15 * time.Second

	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
)

// listener is the HTTP server with all that belongs to it.
type listener struct {
	addr   net.Addr
	server *http.Server
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	ended chan struct{} // closed when it serves no more
	err   error         // why
}

// startListener opens the port and serves it until close.
func startListener(ctx context.Context, s *settings, q *queue.Queue, log *slog.Logger) (*listener, error) {
	port, err := openPort(ctx, s, log)
	if err != nil {
		return nil, err
	}
	may := httpapi.Anybody
	if s.keys != nil {
		may = httpapi.Writers(s.keys, s.Writers)
	}
	l := &listener{addr: port.Addr(), ended: make(chan struct{})}
	alive, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.server = &http.Server{
		Handler:           endOldConns(s.keys, httpapi.New(httpapi.Options{Queue: q, May: may, Hosts: append(slices.Clone([]string(s.Hosts)), s.Listen), Kinds: s.kinds, MaxBody: s.MaxBody.Bytes, Patience: s.Patience, Log: log})),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext:       connGeneration(s.keys),
	}
	port = netutil.LimitListener(port, maxConnections)
	if s.keys != nil {
		l.server.TLSConfig = s.keys.Public()
		l.tasks.Go(func() { _ = s.keys.Run(alive, log) }) // it returns nil only
	}
	log.Info("clients of AUDITOR can push", "address", l.addr.String(), "tls", s.keys != nil)
	l.tasks.Go(func() { l.servePort(port) })
	return l, nil
}

// openPort opens the port, or the socket where there is no address.
func openPort(ctx context.Context, s *settings, log *slog.Logger) (net.Listener, error) {
	if s.Listen != "" {
		var config net.ListenConfig
		return waitForPort(ctx, func() (net.Listener, error) { return config.Listen(ctx, "tcp", s.Listen) })
	}
	if err := os.MkdirAll(filepath.Dir(s.socket), 0o755); err != nil { //nolint:gosec // other users have to get to the socket
		return nil, fmt.Errorf("socket %s: %w", s.socket, err)
	}
	l, err := waitForPort(ctx, func() (net.Listener, error) { return local.Listen(s.socket, 0o666) })
	if err != nil {
		return nil, err
	}
	return &peers{l, s.uids, log}, nil
}

// peers lets in the processes of some users.
type peers struct {
	net.Listener

	uids []int
	log  *slog.Logger
}

// Accept asks the kernel who is at the other end before a byte is read.
func (p *peers) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, err := local.Peer(conn)
		if err == nil && slices.Contains(p.uids, uid) {
			return conn, nil
		}
		p.log.Debug("a process was not let in by the socket; its user is not in socket_users", "uid", uid, "error", err)
		conn.Close()
	}
}

// waitForPort opens the port, and waits for it while another process has it.
func waitForPort(ctx context.Context, open func() (net.Listener, error)) (net.Listener, error) {
	end := time.Now().Add(portTime)
	for {
		port, err := open()
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, local.ErrInUse) || time.Now().After(end) {
			return port, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *listener) servePort(port net.Listener) {
	defer close(l.ended)
	if l.server.TLSConfig != nil {
		l.err = l.server.ServeTLS(port, "", "")
		return
	}
	l.err = l.server.Serve(port)
}

// onEnd calls end when nothing is served any more, until stop is called.
func (l *listener) onEnd(end context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-l.ended:
			end(fmt.Errorf("listen on %s: %w", l.addr, l.err))
		case <-done:
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// close breaks all connections off and waits until all has ended.
func (l *listener) close() error {
	l.cancel()
	err := l.server.Close()
	l.tasks.Wait()
	return err
}

// bornKey is that of the generation of certificates in which a connection began.
type bornKey struct{}

func connGeneration(keys *identity.Keys) func(context.Context, net.Conn) context.Context {
	if keys == nil {
		return nil
	}
	return func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, bornKey{}, keys.Generation())
	}
}

// endOldConns ends connections that show certificates of old, after their answer.
func endOldConns(keys *identity.Keys, next http.Handler) http.Handler {
	if keys == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(bornKey{}) != any(keys.Generation()) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
