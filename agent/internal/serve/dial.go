package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// The states of the way to an aggregator that is dialled.
const (
	Dialling    = "connecting"
	Connected   = "connected"
	Unreachable = "not reachable"
	Duplicate   = "duplicate" // of another address of the same aggregator, which is in use
)

// Way is how the connection to an aggregator is doing that the agent dials.
type Way struct {
	Address    string
	Aggregator string // the name in its certificate; "" while unknown, and of a duplicate
	State      string
	Problem    string // why it is not connected
}

const (
	// dialTime bounds the way to an aggregator, up to its welcome.
	dialTime = 10 * time.Second
	// idleTime is how long a connection waits for an aggregator to use it before another
	// takes its place, so that a dead one, or old certificates, do no harm.
	idleTime = 4 * time.Minute
	// shortTime is how long a connection has to wait, at least, before its loss does not mean
	// that the next one will be lost as well.
	shortTime = time.Minute
	// minPause and maxPause bound the pause after a failure.
	minPause, maxPause = 500 * time.Millisecond, 30 * time.Second
	// maxDialled bounds the connections to one address: the waiting one, those that pull,
	// and one for each program that runs.
	maxDialled = 32
)

// Dialler dials in at aggregators, for an agent that no one reaches: at each of them one
// connection waits. When an aggregator says the first word on it, Accept hands it out,
// with the handshake done, and the next one is dialled. It is a [net.Listener] for a
// [Server]. Make it with [NewDialler].
type Dialler struct {
	keys  *identity.Keys
	log   *slog.Logger
	dial  func(ctx context.Context, address string) (net.Conn, error)
	conns chan net.Conn

	close  sync.Once
	closed chan struct{}

	mu    sync.Mutex
	ways  []Way
	owner map[string]int // the way of which a connection waits at an aggregator, by its name
}

// NewDialler makes a dialler of the addresses of the aggregators' TLS listeners, which dials
// from Run on.
func NewDialler(addresses []string, keys *identity.Keys, log *slog.Logger) *Dialler {
	d := &Dialler{keys: keys, log: log, conns: make(chan net.Conn), closed: make(chan struct{}), owner: map[string]int{}}
	d.dial = func(ctx context.Context, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	for _, a := range addresses {
		d.ways = append(d.ways, Way{Address: a, State: Dialling})
	}
	return d
}

// Ways returns how the connections are doing, in the order of the addresses.
func (d *Dialler) Ways() []Way {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ways)
}

// Run dials until ctx ends or the dialler is closed.
func (d *Dialler) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for i := range d.ways {
		all.Go(func() { d.maintainConnection(ctx, i) })
	}
	select {
	case <-d.closed:
	case <-ctx.Done():
	}
	cancel()
	all.Wait()
	return nil
}

// Accept implements net.Listener.
func (d *Dialler) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Run. Connections that were handed out stay.
func (d *Dialler) Close() error {
	d.close.Do(func() { close(d.closed) })
	return nil
}

// Addr implements net.Listener.
func (d *Dialler) Addr() net.Addr { return nowhere{} }

// nowhere is the address of what does not listen.
type nowhere struct{}

// Network implements net.Addr.
func (nowhere) Network() string { return "tcp" }

// String implements net.Addr.
func (nowhere) String() string { return "connections that the agent dials" }

// maintainConnection keeps a connection waiting at the aggregator of a way until ctx ends.
func (d *Dialler) maintainConnection(ctx context.Context, way int) {
	slots := make(chan struct{}, maxDialled)
	pause := time.Duration(0)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		leave := sync.OnceFunc(func() { <-slots })
		aggregator, err := d.dialOnce(ctx, way, leave)
		if err == nil {
			pause = 0
			continue
		}
		leave()
		if ctx.Err() != nil {
			return
		}
		pause = min(max(2*pause, minPause), maxPause)
		state := Unreachable
		if errors.Is(err, errDuplicate) {
			pause, state, aggregator = maxPause, Duplicate, ""
		}
		d.updateState(way, state, aggregator, failureReason(err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		}
	}
}

// dialOnce dials, waits for the first word of the aggregator and offers the connection.
// It returns nil when the next connection is to be dialled at once, and otherwise the name of
// the aggregator as well, where it has proved it.
func (d *Dialler) dialOnce(ctx context.Context, way int, leave func()) (aggregator string, err error) {
	c, aggregator, err := d.dialAggregator(ctx, d.ways[way].Address)
	if err != nil {
		return aggregator, err
	}
	c.leave = leave
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // its reader is told
	if !d.claimAggregator(way, aggregator) {
		stop()
		_ = c.Close() // it was not used
		return aggregator, errDuplicate
	}
	since := time.Now()
	d.updateState(way, Connected, aggregator, "")
	err = c.awaitWord(since.Add(idleTime/2 + rand.N(idleTime/2)))
	if !stop() || err != nil {
		_ = c.Close() // nothing was said on it
	}
	switch {
	case ctx.Err() != nil:
		return aggregator, ctx.Err()
	case err == nil:
		return aggregator, d.offerConnection(ctx, c)
	case isTimeout(err), time.Since(since) >= shortTime:
		return aggregator, nil
	}
	return aggregator, fmt.Errorf("aggregator %s ended the connection: it stops, or another agent with the same name has dialled in: %w", aggregator, err)
}

