package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// ErrClosed says that the connection was closed before the call.
var ErrClosed = errors.New("the connection is closed")

// Connect prepares a connection, which is made at its first call.
type Connect func() (*grpc.ClientConn, error)

// Connection is a [grpc.ClientConnInterface]. It is safe for use by many goroutines.
type Connection struct {
	connect    Connect
	generation func() uint64

	mu     sync.Mutex
	now    *transport
	next   *transport // is being made to take the place of now; nil: none
	closed bool
}

// transport is one connection and the calls on it. It is guarded by its Connection.
type transport struct {
	conn       *grpc.ClientConn
	generation uint64
	calls      int
	retired    bool
}

// NewConnection makes a connection. generation counts how often the own certificates were renewed;
// nil: they never are. The caller closes it.
func NewConnection(connect Connect, generation func() uint64) (*Connection, error) {
	if generation == nil {
		generation = func() uint64 { return 0 }
	}
	l := &Connection{connect: connect, generation: generation}
	var err error
	l.now, err = l.prepareConnection()
	return l, err
}

// prepareConnection prepares a connection of the present generation.
func (l *Connection) prepareConnection() (*transport, error) {
	w := &transport{generation: l.generation()}
	var err error
	w.conn, err = l.connect()
	return w, err
}

// Invoke implements grpc.ClientConnInterface.
func (l *Connection) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	w, err := l.takeConnection(ctx)
	if err != nil {
		return err
	}
	defer l.leaveConnection(w)
	return w.conn.Invoke(ctx, method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (l *Connection) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	w, err := l.takeConnection(ctx)
	if err != nil {
		return nil, err
	}
	leave := sync.OnceFunc(func() { l.leaveConnection(w) })
	stream, err := w.conn.NewStream(ctx, desc, method, append(opts, grpc.OnFinish(func(error) { leave() }))...)
	if err != nil {
		leave()
	}
	return stream, err
}

// hurry is how long the first call after a renewal waits for the new connection,
// so that it need not be one of the last on the old one: a pull takes its time.
const hurry = time.Second

// takeConnection returns the connection for the next call, which leaves it when it is over.
func (l *Connection) takeConnection(ctx context.Context) (*transport, error) {
	if next := l.beginConnection(); next != nil {
		awaitStanding(ctx, next.conn)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	l.changeConnection()
	l.now.calls++
	return l.now, nil
}

// beginConnection begins a new connection where the present one is of old; nil: it is not,
// or the new one is being made already.
func (l *Connection) beginConnection() *transport {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.next != nil || l.generation() == l.now.generation {
		return nil
	}
	next, err := l.prepareConnection()
	if err != nil {
		return nil // the next call tries again
	}
	l.next = next
	return next
}

// awaitStanding returns when the connection stands, cannot be made, or takes long.
func awaitStanding(ctx context.Context, conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(ctx, hurry)
	defer cancel()
	conn.Connect()
	for {
		state := conn.GetState()
		if state == connectivity.Ready || state == connectivity.TransientFailure || !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// changeConnection puts the new connection in the place of the present one once it stands.
// l.mu is held.
func (l *Connection) changeConnection() {
	if l.next == nil {
		return
	}
	switch l.next.conn.GetState() {
	case connectivity.Ready:
		old := l.now
		l.now, l.next = l.next, nil
		l.retireConnection(old)
	case connectivity.Idle:
		l.next.conn.Connect()
	case connectivity.Connecting, connectivity.TransientFailure, connectivity.Shutdown: // gRPC tries again by itself
	}
}

// retireConnection closes a connection after the last call on it. l.mu is held.
func (l *Connection) retireConnection(w *transport) {
	w.retired = true
	if w.calls == 0 {
		_ = w.conn.Close() // nothing is lost with a connection
	}
}

func (l *Connection) leaveConnection(w *transport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.calls--
	if w.retired && w.calls == 0 {
		_ = w.conn.Close() // nothing is lost with a connection
	}
}

// Close ends the connection; calls under way fail, but for those on one that is
// being replaced.
func (l *Connection) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.next != nil {
		_ = l.next.conn.Close() // it was never used
	}
	return l.now.conn.Close()
}
