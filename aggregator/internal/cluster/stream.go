package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// address is a net.Addr that is told to the peers as it is.
type address string

// Network returns "tcp".
func (a address) Network() string { return "tcp" }

// String returns the address.
func (a address) String() string { return string(a) }

// loneStream is the stream layer of a node that is a cluster of one. It reaches
// itself only.
type loneStream struct {
	addr   address
	calls  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newLoneStream(addr string) *loneStream {
	return &loneStream{addr: address(addr), calls: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept returns the other end of a Dial.
func (l *loneStream) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Dial reaches the node itself.
func (l *loneStream) Dial(to raft.ServerAddress, _ time.Duration) (net.Conn, error) {
	if string(to) != string(l.addr) {
		return nil, fmt.Errorf("cluster: this node has no raft listener and cannot reach %s", to)
	}
	near, far := net.Pipe()
	select {
	case l.calls <- far:
		return near, nil
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, near.Close(), far.Close())
	}
}

// Close ends Accept.
func (l *loneStream) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address in the cluster's configuration.
func (l *loneStream) Addr() net.Addr { return l.addr }

// queue hands out connections that have proved themselves.
type queue struct {
	addr   net.Addr
	ready  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newQueue(addr net.Addr) *queue {
	return &queue{addr: addr, ready: make(chan net.Conn, 16), closed: make(chan struct{})}
}

// putConnection hands a connection on, and closes it where no one takes it.
func (q *queue) putConnection(c net.Conn) {
	select {
	case <-q.closed:
		c.Close()
		return
	default:
	}
	select {
	case q.ready <- c:
	default: // no one serves: the peer tries again
		c.Close()
	}
}

// Accept returns the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.ready:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept; connections are their users' business.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr returns the address that peers use.
func (q *queue) Addr() net.Addr { return q.addr }

// raftStream is the raft half of a Transport. Addresses that are dialled carry
// the id of the node that is meant, see meant. The node itself it reaches
// without a network.
type raftStream struct {
	*queue
	t    *Transport
	self *loneStream
}

// joinIDAndAddress joins an id and an address into what raftStream dials.
func joinIDAndAddress(id raft.ServerID, addr raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(id) + "@" + addr
}

// hearOwnCalls hands on the calls of the node to itself.
func (s *raftStream) hearOwnCalls() {
	for {
		c, err := s.self.Accept()
		if err != nil {
			return
		}
		s.putConnection(c)
	}
}

// Dial connects to the node whose id the address carries.
func (s *raftStream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	select {
	case <-s.closed:
		return nil, net.ErrClosed
	default:
	}
	id, addr, ok := strings.Cut(string(to), "@")
	if !ok || id == "" {
		return nil, fmt.Errorf("cluster: dial %s: it does not say which node is meant", to)
	}
	if id == s.t.conf.ID {
		return s.self.Dial(raft.ServerAddress(s.self.addr), timeout)
	}
	ctx, cancel := context.WithTimeout(s.t.ctx, timeout)
	defer cancel()
	node := Server{ID: id, Addr: addr}
	c, err := s.t.greetNode(ctx, node, forRaft)
	if err != nil {
		return nil, err
	}
	s.t.noteDialled(c, node)
	return c, nil
}

// Close ends the raft half.
func (s *raftStream) Close() error { return errors.Join(s.queue.Close(), s.self.Close()) }

// tracked closes, with the stream, all that came from it: raft's transport
// would wait for ever on connections that a peer keeps open. It also bounds
// their number.
type tracked struct {
	raft.StreamLayer
	mu     sync.Mutex
	conns  map[*trackedConn]struct{}
	closed bool
}

func newTracked(under raft.StreamLayer) *tracked {
	return &tracked{StreamLayer: under, conns: map[*trackedConn]struct{}{}}
}

// trackedConn leaves the set when it is closed.
type trackedConn struct {
	net.Conn
	of *tracked
}

// Read reads; an end that this side has made is an orderly end, for raft would
// report it as an error.
func (c *trackedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		err = io.EOF
	}
	return n, err
}

// Close closes the connection.
func (c *trackedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// keepConnection adds a connection unless the stream is closed or there are too many.
func (t *tracked) keepConnection(conn net.Conn) (net.Conn, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.conns) >= 2*maxConns {
		conn.Close()
		return nil, false
	}
	c := &trackedConn{Conn: conn, of: t}
	t.conns[c] = struct{}{}
	return c, true
}

// Accept returns the next connection that finds room.
func (t *tracked) Accept() (net.Conn, error) {
	for {
		conn, err := t.StreamLayer.Accept()
		if err != nil {
			return nil, err
		}
		if c, ok := t.keepConnection(conn); ok {
			return c, nil
		}
	}
}

// Dial connects to a peer.
func (t *tracked) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	conn, err := t.StreamLayer.Dial(addr, timeout)
	if err != nil {
		return nil, err
	}
	c, ok := t.keepConnection(conn)
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close closes the stream and every connection of it.
func (t *tracked) Close() error {
	err := t.StreamLayer.Close()
	t.mu.Lock()
	t.closed = true
	var open []net.Conn
	for c := range t.conns {
		open = append(open, c.Conn)
	}
	t.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	return err
}
