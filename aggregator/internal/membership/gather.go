package membership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

const (
	// gatherEvery is how often a node without a cluster asks the others.
	gatherEvery = 500 * time.Millisecond
	// helloTime bounds one question.
	helloTime = 2 * time.Second
)

// gatherCluster founds a cluster with the others or waits to be added to theirs, until
// this node is a member or ctx ends.
func (p *Peer) gatherCluster(ctx context.Context) (err error) {
	repeat.Every(ctx, gatherEvery, func() bool {
		if !p.conf.Node.Fresh() {
			p.noteWaiting("")
			p.rememberNode(p.me) // whose data folder it is
			return false
		}
		plan, stepErr := p.planNext(p.askHellos(ctx, p.peers))
		if stepErr != nil {
			err = stepErr
			return false
		}
		if plan.Wait != "" {
			p.noteWaiting(plan.Wait)
			return true
		}
		err = p.foundCluster(ctx, plan.Ask)
		return err == nil
	})
	return err
}

// noteWaiting keeps what this node waits for, and logs it when it is news.
func (p *Peer) noteWaiting(waits string) {
	p.mu.Lock()
	news := waits != p.waits
	p.waits = waits
	p.mu.Unlock()
	if !news {
		return
	}
	if waits == "" {
		p.conf.Log.Info("this node is a member of a cluster")
		return
	}
	p.conf.Log.Info("this node has no cluster yet and waits", "reason", waits)
}

func (p *Peer) currentGathering() *Gathering {
	return &Gathering{Me: p.me, Peers: p.peers, Promises: p.file.Promises()}
}

// planNext says what comes next; a promise of this node's own is durable then.
func (p *Peer) planNext(heard map[string]Hello) (Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.currentGathering()
	plan := g.Next(heard)
	if plan.Wait != "" || g.Promises.Held.isEqual(p.file.Promises().Held) {
		return plan, nil
	}
	return plan, p.file.SavePromises(g.Promises)
}

// considerPromise answers a founder; a promise is durable before it is given.
func (p *Peer) considerPromise(from string, promise Promise) (reason string, held Promise, err error) {
	now := p.founderNow(promise)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.conf.Node.Fresh() {
		return "this node belongs to a cluster", p.file.Promises().Held, nil
	}
	g := p.currentGathering()
	reason = g.Consider(from, now, promise)
	if reason == "" && !g.Promises.Held.isEqual(p.file.Promises().Held) {
		if err := p.file.SavePromises(g.Promises); err != nil {
			return "", Promise{}, err
		}
		p.conf.Log.Info("this node has promised to belong to a new cluster", "founder", from, "nodes", describeNodes(promise.Nodes))
	}
	return reason, p.file.Promises().Held, nil
}

// founderNow asks the founder of a promise who it is, if that counts; "" when it
// does not count or the founder does not answer.
func (p *Peer) founderNow(promise Promise) string {
	p.mu.Lock()
	renewed := p.currentGathering().Renewed(promise)
	p.mu.Unlock()
	if !renewed {
		return ""
	}
	for _, n := range p.peers {
		if n.Name != promise.Nodes[0].Name {
			continue
		}
		if h, err := p.askHello(context.Background(), n); err == nil && h.Name == n.Name {
			return h.ID
		}
	}
	return ""
}

// foundCluster asks all others for the promise and founds the cluster when all have
// given it.
func (p *Peer) foundCluster(ctx context.Context, promise Promise) error {
	var mu sync.Mutex
	var given []string
	why := ""
	var all sync.WaitGroup
	for _, n := range promise.Nodes {
		if n.ID == p.me.ID {
			continue
		}
		all.Go(func() {
			reason := p.askPromise(ctx, n, promise)
			mu.Lock()
			defer mu.Unlock()
			if reason == "" {
				given = append(given, n.ID)
			} else {
				why = fmt.Sprintf("%s does not promise: %s", n.Name, reason)
			}
		})
	}
	all.Wait()
	if why != "" {
		p.noteWaiting(why)
		return nil
	}
	return p.bootstrapCluster(promise, given)
}

// askPromise asks one node; the reason is empty when it has promised.
func (p *Peer) askPromise(ctx context.Context, n Listed, promise Promise) string {
	client, err := p.links.clientOf(cluster.Server{Addr: n.Addr})
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	var other grpcpeer.Peer
	resp, err := client.Promise(ctx, &bursarv1.PromiseRequest{Promise: promiseMessage(promise)}, grpc.Peer(&other))
	switch {
	case err != nil:
		return messageOf(err)
	case nameOf(other.AuthInfo) != n.Name:
		return fmt.Sprintf("the certificate at %s is of %s", n.Addr, nameOf(other.AuthInfo))
	case !resp.GetGiven():
		return resp.GetReason()
	case !promiseOf(resp.GetHeld()).isEqual(promise):
		return "it holds another promise"
	}
	return ""
}

// bootstrapCluster founds the cluster if the promise still stands.
func (p *Peer) bootstrapCluster(promise Promise, given []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.conf.Node.Fresh() || !p.currentGathering().MayFound(promise, given) {
		return nil
	}
	servers := make([]cluster.Server, 0, len(promise.Nodes))
	for _, n := range promise.Nodes {
		servers = append(servers, cluster.Server{ID: n.ID, Addr: n.Addr})
	}
	p.conf.Log.Info("this node founds the cluster", "nodes", describeNodes(promise.Nodes))
	if err := p.conf.Node.Bootstrap(servers); err != nil {
		return fmt.Errorf("found the cluster: %w", err)
	}
	return nil
}

// askHellos asks nodes at once; those that do not answer are missing.
func (p *Peer) askHellos(ctx context.Context, peers []Listed) map[string]Hello {
	var mu sync.Mutex
	heard := map[string]Hello{}
	var all sync.WaitGroup
	for _, n := range peers {
		if n.Name == p.me.Name {
			continue
		}
		all.Go(func() {
			h, err := p.askHello(ctx, n)
			if err != nil {
				p.conf.Log.Debug("a node does not say hello", "name", n.Name, "addr", n.Addr, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			heard[n.Name] = h
		})
	}
	all.Wait()
	return heard
}

// errImpostor: the name that a node gives is not that of its certificate.
var errImpostor = errors.New("the certificate is of another name")

func (p *Peer) askHello(ctx context.Context, n Listed) (Hello, error) {
	client, err := p.links.clientOf(cluster.Server{Addr: n.Addr})
	if err != nil {
		return Hello{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	var other grpcpeer.Peer
	resp, err := client.Hello(ctx, &bursarv1.HelloRequest{Name: p.me.Name, Id: p.me.ID}, grpc.Peer(&other))
	if err != nil {
		return Hello{}, errors.New(messageOf(err))
	}
	if resp.GetName() != nameOf(other.AuthInfo) {
		return Hello{}, fmt.Errorf("%w: %s, not %s", errImpostor, nameOf(other.AuthInfo), resp.GetName())
	}
	return Hello{
		Listed: Listed{Name: resp.GetName(), ID: resp.GetId(), Addr: resp.GetAddr()},
		Fresh:  resp.GetFresh(), Leads: resp.GetLeads(), Cluster: resp.GetCluster(),
		Configured: listedOf(resp.GetConfigured()), Promise: promiseOf(resp.GetPromise()), Members: listedOf(resp.GetMembers()),
	}, nil
}
