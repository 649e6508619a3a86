package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	pki "github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/ratelog"
)

// The two protocols on a node's port, told apart by TLS (ALPN).
const (
	raftProtocol = "bursar-raft/1"
	peerProtocol = "bursar-peer/1"
)

const (
	// maxConns bounds the connections of raft, half of them to others.
	maxConns = 64
	// maxHandshakes bounds the callers that have not proved who they are.
	maxHandshakes = 64
	// maxFromHost is how many of these one address may have.
	maxFromHost = 16
	// handshakeLimit is how long a caller may take to prove who it is.
	handshakeLimit = 5 * time.Second
	// dialLimit bounds the way to a peer; it is on the next rack.
	dialLimit = 3 * time.Second
)

// TransportConfig says how a node talks with its peers. Logger may be nil.
type TransportConfig struct {
	// Listener is open already; the transport owns it from the call on.
	Listener net.Listener
	// Advertise is host:port by which the others reach this node; empty means
	// the address of the listener.
	Advertise string
	// Server and Client are identity.Keys.Server(identity.Aggregator) and
	// .Client(identity.Aggregator, ""): certificates both ways, by role.
	Server, Client *tls.Config
	// Certificates are what Server and Client come from; nil: connections live on,
	// whatever becomes of the certificates that were shown when they were made.
	Certificates Certificates
	// ID is this node's, see Identity. Who means another node is refused.
	ID string
	// Configured returns the name and the address that the configuration has for the node
	// with that id; both are empty for one that it does not name. It is called at every
	// dial. Nil: the configuration names none.
	Configured func(id string) (name, addr string)
	Logger     *slog.Logger

	// dial replaces the network in tests.
	dial func(ctx context.Context, addr string) (net.Conn, error)
	// renewEvery is the pause between two looks at connections of old.
	renewEvery time.Duration
}

// Transport is one port for all that nodes say to each other: raft, and the
// protocol of package membership. Both ends prove with a certificate that they are
// aggregators. A connection of raft is greeted with the id of the node that is
// meant.
type Transport struct {
	conf   TransportConfig
	logger *slog.Logger
	addr   net.Addr
	raft   *raftStream
	peers  *queue

	ctx              context.Context
	cancel           context.CancelFunc
	tasks            sync.WaitGroup
	handshakeLimiter handshakeLimiter
	denied           ratelog.Logger
	strays           ratelog.Logger
	stuck            ratelog.Logger

	mu    sync.Mutex
	conns map[*Conn]struct{}
	// images serves connections about images; nil while no node is open.
	images func(greeting, *Conn)
}

