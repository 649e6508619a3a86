package ingest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// gate is the TLS listener of an aggregator at which agents dial in.
type gate struct {
	t        *testing.T
	ca       *identitytest.CA
	keys     *identity.Keys
	addr     string
	arrivals *ingest.Arrivals
	mu       sync.Mutex
	agents   map[string]*identity.Keys
}

func newGate(t *testing.T) *gate {
	t.Helper()
	ca := identitytest.New(t)
	g := &gate{t: t, ca: ca, keys: ca.Keys(identity.Aggregator, "agg1"), agents: map[string]*identity.Keys{}}
	g.arrivals = ingest.NewArrivals(g.keys)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				conn := tls.Server(raw, g.keys.OpenToAgents())
				defer conn.Close()
				if conn.HandshakeContext(context.Background()) == nil && conn.ConnectionState().NegotiatedProtocol == identity.AgentProtocol {
					g.arrivals.Serve(conn)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.arrivals.Close()
		serving.Wait()
	})
	return g
}

func (g *gate) agentKeys(name string) *identity.Keys {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.agents[name] == nil {
		g.agents[name] = g.ca.Keys(identity.Agent, name)
	}
	return g.agents[name]
}

// knock dials with a configuration, and returns the connection once it is welcome.
func (g *gate) knock(config *tls.Config) (*tls.Conn, error) {
	dialer := &tls.Dialer{Config: config}
	conn, err := dialer.DialContext(g.t.Context(), "tcp", g.addr)
	if err != nil {
		return nil, err
	}
	secure, _ := conn.(*tls.Conn)
	var word [1]byte
	if _, err := io.ReadFull(secure, word[:]); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if word[0] != identity.AgentWelcome {
		g.t.Errorf("the first word is %q", word)
	}
	return secure, nil
}

// dialIn dials in as an agent, which must be welcome.
func (g *gate) dialIn(name string) *tls.Conn {
	g.t.Helper()
	c, err := g.knock(g.agentKeys(name).DialIn())
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	return c
}

// take takes a connection of the agent, which must come.
func (g *gate) take(name string) net.Conn {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	c, err := g.arrivals.Take(ctx, name)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	return c
}

// joined reports whether what is written on one connection comes out of the other.
func joined(a, b net.Conn) bool {
	if _, err := a.Write([]byte{'?'}); err != nil {
		return false
	}
	var word [1]byte
	_, err := io.ReadFull(b, word[:])
	return err == nil && word[0] == '?'
}

// ended waits until a connection has ended.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return // it has
	}
	var word [1]byte
	_, err := c.Read(word[:])
	if timeout, ok := errors.AsType[net.Error](err); err == nil || ok && timeout.Timeout() {
		t.Error("the connection goes on: ", err)
	}
}

// statusAgent says how it is.
type statusAgent struct {
	bursarv1.UnimplementedAgentServer
}

func (statusAgent) Status(context.Context, *bursarv1.StatusRequest) (*bursarv1.StatusResponse, error) {
	return &bursarv1.StatusResponse{}, nil
}

func TestArrivals_AgentEndsConnectionsForTheirAge_NextIsTakenAndNoCallFails(t *testing.T) {
	g := newGate(t)
	conn, err := ingest.Dial(ingest.Agent{Name: "head1"}, g.keys, g.arrivals)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server := grpc.NewServer(grpc.Creds(insecure.NewCredentials()), // the connection has proved its ends
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond}))
	bursarv1.RegisterAgentServer(server, statusAgent{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	agent := &dialsIn{gate: g, ctx: ctx, stop: cancel}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(agent) }) // until Stop
	defer serving.Wait()
	defer server.Stop()
	client := bursarv1.NewAgentClient(conn)
	for agent.taken.Load() < 10 {
		if _, err := client.Status(ctx, &bursarv1.StatusRequest{}); err != nil {
			t.Fatal(err)
		}
	}
}

// dialsIn is a listener of an agent: it dials in, and accepts the connection when it is used.
type dialsIn struct {
	*gate

	ctx   context.Context // of Accept
	stop  context.CancelFunc
	taken atomic.Int64
}

func (d *dialsIn) Accept() (net.Conn, error) {
	c, err := d.knock(d.agentKeys("head1").DialIn())
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(d.ctx, func() { c.Close() })()
	var word [1]byte
	if _, err := io.ReadFull(c, word[:]); err != nil { // gRPC would speak first
		return nil, err
	}
	d.taken.Add(1)
	return &begun{Conn: c, rest: io.MultiReader(bytes.NewReader(word[:]), c)}, nil
}

func (d *dialsIn) Close() error {
	d.stop()
	return nil
}