// offerConnection has Accept return the connection.
func (d *Dialler) offerConnection(ctx context.Context, c *dialled) error {
	select {
	case d.conns <- c:
		return nil
	case <-ctx.Done():
	case <-d.closed:
	}
	_ = c.Close() // its reader is told
	return net.ErrClosed
}

// dialAggregator dials, proves both ends, and returns when the aggregator has said that it accepts
// the agent, with the name of the aggregator, which comes with an error too where it is known.
func (d *Dialler) dialAggregator(ctx context.Context, address string) (c *dialled, aggregator string, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	raw, err := d.dial(ctx, address)
	if err != nil {
		return nil, "", err
	}
	secure := tls.Client(raw, d.keys.DialIn())
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // which ends what waits
	aggregator, err = awaitWelcome(ctx, secure)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close() // the error says why
		return nil, aggregator, err
	}
	state := secure.ConnectionState()
	state.VerifiedChains = [][]*x509.Certificate{state.PeerCertificates} // by DialIn, which crypto/tls does not know
	return &dialled{Conn: d.keys.Guard(secure, state.PeerCertificates), state: state, leave: func() {}}, aggregator, nil
}

// awaitWelcome does the handshake and reads the welcome.
func awaitWelcome(ctx context.Context, c *tls.Conn) (aggregator string, err error) {
	if err := c.HandshakeContext(ctx); err != nil {
		return "", err
	}
	if c.ConnectionState().NegotiatedProtocol != identity.AgentProtocol {
		return "", errNoDialIn
	}
	id, err := identity.Of(c.ConnectionState().PeerCertificates[0]) // DialIn has verified it
	if err != nil {
		return "", err
	}
	var word [1]byte
	if _, err := io.ReadFull(c, word[:]); err != nil {
		return id.Name, fmt.Errorf("aggregator %s has not accepted this agent: %w", id.Name, err)
	}
	if word[0] != identity.AgentWelcome {
		return id.Name, fmt.Errorf("aggregator %s speaks another protocol", id.Name)
	}
	return id.Name, nil
}

// Try dials in at an aggregator and goes again. It returns the name of the aggregator, with an
// error too where it is known.
func Try(ctx context.Context, address string, keys *identity.Keys) (aggregator string, err error) {
	c, aggregator, err := NewDialler(nil, keys, slog.New(slog.DiscardHandler)).dialAggregator(ctx, address)
	if err != nil {
		return aggregator, errors.New(failureReason(err))
	}
	return aggregator, c.Close()
}

// errNoDialIn says what answers where no agent can dial in.
var errNoDialIn = errors.New("what answers is not an aggregator")

// errDuplicate says that two addresses lead to one aggregator, at which one connection of
// an agent waits: a second one would end the first.
var errDuplicate = errors.New("another address leads to the same aggregator")

// claimAggregator notes that a way has the connection to the aggregator; false when a
// connection of another address waits there.
func (d *Dialler) claimAggregator(way int, aggregator string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if owner, taken := d.owner[aggregator]; taken && owner != way {
		return false
	}
	d.releaseClaim(way)
	d.owner[aggregator] = way
	return true
}

// releaseClaim gives back what a way has claimed. d.mu is held.
func (d *Dialler) releaseClaim(way int) {
	maps.DeleteFunc(d.owner, func(_ string, owner int) bool { return owner == way })
}

// updateState notes how a way is doing, and logs what has changed.
func (d *Dialler) updateState(way int, state, aggregator, problem string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if state != Connected {
		d.releaseClaim(way)
	}
	was := d.ways[way]
	now := Way{Address: was.Address, Aggregator: aggregator, State: state, Problem: problem}
	d.ways[way] = now
	switch {
	case now == was:
	case state == Connected:
		d.log.Info("dialled in at an aggregator", "address", now.Address, "aggregator", aggregator)
	default:
		d.log.Warn("cannot dial in at an aggregator; it is tried again", "address", now.Address, "error", problem)
	}
}

// failureReason says why a connection was not made or has ended, without the ports of this end,
// which are others each time.
func failureReason(err error) string {
	text := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Source != nil {
		text = strings.Replace(text, op.Error(), op.Op+": "+op.Err.Error(), 1)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "it does not answer within " + dialTime.String()
	case strings.HasSuffix(text, "tls: no application protocol"):
		return errNoDialIn.Error()
	}
	return text
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// dialled is a connection that the agent has dialled, whose two ends have proved who they
// are.
type dialled struct {
	net.Conn

	state tls.ConnectionState
	word  []byte // read already
	leave func()
}

// awaitWord waits for what the other end says first.
func (c *dialled) awaitWord(until time.Time) error {
	if err := c.SetReadDeadline(until); err != nil {
		return err
	}
	var word [1]byte
	n, err := c.Conn.Read(word[:])
	if n == 1 {
		c.word = word[:]
		return c.SetReadDeadline(time.Time{})
	}
	return err
}

// Read implements net.Conn.
func (c *dialled) Read(p []byte) (int, error) {
	if len(c.word) > 0 && len(p) > 0 {
		n := copy(p, c.word)
		c.word = c.word[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Close closes the connection.
func (c *dialled) Close() error {
	c.leave()
	return c.Conn.Close()
}