// Conn is a connection whose two ends have proved who they are.
type Conn struct {
	*tls.Conn
	// Peer is the identity in the certificate of the other end.
	Peer pki.Identity
	of   *Transport

	release    func() // no one follows its certificate any more
	generation uint64 // of the own certificate
	to         Server // whom raft has dialled; zero for all other connections
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.release()
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// NewTransport begins to accept peers. Config.Stream takes its Raft half, and a
// gRPC server its Peers.
func NewTransport(c TransportConfig) (*Transport, error) {
	if err := c.validateConfig(); err != nil {
		if c.Listener != nil {
			c.Listener.Close()
		}
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Certificates == nil {
		c.Certificates = eternal{}
	}
	if c.Configured == nil {
		c.Configured = func(string) (name, addr string) { return "", "" }
	}
	c.renewEvery = valueOr(c.renewEvery, renewEvery)
	if c.dial == nil {
		c.dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	t := &Transport{conf: c, logger: c.Logger, addr: c.Listener.Addr(), conns: map[*Conn]struct{}{}, handshakeLimiter: newHandshakeLimiter()}
	if c.Advertise != "" {
		t.addr = address(c.Advertise)
	}
	t.raft = &raftStream{queue: newQueue(t.addr), t: t, self: newLoneStream(t.addr.String())}
	t.peers = newQueue(t.addr)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.tasks.Go(t.acceptCallers)
	t.tasks.Go(t.raft.hearOwnCalls)
	t.tasks.Go(t.renewConnections)
	return t, nil
}

func (c TransportConfig) validateConfig() error {
	var problems []error
	if c.Listener == nil {
		problems = append(problems, errors.New("no listener"))
	}
	if c.Server == nil || c.Server.ClientAuth != tls.RequireAndVerifyClientCert {
		problems = append(problems, errors.New("the TLS server does not demand certificates"))
	}
	if c.Client == nil || (c.Client.InsecureSkipVerify && c.Client.VerifyConnection == nil) {
		problems = append(problems, errors.New("the TLS client does not verify certificates"))
	}
	if err := checkID(c.ID); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return fmt.Errorf("cluster: transport: %w", errors.Join(problems...))
	}
	return nil
}

// Raft is the half that carries raft; it belongs to Config.Stream.
func (t *Transport) Raft() raft.StreamLayer { return t.raft }

// Peers hands out connections of the peer protocol; each is a *Conn. Closing it
// leaves the raft half alone.
func (t *Transport) Peers() net.Listener { return t.peers }

// Addr is the address by which the others reach this node.
func (t *Transport) Addr() string { return t.addr.String() }

// ID returns this node's id.
func (t *Transport) ID() string { return t.conf.ID }

// DialPeer connects to the peer protocol of a node; what it returns is a *Conn. A node with
// an id is dialled as by raft: at the address that the configuration has for it, and at that
// of the Server. Without an id it is whoever answers at the address.
func (t *Transport) DialPeer(ctx context.Context, to Server) (net.Conn, error) {
	name, _ := t.conf.Configured(to.ID)
	c, err := t.reachNode(ctx, to, func(ctx context.Context, addr string) (*Conn, error) {
		c, err := t.dialAddress(ctx, addr, peerProtocol)
		if err == nil && name != "" && c.Peer.Name != name {
			hangUp(c)
			err = fmt.Errorf("cluster: dial %s: %w: %s is meant, but this is %s", addr, ErrOtherNode, name, c.Peer.Name)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the transport and every connection of it.
func (t *Transport) Close() error {
	t.cancel()
	err := t.conf.Listener.Close()
	err = errors.Join(err, t.raft.Close(), t.peers.Close())
	t.mu.Lock()
	var open []*Conn
	for c := range t.conns {
		open = append(open, c)
	}
	t.mu.Unlock()
	for _, c := range open {
		hangUp(c)
	}
	t.tasks.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// acceptCallers lets callers in to prove themselves; a slow one delays no one.
func (t *Transport) acceptCallers() {
	for {
		conn, err := t.conf.Listener.Accept()
		if err != nil {
			if t.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			pauseFor(t.ctx, 100*time.Millisecond) // out of descriptors, say
			continue
		}
		leave, ok := t.handshakeLimiter.enterHandshake(conn.RemoteAddr())
		if !ok {
			conn.Close()
			continue
		}
		t.tasks.Go(func() {
			defer leave()
			t.receiveCaller(conn)
		})
	}
}

// receiveCaller makes sure who calls, and hands the connection on.
func (t *Transport) receiveCaller(conn net.Conn) {
	ctx, cancel := context.WithTimeout(t.ctx, handshakeLimit)
	defer cancel()
	c, err := t.proveIdentity(ctx, tls.Server(conn, t.serverConf()))
	if err != nil {
		conn.Close()
		if t.ctx.Err() == nil {
			t.denied.Tell(t.logger, slog.LevelWarn, "a caller was refused", "from", conn.RemoteAddr().String(), "error", err)
		}
		return
	}
	switch c.ConnectionState().NegotiatedProtocol {
	case raftProtocol:
		t.replyToGreeting(c)
	case peerProtocol:
		t.peers.putConnection(c)
	default:
		hangUp(c)
	}
}

// hangUp closes a connection that no one needs any more.
func hangUp(c net.Conn) { c.Close() }

// replyToGreeting answers a greeting and hands the connection on.
func (t *Transport) replyToGreeting(c *Conn) {
	end := time.Now().Add(handshakeLimit)
	g, err := t.answerGreeting(c, end)
	if err != nil {
		hangUp(c)
		t.strays.Tell(t.logger, slog.LevelWarn, "a connection of raft was refused", "from", c.RemoteAddr().String(), "peer", c.Peer.String(), "error", err)
		return
	}
	if g.use == forRaft {
		t.raft.putConnection(c)
		return
	}
	serve := t.imageServer()
	t.tasks.Go(func() {
		defer hangUp(c)
		serve(g, c)
	})
}

// serveImages sets who serves connections about images; nil for no one.
func (t *Transport) serveImages(serve func(greeting, *Conn)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.images = serve
}

// imageServer returns a function that may find that no one serves any more.
func (t *Transport) imageServer() func(greeting, *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.images == nil {
		return func(greeting, *Conn) {}
	}
	return t.images
}

func (t *Transport) hasImages() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.images != nil
}

func (t *Transport) answerGreeting(c *Conn, end time.Time) (greeting, error) {
	if err := c.SetDeadline(end); err != nil {
		return greeting{}, err
	}
	g, err := readGreeting(c)
	if err != nil {
		return g, err
	}
	a := answer{what: answerYes, id: t.conf.ID}
	switch {
	case g.meant != t.conf.ID:
		a.what = answerOther
	case g.use != forRaft && !t.hasImages():
		a.what = answerNo
	}
	if _, err := c.Write(a.encodeAnswer()); err != nil {
		return g, err
	}
	if a.what != answerYes {
		return g, a.refusalOf(g)
	}
	return g, c.SetDeadline(time.Time{})
}

// refusalOf says why a greeting was not accepted, nil when it was.
func (a answer) refusalOf(g greeting) error {
	switch a.what {
	case answerYes:
		return nil
	case answerOther:
		return fmt.Errorf("%w: node %s is meant, but this is node %s; node %s has another address now, or its data were lost",
			ErrOtherNode, g.meant, a.id, g.meant)
	default:
		return fmt.Errorf("node %s does not take this now", a.id)
	}
}

// proveIdentity completes a handshake and returns who is there.
func (t *Transport) proveIdentity(ctx context.Context, conn *tls.Conn) (*Conn, error) {
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := conn.ConnectionState()
	if len(state.PeerCertificates) == 0 {
		return nil, fmt.Errorf("%w: no certificate", pki.ErrIdentity)
	}
	// The configuration has verified the chain; the role is looked at again,
	// for raft trusts whoever is let in.
	peer, err := pki.Of(state.PeerCertificates[0])
	if err == nil && peer.Role != pki.Aggregator {
		err = fmt.Errorf("%w: the certificate is for %s, and this port is for aggregators", pki.ErrIdentity, peer)
	}
	if err != nil {
		return nil, err
	}
	return t.keepConnection(t.followCertificate(&Conn{Conn: conn, Peer: peer, of: t}, state.PeerCertificates))
}

// keepConnection adds a connection unless the transport is closed.
func (t *Transport) keepConnection(c *Conn) (*Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		c.release()
		return nil, net.ErrClosed
	}
	t.conns[c] = struct{}{}
	return c, nil
}

// serverConf is the configuration for the next caller: what is asked for when a
// connection comes may be renewed certificates.
func (t *Transport) serverConf() *tls.Config {
	conf := t.conf.Server.Clone()
	requireClientCertificates(conf)
	if ask := conf.GetConfigForClient; ask != nil {
		conf.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			c, err := ask(hello)
			if err != nil || c == nil {
				return c, err
			}
			c = c.Clone()
			requireClientCertificates(c)
			return c, nil
		}
	}
	return conf
}

func requireClientCertificates(c *tls.Config) {
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.NextProtos = []string{raftProtocol, peerProtocol}
}

func (t *Transport) dialAddress(ctx context.Context, addr, protocol string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	stop := context.AfterFunc(t.ctx, cancel)
	defer stop()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cluster: dial: %w", err)
	}
	raw, err := t.conf.dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	conf := t.conf.Client.Clone()
	conf.MinVersion, conf.NextProtos = tls.VersionTLS13, []string{protocol}
	if conf.ServerName == "" {
		conf.ServerName = host
	}
	c, err := t.proveIdentity(ctx, tls.Client(raw, conf))
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("cluster: dial %s: %w", addr, err)
	}
	return c, nil
}

// greetNode connects to a node, for one use.
func (t *Transport) greetNode(ctx context.Context, to Server, use byte) (*Conn, error) {
	return t.reachNode(ctx, to, func(ctx context.Context, addr string) (*Conn, error) {
		c, err := t.dialAddress(ctx, addr, raftProtocol)
		if err != nil {
			return nil, err
		}
		if err := t.sendGreeting(c, greeting{use: use, meant: to.ID, from: t.conf.ID}); err != nil {
			hangUp(c)
			return nil, fmt.Errorf("cluster: dial %s: %w", addr, err)
		}
		return c, nil
	})
}

func (t *Transport) sendGreeting(c *Conn, g greeting) error {
	if err := c.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return err
	}
	if _, err := c.Write(g.encodeGreeting()); err != nil {
		return err
	}
	a, err := readAnswer(c)
	if err != nil {
		return err
	}
	if err := a.refusalOf(g); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}
