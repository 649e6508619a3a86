package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/repeat"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// pulled are the agents to pull from: those of the cluster's configuration, those that have
// joined by a token, and those that DNS names.
type pulled struct {
	mu         sync.Mutex
	configured []ingest.Agent
	actions    []config.SharedAction
	joined     []enrol.Machine
	srv        string         // the name that has agents as services; "": none
	found      []ingest.Agent // by it
	srvTrouble error          // of the last look
}

// mergedAgents are the agents of all three. Where several name an agent, the configuration counts, and what
// joined before what DNS says.
func (p *pulled) mergedAgents() []ingest.Agent {
	list := slices.Clone(p.configured)
	for _, m := range p.joined {
		if !slices.ContainsFunc(p.configured, func(a ingest.Agent) bool { return a.Name == m.Name }) {
			list = append(list, ingest.Agent{Name: m.Name, Address: m.Address})
		}
	}
	known := slices.Clone(list)
	for _, f := range p.found {
		if !slices.ContainsFunc(known, func(a ingest.Agent) bool { return a.Name == f.Name }) {
			list = append(list, f)
		}
	}
	return list
}

// changePulled changes the agents to pull from, and has that obeyed.
func (a *Aggregator) changePulled(change func(*pulled)) {
	a.pulled.mu.Lock()
	defer a.pulled.mu.Unlock()
	change(&a.pulled)
	agents := a.pulled.mergedAgents()
	a.manager.Set(agents)
	a.actors.setShared(a.pulled.actions, agents)
}

// joinedEvery is how often this node looks who has joined.
const joinedEvery = time.Second

// followJoined keeps the agents that have joined among those to pull from until ctx ends.
func (a *Aggregator) followJoined(ctx context.Context) error {
	said := ""
	repeat.Every(ctx, joinedEvery, func() bool {
		list, err := store.With(a.store, func(v *store.View) ([]enrol.Machine, error) { return enrol.Agents(v) })
		if err != nil {
			if err.Error() != said && !errors.Is(err, store.ErrClosed) {
				said = err.Error()
				a.set.Log.Error("the agents that have joined cannot be read; those of before stay", "error", err)
			}
			return true
		}
		said = ""
		a.pulled.mu.Lock()
		same := slices.Equal(list, a.pulled.joined)
		a.pulled.mu.Unlock()
		if !same {
			a.changePulled(func(p *pulled) { p.joined = list })
		}
		return true
	})
	return nil
}

// joinedNodes are the nodes that have joined by a token; none when they cannot be read.
func (a *Aggregator) joinedNodes() (list []membership.Listed) {
	machines, err := store.With(a.store, func(v *store.View) ([]enrol.Machine, error) { return enrol.Nodes(v) })
	if err != nil {
		a.set.Log.Debug("the nodes that have joined cannot be read", "error", err)
	}
	for _, m := range machines {
		list = append(list, membership.Listed{Name: m.Name, Addr: m.Address})
	}
	return list
}

// newEnrolment is how machines join at this node; nil: none can.
func (a *Aggregator) newEnrolment() *api.Enrolment {
	if a.set.Authority == nil || a.set.Keys == nil {
		return nil
	}
	return &api.Enrolment{
		Authority: a.set.Authority, Trusted: a.set.Keys.Authorities, Address: a.joinAddress, Nodes: a.namedNodes, Aggregators: a.joinAddresses, Retention: a.retentionPolicy,
		Cluster: func() string { id, _ := a.store.Cluster(); return id },
		Taken: func(role identity.Role, name string) bool {
			if role == identity.Agent {
				return slices.Contains(a.manager.Names(), name)
			}
			return slices.ContainsFunc(a.namedNodes(), func(n v1.JoinNode) bool { return n.Name == name })
		},
	}
}

// joinAddress is where machines join: a name of this node's certificate, with the port of
// its first TLS listener.
func (a *Aggregator) joinAddress() string {
	if len(a.set.TLS) == 0 {
		return ""
	}
	_, port, err := net.SplitHostPort(a.set.TLS[0].Addr().String())
	if err != nil {
		return ""
	}
	host := a.set.Name
	if names := a.set.Keys.Names(); len(names) > 0 {
		host = names[0]
	}
	return net.JoinHostPort(host, port)
}

// joinAddresses are the addresses by joinAddress of the nodes that were heard of, first this
// one's.
func (a *Aggregator) joinAddresses() []string {
	list := []string{a.joinAddress()}
	for _, f := range a.peer.Roster().Others() {
		if f.API != "" && !slices.Contains(list, f.API) {
			list = append(list, f.API)
		}
	}
	return list
}

// namedNodes are the nodes of the cluster that are known by name.
func (a *Aggregator) namedNodes() (list []v1.JoinNode) {
	for _, m := range (members{a.replica}).Members() {
		if m.Name != "" {
			list = append(list, v1.JoinNode{Name: m.Name, Address: m.Address})
		}
	}
	slices.SortFunc(list, func(x, y v1.JoinNode) int { return cmp.Compare(x.Name, y.Name) })
	return list
}
