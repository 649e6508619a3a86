package ingest

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Agent is where an agent answers.
type Agent struct {
	Name    string
	Address string // host:port; "": it dials in
}

// Manager keeps one loop for every agent of the configuration.
type Manager struct {
	Cluster string
	// Restored says that the cluster was taken back in its life.
	Restored bool
	// Version returns the protocol version that the cluster has agreed on; nil is
	// the first.
	Version func() uint32
	Cursors Cursors
	Commit  Committer
	Keys    *identity.Keys
	Log     *slog.Logger
	Metrics *Metrics
	// Renew is that of [Loop].
	Renew func(ctx context.Context, old *x509.Certificate) ([]byte, error)
	// Arrivals have the connections of agents without an address.
	Arrivals *Arrivals

	mu     sync.Mutex
	agents []Agent
	loops  map[string]*running
	change chan struct{}
}

type running struct {
	*Loop

	conn   *grpc.ClientConn
	cancel context.CancelFunc
	done   chan struct{}
}

// Set changes the agents that are pulled from; loops of agents that stay as they
// are go on untouched.
func (m *Manager) Set(agents []Agent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agents = slices.Clone(agents)
	select {
	case m.changedSignal() <- struct{}{}:
	default:
	}
}

// Names returns the agents of the configuration, on any node.
func (m *Manager) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, len(m.agents))
	for i := range m.agents {
		names[i] = m.agents[i].Name
	}
	return names
}

// changedSignal returns the channel that wakes Run. m.mu is held.
func (m *Manager) changedSignal() chan struct{} {
	if m.change == nil {
		m.change = make(chan struct{}, 1)
	}
	return m.change
}

// Run pulls from all agents until ctx ends. It may run again afterwards.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	change := m.changedSignal()
	m.loops = map[string]*running{}
	m.mu.Unlock()
	defer m.stopLoops()
	for {
		m.reconcileLoops(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-change:
		}
	}
}

// reconcileLoops starts and stops loops until they are those of the configuration.
func (m *Manager) reconcileLoops(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	want := map[string]Agent{}
	for _, a := range m.agents {
		want[a.Name] = a
	}
	for name, r := range m.loops {
		if want[name] != (Agent{Name: r.Name, Address: r.Address}) {
			r.endLoop()
			delete(m.loops, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if m.loops[name] != nil {
			continue
		}
		r, err := m.beginLoop(ctx, want[name])
		if err != nil {
			m.Log.Error("agent cannot be pulled from", "agent", name, "error", err)
			continue
		}
		m.loops[name] = r
	}
}

// beginLoop starts the loop of an agent.
func (m *Manager) beginLoop(ctx context.Context, a Agent) (*running, error) {
	loop := &Loop{
		Name: a.Name, Address: a.Address, Cluster: m.Cluster, Restored: m.Restored, Version: m.Version,
		Cursors: m.Cursors, Commit: m.Commit, Log: m.Log, Metrics: m.Metrics, Renew: m.Renew,
	}
	conn, err := Dial(a, m.Keys, m.Arrivals)
	if err != nil {
		return nil, err
	}
	loop.Client = bursarv1.NewAgentClient(conn)
	ctx, cancel := context.WithCancel(ctx)
	r := &running{conn: conn, cancel: cancel, done: make(chan struct{}), Loop: loop}
	go func() {
		defer close(r.done)
		if err := r.Loop.Run(ctx); err != nil {
			m.Log.Error("pull ended", "agent", a.Name, "error", err)
		}
	}()
	return r, nil
}

// Dial prepares a connection to an agent by mutual TLS, which is made, or taken from the
// arrivals where the agent dials in, at the first call. The caller closes it.
func Dial(a Agent, keys *identity.Keys, arrivals *Arrivals) (*grpc.ClientConn, error) {
	params := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second}, MinConnectTimeout: 5 * time.Second}
	way := []grpc.DialOption{grpc.WithTransportCredentials(&guarded{credentials.NewTLS(keys.Client(identity.Agent, a.Name)), keys})}
	if a.Address == "" {
		params.Backoff.MaxDelay = time.Second // to look again costs nothing
		way = []grpc.DialOption{
			grpc.WithTransportCredentials(proven{}),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return arrivals.Take(ctx, a.Name) }),
		}
	}
	conn, err := grpc.NewClient("passthrough:///"+cmp.Or(a.Address, a.Name), append(way,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(8<<20)),
		grpc.WithConnectParams(params),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
	)...)
	if err != nil {
		return nil, fmt.Errorf("connect to agent %s: %w", a.Name, err)
	}
	return conn, nil
}

// guarded are credentials whose connections end when the certificate of the agent
// is not valid any more.
type guarded struct {
	credentials.TransportCredentials

	keys *identity.Keys
}

// ClientHandshake implements credentials.TransportCredentials.
func (g *guarded) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := g.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if proved, ok := info.(credentials.TLSInfo); ok && err == nil {
		secure = g.keys.Guard(secure, proved.State.PeerCertificates)
	}
	return secure, info, err
}

// Clone implements credentials.TransportCredentials.
func (g *guarded) Clone() credentials.TransportCredentials {
	return &guarded{g.TransportCredentials.Clone(), g.keys}
}

func (r *running) endLoop() {
	r.cancel()
	<-r.done
	_ = r.conn.Close() // nothing is lost with a connection
}

func (m *Manager) stopLoops() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.loops {
		r.endLoop()
	}
	m.loops = nil
}

// Client returns the client of an agent that is pulled from; false when this node
// pulls from no such agent.
func (m *Manager) Client(name string) (bursarv1.AgentClient, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.loops[name]
	if r == nil {
		return nil, false
	}
	return r.Loop.Client, true
}

// Status returns how the pulls are doing, sorted by name; empty on a node that
// does not lead.
func (m *Manager) Status() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(m.loops)) {
		all = append(all, m.loops[name].Loop.Status())
	}
	return all
}
