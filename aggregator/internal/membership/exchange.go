package membership

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

const (
	// exchangeEvery is how often facts are exchanged.
	exchangeEvery = 2 * time.Second
	// exchangeTime bounds one exchange.
	exchangeTime = 2 * time.Second
)

// exchangeFacts swaps facts with all other nodes until ctx ends.
func (p *Peer) exchangeFacts(ctx context.Context) error {
	told := ""
	repeat.Every(ctx, exchangeEvery, func() bool {
		others := p.otherNodes()
		var all sync.WaitGroup
		for _, node := range others {
			all.Go(func() { p.swapFacts(ctx, node) })
		}
		all.Wait()
		if strayed := p.Strayed(); strayed != told {
			if told = strayed; told != "" {
				p.conf.Log.Error("nodes of different clusters are configured as one: stop those whose data folder is not the right one, and start them with the right one or with an empty one", "reason", told)
			}
		}
		return true
	})
	p.sayFarewell(context.WithoutCancel(ctx))
	return nil
}

// sayFarewell tells the other nodes why this one serves no more, where that is to be known: no
// later exchange will. A node that does not answer is tried again for as long as one may take.
func (p *Peer) sayFarewell(ctx context.Context) {
	if p.roster.Own().Fenced == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	var all sync.WaitGroup
	for _, node := range p.otherNodes() {
		all.Go(func() {
			repeat.Every(ctx, exchangeTime/10, func() bool { return !p.swapFacts(ctx, node) })
		})
	}
	all.Wait()
}

// otherNodes returns all other nodes: the members, and those of the configuration that are
// none yet, without an id. What is of no node any more is forgotten.
func (p *Peer) otherNodes() (list []cluster.Server) {
	leader := p.conf.Node.Leader()
	names, ids, links := map[string]bool{}, map[string]bool{}, map[cluster.Server]bool{cluster.Server(leader): true}
	for _, m := range p.conf.Node.Members() {
		ids[m.ID] = true
		if m.ID != p.me.ID {
			list = append(list, m.Server)
		}
	}
	for _, n := range p.peers {
		names[n.Name] = true
		at := cluster.Server{Addr: n.Addr}
		links[at] = true // for who asks whoever is there
		if n.Name != p.me.Name && !ids[p.file.idOf(n.Name)] {
			list = append(list, at)
		}
	}
	for _, node := range list {
		links[node] = true
	}
	p.links.keepWanted(links)
	p.roster.keepNodes(func(f NodeFact) bool { return names[f.Name] || ids[f.ID] })
	return list
}

// swapFacts exchanges facts with a node, and reports whether it has those of this one.
func (p *Peer) swapFacts(ctx context.Context, node cluster.Server) bool {
	client, err := p.links.clientOf(node)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	own := p.roster.Own()
	begun := time.Now()
	var other grpcpeer.Peer
	resp, err := client.Exchange(ctx, &bursarv1.ExchangeRequest{Facts: own.factMessage()}, grpc.Peer(&other))
	if err != nil {
		p.roster.Miss(node.ID)
		p.conf.Log.Debug("facts were not exchanged", "id", node.ID, "addr", node.Addr, "error", err)
		return false
	}
	f, err := factOf(resp.GetFacts())
	if err != nil || f.Name != nameOf(other.AuthInfo) || f.ID == p.me.ID {
		p.conf.Log.Warn("the facts of another node cannot be used", "addr", node.Addr, "name", f.Name, "certificate", nameOf(other.AuthInfo), "error", err)
		return true
	}
	f.RoundTrip = time.Since(begun)
	p.hearFact(f)
	return true
}

// hearFact keeps the facts of another node, and which name has which id.
func (p *Peer) hearFact(f NodeFact) {
	p.roster.Hear(f)
	if f.Fresh {
		return
	}
	member := false
	for _, m := range p.conf.Node.Members() {
		member = member || m.ID == f.ID
	}
	if !member {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.file.SaveNode(Listed{Name: f.Name, ID: f.ID, Addr: f.Addr}); err != nil {
		p.conf.Log.Warn("the file of peers was not written", "error", err)
	}
}
