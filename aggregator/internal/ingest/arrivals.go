package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// ErrNotDialled says that no connection of an agent waits here that dials in.
var ErrNotDialled = errors.New("the agent has not dialled in: see its log, and run bursar-agent doctor there")

// welcomeTime bounds how long the welcome may take to leave.
const welcomeTime = 5 * time.Second

// Arrivals hold the connections of agents that dial in, until a pull takes them: one for each
// name of an agent. A newer one replaces the waiting one, so of two agents with one name
// the newest is pulled from. They wait on nodes that do not lead as well, since those may
// lead next. The agent sends nothing before a pull does.
type Arrivals struct {
	keys *identity.Keys

	mu      sync.Mutex
	waiting map[string]*arrival
	all     map[*arrival]struct{} // also those that were taken
	changed chan struct{}         // is closed when a connection comes
	closed  bool
}

// end closes the connection. It may take its time: the other end may not read its farewell.
func (c *arrival) end() { _ = c.Close() }

// NewArrivals makes a place for connections. keys are this node's.
func NewArrivals(keys *identity.Keys) *Arrivals {
	return &Arrivals{keys: keys, waiting: map[string]*arrival{}, all: map[*arrival]struct{}{}, changed: make(chan struct{})}
}

// arrival is a connection of an agent whose two ends have proved who they are. It is
// watched for its end until it is taken.
type arrival struct {
	net.Conn

	agent   string
	state   tls.ConnectionState
	watched chan struct{} // closed when the watch has ended
	sound   bool          // the other end is there and has said nothing; by then
	once    sync.Once
	ended   chan struct{} // closed with the connection
}

// Close closes the connection.
func (c *arrival) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// Serve keeps a connection, whose handshake by [identity.Keys.OpenToAgents] is over, until it
// has ended, and returns then.
func (a *Arrivals) Serve(conn *tls.Conn) {
	state := conn.ConnectionState()
	id, err := identity.Peer(state)
	if err != nil || id.Role != identity.Agent {
		_ = conn.Close() // the handshake lets only agents in
		return
	}
	c := &arrival{
		Conn: a.keys.Guard(conn, state.PeerCertificates), agent: id.Name, state: state,
		watched: make(chan struct{}), ended: make(chan struct{}),
	}
	defer a.forget(c)
	if a.add(c) {
		c.welcomeAndWatch()
		<-c.ended
	}
}

// add has a connection wait in the place of an older one.
func (a *Arrivals) add(c *arrival) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	if older := a.waiting[c.agent]; older != nil {
		go older.end()
	}
	a.waiting[c.agent], a.all[c] = c, struct{}{}
	close(a.changed)
	a.changed = make(chan struct{})
	return true
}

// welcomeAndWatch tells the agent that it is accepted, and returns when the connection has
// ended, or [arrival.leaveWatch] was called. One that has ended is closed.
func (c *arrival) welcomeAndWatch() {
	defer close(c.watched)
	if c.welcome() == nil {
		var word [1]byte
		_, err := c.Read(word[:])
		c.sound = errors.Is(err, os.ErrDeadlineExceeded)
	}
	if !c.sound {
		_ = c.Close() // nothing is lost with a connection
	}
}

func (c *arrival) welcome() error {
	if err := c.SetWriteDeadline(time.Now().Add(welcomeTime)); err != nil {
		return err
	}
	if _, err := c.Write([]byte{identity.AgentWelcome}); err != nil {
		return err
	}
	return c.SetWriteDeadline(time.Time{})
}

// leaveWatch ends the watch, and reports whether the connection can be used.
func (c *arrival) leaveWatch() bool {
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return false
	}
	<-c.watched
	return c.sound && c.SetReadDeadline(time.Time{}) == nil
}

// forget ends a connection and what is known of it.
func (a *Arrivals) forget(c *arrival) {
	_ = c.Close() // nothing is lost with a connection
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, c)
	if a.waiting[c.agent] == c {
		delete(a.waiting, c.agent)
	}
}

// Take returns a connection of the agent, and waits for one until ctx ends. The caller
// closes it.
func (a *Arrivals) Take(ctx context.Context, agent string) (net.Conn, error) {
	for {
		a.mu.Lock()
		c, changed := a.waiting[agent], a.changed
		delete(a.waiting, agent)
		a.mu.Unlock()
		switch {
		case c == nil:
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, fmt.Errorf("%w: %w", ErrNotDialled, ctx.Err())
			}
		case c.leaveWatch():
			return c, nil
		default:
			go c.end()
		}
	}
}

// Close ends all connections, those that were taken as well, and those that come from now
// on.
func (a *Arrivals) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for c := range a.all {
		go c.end()
	}
}

// proven are the credentials of connections that Arrivals has handed out.
type proven struct{}

var errUnproven = errors.New("a connection whose other end has not proved who it is")

// ClientHandshake implements credentials.TransportCredentials.
func (proven) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := conn.(*arrival)
	if !ok {
		return nil, nil, errUnproven
	}
	return c, credentials.TLSInfo{State: c.state, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// ServerHandshake implements credentials.TransportCredentials.
func (proven) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errUnproven
}

// Info implements credentials.TransportCredentials.
func (proven) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.3"} //nolint:staticcheck // the field is deprecated, the struct is not without it
}

// Clone implements credentials.TransportCredentials.
func (p proven) Clone() credentials.TransportCredentials { return p }

// OverrideServerName implements credentials.TransportCredentials.
func (proven) OverrideServerName(string) error { return nil }
