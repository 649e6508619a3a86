package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/door"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/queue"
	"github.com/bursar-accounting/bursar/proto/identity"
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

// listen opens the port and serves it until close.
func listen(ctx context.Context, s *settings, q *queue.Queue, log *slog.Logger) (*listener, error) {
	port, err := await(ctx, s.listen)
	if err != nil {
		return nil, err
	}
	may := door.Anybody
	if s.keys != nil {
		may = door.Writers(s.keys, s.writers)
	}
	l := &listener{addr: port.Addr(), ended: make(chan struct{})}
	alive, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.server = &http.Server{
		Handler:           renew(s.keys, door.New(door.Options{Queue: q, May: may, Hosts: append(slices.Clone(s.hosts), s.listen), Kinds: s.kinds, MaxBody: s.maxBody, Patience: s.patience, Log: log})),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext:       born(s.keys),
	}
	port = netutil.LimitListener(port, maxConnections)
	if s.keys != nil {
		l.server.TLSConfig = s.keys.Public()
		l.tasks.Go(func() { _ = s.keys.Run(alive, log) }) // it returns nil only
	}
	log.Info("clients of AUDITOR can push", "address", l.addr.String(), "tls", s.keys != nil)
	l.tasks.Go(func() { l.serve(port) })
	return l, nil
}

// await opens the port, and waits for it while another process has it.
func await(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	end := time.Now().Add(portTime)
	for {
		port, err := config.Listen(ctx, "tcp", address)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return port, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *listener) serve(port net.Listener) {
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

func born(keys *identity.Keys) func(context.Context, net.Conn) context.Context {
	if keys == nil {
		return nil
	}
	return func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, bornKey{}, keys.Generation())
	}
}

// renew ends connections that show certificates of old, after their answer.
func renew(keys *identity.Keys, next http.Handler) http.Handler {
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