func (d *dialsIn) Addr() net.Addr { return &net.TCPAddr{} }

// begun is a connection whose first word was read.
type begun struct {
	net.Conn

	rest io.Reader
}

func (b *begun) Read(p []byte) (int, error) { return b.rest.Read(p) }

func TestArrivals_NoConnection_TakeEndsWithItsContext(t *testing.T) {
	g := newGate(t)
	other := g.dialIn("head2")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := g.arrivals.Take(ctx, "head1")
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, ingest.ErrNotDialled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !joined(g.take("head2"), other) {
		t.Error("the connection of the other agent does not work")
	}
}

func TestArrivals_TakeBeforeTheAgent_GetsItsConnection(t *testing.T) {
	g := newGate(t)
	got := make(chan net.Conn)
	go func() {
		c, err := g.arrivals.Take(g.t.Context(), "head1")
		if err != nil {
			t.Error(err)
		}
		got <- c
	}()
	agent := g.dialIn("head1")
	c := <-got
	defer c.Close()
	if !joined(c, agent) || !joined(agent, c) {
		t.Error("it does not work")
	}
}

func TestArrivals_AgentGoneWhileItWaited_IsNotTaken(t *testing.T) {
	g := newGate(t)
	g.dialIn("head1").Close()
	next := g.dialIn("head1")
	if !joined(g.take("head1"), next) {
		t.Error("another connection was taken")
	}
	silent := g.dialIn("head1")
	if _, err := silent.Write([]byte{'?'}); err != nil {
		t.Fatal(err)
	}
	ended(t, silent) // an agent that speaks first does not speak this protocol
}

func TestArrivals_NewerConnection_ReplacesTheOneThatWaits(t *testing.T) {
	g := newGate(t)
	older := g.dialIn("head1")
	newer := g.dialIn("head1")
	ended(t, older)
	taken := g.take("head1")
	if !joined(taken, newer) {
		t.Error("the newer one does not work")
	}
	third := g.dialIn("head1")
	if !joined(taken, newer) || !joined(g.take("head1"), third) {
		t.Error("a connection that was taken ended when another came")
	}
}

func TestArrivals_OtherThanAnAgentOfTheCluster_IsRefused(t *testing.T) {
	g := newGate(t)
	anonymous := g.agentKeys("head1").DialIn()
	anonymous.GetClientCertificate = nil
	for name, config := range map[string]*tls.Config{
		"an aggregator":  g.ca.Keys(identity.Aggregator, "agg2").DialIn(),
		"a client":       g.ca.Keys(identity.Client, "alice").DialIn(),
		"no certificate": anonymous,
	} {
		if _, err := g.knock(config); err == nil {
			t.Errorf("%s dials in", name)
		}
	}
	stranger := identitytest.New(t).Keys(identity.Agent, "head1").DialIn()
	if _, err := g.knock(stranger); err == nil {
		t.Error("an agent connects to an aggregator of another authority")
	}
	stranger.VerifyConnection = nil
	if _, err := g.knock(stranger); err == nil {
		t.Error("an agent of another authority dials in")
	}
	plain := g.agentKeys("head1").DialIn()
	plain.NextProtos = []string{"h2"}
	if _, err := g.knock(plain); err == nil {
		t.Error("an agent's certificate opens the REST interface")
	}
}

func TestArrivals_Closed_EndsAllConnections(t *testing.T) {
	g := newGate(t)
	taken, waits := g.dialIn("head1"), g.dialIn("head2")
	g.take("head1")
	g.arrivals.Close()
	ended(t, taken)
	ended(t, waits)
	if c, err := g.knock(g.agentKeys("head3").DialIn()); err == nil {
		ended(t, c)
	}
}

func TestArrivals_AgentsThatComeAndGo_EachTakeGetsAConnectionThatWorks(t *testing.T) {
	g := newGate(t)
	const rounds = 200
	chance := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	leaves := make([]bool, rounds)
	for i := range leaves {
		leaves[i] = chance.IntN(2) == 0
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 2 { // two agents with one name replace each other's connections
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				c, err := g.knock(g.agentKeys("head1").DialIn())
				if err != nil {
					continue // replaced before it was welcome, or a moment after
				}
				if leaves[i%rounds] {
					c.Close()
					continue
				}
				all.Go(func() {
					defer c.Close()
					_, _ = io.Copy(c, c) // an echo until the other end goes
				})
			}
		})
	}
	for range rounds {
		c := g.take("head1")
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_ = joined(c, c) // its agent may be gone by now; what hangs fails by the deadline of the test
		c.Close()
	}
	close(stop)
	g.arrivals.Close()
	all.Wait()
}
