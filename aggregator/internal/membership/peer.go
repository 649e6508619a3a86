package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Errors of [Peer.Write] and [Peer.Ask], beside [cluster.ErrUnknownOutcome].
var (
	// ErrNotNow says that nothing was done and that a later try may succeed.
	ErrNotNow = errors.New("cannot be done now")
	// ErrRefused says that nothing was done and that no try will succeed.
	ErrRefused = errors.New("refused")
)

// Node is what this package needs of the cluster's node; *cluster.Node has it.
type Node interface {
	ID() string
	Fresh() bool
	Bootstrap(servers []cluster.Server) error
	IsLeader() bool
	Leader() cluster.Leader
	LeaderChanges() <-chan cluster.Leader
	TransferLeadership(ctx context.Context) error
	Members() []cluster.Member
	Add(ctx context.Context, s cluster.Server) error
	Remove(ctx context.Context, id string) error
	Readdress(ctx context.Context, s cluster.Server) error
	Propose(ctx context.Context, data []byte) (cluster.Result, error)
	ReadIndex(ctx context.Context) (uint64, error)
	WaitApplied(ctx context.Context, index uint64) error
	Stats() cluster.Stats
}

// Config says what a [Peer] works with.
type Config struct {
	Name  string            // of this node
	Peers map[string]string // address by name of all nodes, this one included; empty: this node is alone
	// Joined returns the nodes that have joined by a token, which a leader looks after as
	// after those of Peers; nil: none have.
	Joined  func() []Listed
	DataDir string
	File    *PeerFile // of DataDir
	Node    Node
	Store   *store.Store
	// Listener hands out the connections of other nodes and Dial makes them, as
	// cluster.Transport does. Nil: this node is alone.
	Listener net.Listener
	Dial     func(ctx context.Context, to cluster.Server) (net.Conn, error)
	// Refuse returns why this node cannot take a write now, such as a full disk;
	// nil is never.
	Refuse func() error
	// Sources say what the parts of this node know of it.
	Sources []FactSource
	Version string
	Log     *slog.Logger
}

// Peer is this node among the others: it founds or finds its cluster, hands to
// the leader what only a leader can do, and knows what each node says of itself.
type Peer struct {
	conf    Config
	me      Listed
	peers   []Listed // the configuration, sorted, this node included
	started time.Time
	links   *links
	roster  *Roster
	leaders leaderWatch
	gate    gate
	indexes indexes
	fresh   freshness
	asked   map[string]AskFunc
	renews  RenewFunc // nil: this node renews no certificates

	mu      sync.Mutex // is held by who writes file, and guards what gathering does with it
	file    *PeerFile
	waits   string // what this node waits for while it has no cluster
	sources []FactSource
}

// New makes this node's Peer. Nothing runs before [Peer.Run].
func New(conf Config) *Peer {
	p := &Peer{conf: conf, file: conf.File, started: time.Now(), asked: map[string]AskFunc{}, sources: conf.Sources}
	for name, addr := range conf.Peers {
		p.peers = append(p.peers, Listed{Name: name, Addr: addr})
	}
	sortListed(p.peers)
	p.me = Listed{Name: conf.Name, ID: conf.Node.ID(), Addr: conf.Peers[conf.Name]}
	p.links = newLinks(conf.Dial)
	p.leaders.init()
	p.gate.init()
	p.roster = NewRoster(p.Fact)
	return p
}

// Roster returns what all nodes say of themselves.
func (p *Peer) Roster() *Roster { return p.roster }

// Source adds a source of facts. It must be called before Run.
func (p *Peer) Source(s FactSource) { p.sources = append(p.sources, s) }

// isAlone reports whether no other node can be reached or reaches this one.
func (p *Peer) isAlone() bool { return p.conf.Dial == nil }

// Run serves the other nodes until ctx ends. An error means that this node must
// stop.
func (p *Peer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { p.leaders.followNews(ctx, p.conf.Node.LeaderChanges()); return nil })
	g.Go(func() error { p.keepFresh(ctx); return nil })
	if !p.isAlone() {
		g.Go(func() error { return p.servePeers(ctx) })
		g.Go(func() error { return p.gatherCluster(ctx) })
		g.Go(func() error { return p.exchangeFacts(ctx) })
	}
	err := g.Wait()
	p.links.closeAll()
	return err
}

// Fact returns what this node says of itself.
func (p *Peer) Fact() NodeFact {
	stats := p.conf.Node.Stats()
	f := NodeFact{
		Name: p.me.Name, ID: p.me.ID, Addr: p.me.Addr, Version: p.conf.Version, CommandVersion: store.CommandFormat,
		Fresh: p.conf.Node.Fresh(), Waits: p.waitsFor(), Leads: p.conf.Node.IsLeader(), Term: stats.Term, Applied: stats.Applied,
		Clock: time.Now(), Started: p.started,
	}
	if p.conf.Store != nil {
		f.Cluster, _ = p.conf.Store.Cluster()
	}
	for _, s := range p.sources {
		s.Fill(&f)
	}
	return f
}

// waitsFor returns what this node waits for while it has no cluster.
func (p *Peer) waitsFor() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits
}

func notNow(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNotNow, fmt.Errorf(format, args...))
}
