package membership

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// server answers the other nodes.
type server struct {
	bursarv1.UnimplementedPeerServer

	p *Peer
}

// stopTime is how long calls of other nodes may take to end.
const stopTime = 5 * time.Second

// linkAge is after how long a connection of another node is ended in order. With the tenth that gRPC adds
// by chance, it is less than the time after which [identity.Keys.Follow] breaks a connection off: by
// then nodes with valid certificates have made a new one, and no write is broken off, whose outcome
// would be unknown.
const linkAge = identity.Grace * 2 / 3

// callTime bounds calls on a connection that was ended in order.
const callTime = time.Hour

// newServer makes a server of gRPC whose connections are ended in order when they have that age.
func newServer(age time.Duration) *grpc.Server {
	return grpc.NewServer(
		grpc.Creds(proven{}),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxResponse),
		grpc.MaxConcurrentStreams(256),
		grpc.ConnectionTimeout(5*time.Second),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: 10 * time.Second, Timeout: 5 * time.Second, MaxConnectionAge: age, MaxConnectionAgeGrace: callTime,
		}),
	)
}

// servePeers answers other nodes until ctx ends.
func (p *Peer) servePeers(ctx context.Context) error {
	s := newServer(linkAge)
	bursarv1.RegisterPeerServer(s, server{p: p})
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		force := time.AfterFunc(stopTime, s.Stop)
		defer force.Stop()
		s.GracefulStop()
	})
	err := s.Serve(p.conf.Listener)
	if !stop() {
		<-ended
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the other nodes: %w", err)
	}
	return nil
}

// Hello implements the peer protocol.
func (s server) Hello(_ context.Context, _ *bursarv1.HelloRequest) (*bursarv1.HelloResponse, error) {
	p := s.p
	h := p.ownHello()
	resp := &bursarv1.HelloResponse{
		Name: h.Name, Id: h.ID, Addr: h.Addr, Fresh: h.Fresh, Leads: h.Leads, Cluster: h.Cluster,
		Configured: listedMessages(h.Configured), Members: listedMessages(h.Members),
	}
	if !h.Promise.None() {
		resp.Promise = promiseMessage(h.Promise)
	}
	return resp, nil
}

// ownHello is what this node says of itself.
func (p *Peer) ownHello() Hello {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := Hello{
		Listed: p.me, Fresh: p.conf.Node.Fresh(), Leads: p.conf.Node.IsLeader(), Configured: p.peers,
		Promise: p.file.Promises().Held, Members: p.nameMembers(p.conf.Node.Members()),
	}
	if p.conf.Store != nil {
		h.Cluster, _ = p.conf.Store.Cluster()
	}
	return h
}

// nameMembers gives the members the names that this node knows. p.mu is held.
func (p *Peer) nameMembers(members []cluster.Member) []Listed {
	names := map[string]string{p.me.ID: p.me.Name}
	for _, n := range p.file.Nodes() {
		names[n.ID] = n.Name
	}
	list := make([]Listed, 0, len(members))
	for _, m := range members {
		list = append(list, Listed{Name: names[m.ID], ID: m.ID, Addr: m.Addr})
	}
	return list
}

// Names returns the members of the cluster with the names that this node knows.
func (p *Peer) Names() []Listed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nameMembers(p.conf.Node.Members())
}

// Promise implements the peer protocol.
func (s server) Promise(ctx context.Context, req *bursarv1.PromiseRequest) (*bursarv1.PromiseResponse, error) {
	reason, held, err := s.p.considerPromise(callerName(ctx), promiseOf(req.GetPromise()))
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	resp := &bursarv1.PromiseResponse{Given: reason == "", Reason: reason}
	if !held.None() {
		resp.Held = promiseMessage(held)
	}
	return resp, nil
}

// Exchange implements the peer protocol.
func (s server) Exchange(ctx context.Context, req *bursarv1.ExchangeRequest) (*bursarv1.ExchangeResponse, error) {
	f, err := factOf(req.GetFacts())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if name := callerName(ctx); name != f.Name {
		return nil, status.Errorf(codes.PermissionDenied, "the certificate is of %s, the facts are of %s", name, f.Name)
	}
	s.p.hearFact(f)
	own := s.p.roster.Own()
	return &bursarv1.ExchangeResponse{Facts: own.factMessage()}, nil
}

func listedMessages(list []Listed) []*bursarv1.ListedNode {
	out := make([]*bursarv1.ListedNode, 0, len(list))
	for _, n := range list {
		out = append(out, &bursarv1.ListedNode{Name: n.Name, Id: n.ID, Addr: n.Addr})
	}
	return out
}

// maxListed bounds the nodes that another one lists.
const maxListed = 64

func listedOf(list []*bursarv1.ListedNode) []Listed {
	out := make([]Listed, 0, min(len(list), maxListed))
	for _, n := range list[:min(len(list), maxListed)] {
		out = append(out, Listed{Name: n.GetName(), ID: n.GetId(), Addr: n.GetAddr()})
	}
	return out
}

func promiseMessage(p Promise) *bursarv1.FormationPromise {
	return &bursarv1.FormationPromise{Founder: p.Founder, Round: p.Round, Nodes: listedMessages(p.Nodes)}
}

func promiseOf(m *bursarv1.FormationPromise) Promise {
	return Promise{Founder: m.GetFounder(), Round: m.GetRound(), Nodes: listedOf(m.GetNodes())}
}
