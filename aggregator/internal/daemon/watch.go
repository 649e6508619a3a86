package daemon

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// WatchSettings are how closely a node watches itself and its peers. The zero
// value is right outside of tests.
type WatchSettings struct {
	// Compare is how often the states of the nodes are compared; 0 is a minute.
	Compare time.Duration
	// Look is how often the peers' answers are looked at; 0 is a second.
	Look time.Duration
	// ClockTolerance is how far the clock may be from those of the peers.
	ClockTolerance time.Duration
}

// mayStart returns why this node must not start: it is fenced, or this program
// is too old for what the cluster has agreed on.
func (a *Aggregator) mayStart() error {
	_, version := a.store.Cluster()
	return membership.TooOld(store.CommandFormat, version)
}

// guards are what keeps this node from doing harm.
type guards struct {
	watch *membership.Watch
	gate  *membership.Gate
	clock *membership.Clock
}

// makeGuards makes the guards of this node.
func (a *Aggregator) makeGuards() {
	node, set := a.replica.node, a.set.Watch
	peers := others{node, a.peer.Roster()}
	direct := proposer{node}
	a.replica.guards = &guards{
		watch: membership.NewWatch(membership.WatchOptions{
			ID: node.ID(), Dir: a.set.DataDir, Voter: peers.isVoter, Peers: peers, Hashes: a.store, Writer: direct,
			Log: a.set.Log, Metrics: a.registry, Every: set.Compare, Look: set.Look,
		}),
		gate: membership.NewGate(membership.GateOptions{
			Own: store.CommandFormat, Peers: peers, Writer: direct, Log: a.set.Log, Metrics: a.registry, Every: set.Look,
			Cluster: func() uint32 { _, v := a.store.Cluster(); return v },
		}),
		clock: membership.NewClock(membership.ClockOptions{
			Peers: peers, Leadership: peerLeadership{a.peer}, Tolerance: set.ClockTolerance, Log: a.set.Log, Metrics: a.registry, Every: set.Look,
		}),
	}
	a.peer.Source(membership.FactFunc(a.watchFacts))
	for _, duty := range []func(context.Context) error{a.replica.guards.watch.Lead, a.replica.guards.gate.Lead, a.replica.guards.clock.Lead} {
		node.OnLeader(duty)
	}
}

// runGuards runs the guards until ctx ends, or returns why this node must stop at once.
func (g *guards) runGuards(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.watch.Run(ctx) })
	group.Go(func() error { return g.clock.Run(ctx) })
	return group.Wait()
}

// checkGuards returns why nothing may be proposed now.
func (g *guards) checkGuards() error {
	if err := g.watch.Check(); err != nil {
		return err
	}
	return g.clock.Check()
}

// watchFacts are the facts by which the others watch this node.
func (a *Aggregator) watchFacts(f *membership.NodeFact) {
	f.Clock = calendar.Now()
	f.HashIndex, f.Hash, _ = a.store.LastHash()
	if err := a.replica.checkReadable(); err != nil {
		f.Fenced = err.Error()
	}
	if a.keeper == nil {
		return
	}
	config := a.keeper.Facts()
	f.ConfigDigest = config.Files
	if config.Differs {
		f.SetExtra(configFact, blockNames(config.Differences))
	}
}

// configFact is under which a node tells the others the blocks in which its files
// differ from the cluster's configuration.
const configFact = "config_differs"

// maxNames bounds the blocks that are named.
const maxNames = 10

func blockNames(list []clusterconfig.Difference) (names []string) {
	for _, d := range list {
		if len(names) < maxNames && !slices.Contains(names, d.Block) {
			names = append(names, d.Block)
		}
	}
	return names
}

// others implements watch.Peers.
type others struct {
	node   *cluster.Node
	roster *membership.Roster
}

// exchangeDoubt bounds how long a fact was on its way that this node did not ask
// for.
const exchangeDoubt = 2 * time.Second

// Peers implements watch.Peers.
func (m others) Peers() (list []membership.Member) {
	for _, member := range m.node.Members() {
		if member.ID == m.node.ID() {
			continue
		}
		p := membership.Member{ID: member.ID, Voter: member.Voter}
		if f, ok := m.roster.ByID(member.ID); ok {
			p.Name, p.Index, p.Hash, p.Commands, p.Heard = f.Name, f.HashIndex, f.Hash, f.CommandVersion, f.Seen
			p.Offset, p.Doubt = f.Clock.Sub(calendar.ByClock(f.Seen)), f.RoundTrip
			if f.RoundTrip == 0 {
				p.Doubt = exchangeDoubt
			}
		}
		list = append(list, p)
	}
	return list
}

// isVoter reports whether this node has a vote.
func (m others) isVoter() bool {
	for _, member := range m.node.Members() {
		if member.ID == m.node.ID() {
			return member.Voter
		}
	}
	return false
}

// proposer writes past the guards: what it writes says nothing of records, and
// heals what the guards have found.
type proposer struct{ node *cluster.Node }

// Write implements watch.Writer.
func (p proposer) Write(ctx context.Context, c store.Command) (any, error) {
	result, err := p.node.Propose(ctx, store.Encode(c))
	return result.Value, err
}

// peerLeadership implements membership.Leadership.
type peerLeadership struct{ peer *membership.Peer }

// TransferLeadership implements membership.Leadership.
func (h peerLeadership) TransferLeadership(ctx context.Context) error {
	return h.peer.TransferLeadership(ctx)
}
