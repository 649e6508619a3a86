package membership

import (
	"context"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

const (
	// tendEvery is how often the leader looks after the members.
	tendEvery = time.Second
	// changeTime bounds one change of the members.
	changeTime = 10 * time.Second
)

// MaintainMembers is what a leader does for its cluster until ctx ends: nodes that its
// configuration names and that have no cluster are added, the former self of a
// node that comes back with other data is removed, and addresses follow the
// configuration. It is a duty of the node: OnLeader(p.MaintainMembers).
func (p *Peer) MaintainMembers(ctx context.Context) error {
	if p.isAlone() {
		return nil
	}
	told := map[string]string{}
	repeat.Every(ctx, tendEvery, func() bool {
		p.correctOwnAddress(ctx)
		peers := p.expectedNodes()
		heard := p.askHellos(ctx, peers)
		for _, n := range peers {
			h, ok := heard[n.Name]
			if !ok || h.Name != n.Name || ctx.Err() != nil {
				continue
			}
			if why := p.includePeer(ctx, n, h); why != told[n.Name] {
				told[n.Name] = why
				if why != "" {
					p.conf.Log.Warn("a configured node does not belong to the cluster", "name", n.Name, "id", h.ID, "reason", why)
				}
			}
		}
		return true
	})
	return nil
}

// expectedNodes are the nodes of the configuration and those that have joined by a token. The
// configuration counts where both name a node.
func (p *Peer) expectedNodes() []Listed {
	list := slices.Clone(p.peers)
	if p.conf.Joined == nil {
		return list
	}
	for _, n := range p.conf.Joined() {
		if !slices.ContainsFunc(p.peers, func(c Listed) bool { return c.Name == n.Name || c.Addr == n.Addr }) {
			list = append(list, n)
		}
	}
	return list
}

// correctOwnAddress corrects this node's own address: a node that was alone had none that
// others can reach.
func (p *Peer) correctOwnAddress(ctx context.Context) {
	own, ok := p.findMember(p.me.ID)
	if !ok || p.me.Addr == "" || own.Addr == p.me.Addr {
		return
	}
	p.changeMember(ctx, "this node has another address", cluster.Server{ID: p.me.ID, Addr: p.me.Addr}, p.conf.Node.Readdress)
}

// includePeer makes a member of the node that has answered as n. It returns why it
// cannot be one.
func (p *Peer) includePeer(ctx context.Context, n Listed, h Hello) (why string) {
	want := cluster.Server{ID: h.ID, Addr: n.Addr}
	m, member := p.findMember(h.ID)
	switch {
	case member && m.Addr != n.Addr:
		p.changeMember(ctx, "a node has another address: "+n.Name, want, p.conf.Node.Readdress)
	case member:
		p.rememberNode(Listed{Name: n.Name, ID: h.ID, Addr: n.Addr})
	case !h.Fresh:
		return "it has data of another cluster, or was removed from this one; to have it join, stop it, empty its data directory and start it again"
	case !h.Promise.None() && !isPromised(h.Promise, p.me.ID):
		return boundPromise(n.Name, h.Promise)
	default:
		if p.retireFormer(ctx, n, h.ID) {
			p.changeMember(ctx, "a node is added: "+n.Name, want, p.conf.Node.Add)
		}
	}
	return ""
}

func isPromised(p Promise, id string) bool {
	for _, n := range p.Nodes {
		if n.ID == id {
			return true
		}
	}
	return false
}

// retireFormer removes the members that the node with the new id was before: raft has
// no two members of one address, and without its data the old one is no longer
// worth anything. One that the configuration has at another address has only moved. It
// reports whether the new one may be added now.
func (p *Peer) retireFormer(ctx context.Context, n Listed, id string) bool {
	done := true
	for _, m := range p.conf.Node.Members() {
		name, addr := p.file.Configured(p.conf.Peers, m.ID)
		ok := true
		switch {
		case m.ID == id, m.ID == p.me.ID, m.Addr != n.Addr && p.file.NameOf(m.ID) != n.Name:
		case name != "" && name != n.Name:
			ok = p.changeMember(ctx, "a node has another address: "+name, cluster.Server{ID: m.ID, Addr: addr}, p.conf.Node.Readdress)
		default:
			ok = p.changeMember(ctx, "a node has come back with other data, its former self is removed: "+n.Name, m.Server,
				func(ctx context.Context, s cluster.Server) error { return p.conf.Node.Remove(ctx, s.ID) })
		}
		done = done && ok
	}
	return done
}

// changeMember makes one change of the members and logs it.
func (p *Peer) changeMember(ctx context.Context, what string, s cluster.Server, do func(context.Context, cluster.Server) error) bool {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	p.conf.Log.Info(what, "id", s.ID, "addr", s.Addr)
	if err := do(ctx, s); err != nil {
		p.conf.Log.Warn("the members were not changed, it is tried again", "what", what, "id", s.ID, "addr", s.Addr, "error", err)
		return false
	}
	return true
}

func (p *Peer) findMember(id string) (cluster.Member, bool) {
	for _, m := range p.conf.Node.Members() {
		if m.ID == id {
			return m, true
		}
	}
	return cluster.Member{}, false
}

func (p *Peer) rememberNode(n Listed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.file.SaveNode(n); err != nil {
		p.conf.Log.Warn("the file of peers was not written", "error", err)
	}
}
