package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// maxConns bounds the connections that peers may hold at once.
	maxConns = 64
	// handshakeLimit is how long a caller may take to prove who it is.
	handshakeLimit = 5 * time.Second
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

// tlsStream carries raft over mutual TLS 1.3.
type tlsStream struct {
	listener net.Listener
	addr     net.Addr
	conf     *tls.Config
	ready    chan net.Conn
	ctx      context.Context
	cancel   context.CancelFunc
	tasks    sync.WaitGroup
	slots    chan struct{} // handshakes under way
}

// ListenTLS listens on listen for peers and dials them, with TLS 1.3 and
// certificates on both sides. conf has the certificate, RootCAs and ClientCAs;
// its VerifyConnection should demand the role of an aggregator. advertise is the
// address that the peers use; empty means listen as it turned out.
//
// Raft itself trusts everyone who connects, so nothing but this may carry it
// between machines.
func ListenTLS(listen, advertise string, conf *tls.Config) (raft.StreamLayer, error) {
	if conf == nil || conf.RootCAs == nil || conf.ClientCAs == nil {
		return nil, errors.New("cluster: raft listener: a CA for both directions is required")
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("cluster: raft listener: %w", err)
	}
	conf = conf.Clone()
	conf.MinVersion = tls.VersionTLS13
	conf.ClientAuth = tls.RequireAndVerifyClientCert
	s := &tlsStream{listener: l, addr: l.Addr(), conf: conf, ready: make(chan net.Conn), slots: make(chan struct{}, maxConns)}
	if advertise != "" {
		s.addr = address(advertise)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.tasks.Add(1)
	go s.accept()
	return s, nil
}

// accept hands on who has proved itself; a slow caller delays nobody.
func (s *tlsStream) accept() {
	defer s.tasks.Done()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			pause(s.ctx, 100*time.Millisecond) // out of descriptors, say
			continue
		}
		select {
		case s.slots <- struct{}{}:
			s.tasks.Add(1)
			go s.greet(conn)
		default:
			conn.Close()
		}
	}
}

func (s *tlsStream) greet(conn net.Conn) {
	defer s.tasks.Done()
	defer func() { <-s.slots }()
	tc := tls.Server(conn, s.conf)
	ctx, cancel := context.WithTimeout(s.ctx, handshakeLimit)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		conn.Close()
		return
	}
	select {
	case s.ready <- tc:
	case <-s.ctx.Done():
		conn.Close()
	}
}

// Accept returns the next peer whose certificate was verified.
func (s *tlsStream) Accept() (net.Conn, error) {
	select {
	case c := <-s.ready:
		return c, nil
	case <-s.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Dial connects to a peer; its certificate must be valid for the host in addr.
func (s *tlsStream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout}, Config: s.conf}
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	return d.DialContext(ctx, "tcp", string(addr))
}

// Close stops listening and dialling; connections are their users' business.
func (s *tlsStream) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.tasks.Wait()
	return err
}

// Addr returns the address that peers use.
func (s *tlsStream) Addr() net.Addr { return s.addr }

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

// keep adds a connection unless the stream is closed or there are too many.
func (t *tracked) keep(conn net.Conn) (net.Conn, bool) {
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
		if c, ok := t.keep(conn); ok {
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
	c, ok := t.keep(conn)
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
