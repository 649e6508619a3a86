package membership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Write has a command committed by whoever leads, and returns the store's result
// for it. [ErrNotNow] says that nothing was written and that it may be tried
// again, [ErrRefused] that nothing was written and never will be; after
// [cluster.ErrUnknownOutcome], and any other error, no one knows.
func (p *Peer) Write(ctx context.Context, c store.Command) (any, error) {
	data := store.Encode(c)
	if p.conf.Node.IsLeader() {
		result, err := p.proposeHere(ctx, data)
		return result.Value, err
	}
	return p.forwardToLeader(ctx, data)
}

// proposeHere commits a command on this node, if it leads.
func (p *Peer) proposeHere(ctx context.Context, data []byte) (cluster.Result, error) {
	if p.conf.Refuse != nil {
		if err := p.conf.Refuse(); err != nil {
			return cluster.Result{}, notNow("%w", err)
		}
	}
	if !p.gate.enterGate() {
		return cluster.Result{}, notNow("the leadership is being handed on")
	}
	defer p.gate.leaveGate()
	result, err := p.conf.Node.Propose(ctx, data)
	switch {
	case err == nil, errors.Is(err, cluster.ErrUnknownOutcome):
		return result, err
	case errors.Is(err, cluster.ErrTooLarge):
		return result, fmt.Errorf("%w: %w", ErrRefused, err)
	default: // ErrNotLeader, ErrStopped and a bare context error: nothing was proposed
		return result, notNow("%w", err)
	}
}

// forwardToLeader hands a command to the leader.
func (p *Peer) forwardToLeader(ctx context.Context, data []byte) (any, error) {
	if len(data) > cluster.MaxEntry {
		return nil, fmt.Errorf("%w: %w: %d bytes, at most %d", ErrRefused, cluster.ErrTooLarge, len(data), cluster.MaxEntry)
	}
	leader, client, err := p.leaderClient()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer p.leaders.whileLeads(leader.ID, cancel)()
	ctx, sent := withSent(ctx)
	resp, err := client.Forward(ctx, &bursarv1.ForwardRequest{Command: data})
	switch {
	case err != nil && sent.yes:
		return nil, fmt.Errorf("%w: the leader at %s has not answered: %w", cluster.ErrUnknownOutcome, leader.Addr, err)
	case err != nil:
		return nil, notNow("the leader at %s cannot be reached: %w", leader.Addr, err)
	}
	return readForwarded(resp)
}

// readForwarded reads the leader's answer.
func readForwarded(resp *bursarv1.ForwardResponse) (any, error) {
	switch resp.GetOutcome() {
	case bursarv1.ForwardResponse_COMMITTED:
		result, err := store.DecodeResult(resp.GetResult())
		if err != nil {
			return nil, fmt.Errorf("%w: the leader has committed it and answers: %w", cluster.ErrUnknownOutcome, err)
		}
		return result, nil
	case bursarv1.ForwardResponse_NOT_NOW:
		return nil, notNow("the leader says: %s", resp.GetReason())
	case bursarv1.ForwardResponse_REFUSED:
		return nil, fmt.Errorf("%w by the leader: %s", ErrRefused, resp.GetReason())
	default:
		return nil, fmt.Errorf("%w: the leader says: %s", cluster.ErrUnknownOutcome, resp.GetReason())
	}
}

// Forward implements the peer protocol.
func (s server) Forward(ctx context.Context, req *bursarv1.ForwardRequest) (*bursarv1.ForwardResponse, error) {
	if _, err := store.Decode(req.GetCommand()); err != nil { // in the log it would stop every node
		return &bursarv1.ForwardResponse{Outcome: bursarv1.ForwardResponse_REFUSED, Reason: err.Error()}, nil //nolint:nilerr // the answer says it
	}
	result, err := s.p.proposeHere(ctx, req.GetCommand())
	resp := &bursarv1.ForwardResponse{Index: result.Index}
	if err == nil {
		resp.Result, err = store.EncodeResult(result.Value)
	}
	switch {
	case err == nil:
		resp.Outcome = bursarv1.ForwardResponse_COMMITTED
		return resp, nil
	case errors.Is(err, ErrNotNow):
		resp.Outcome = bursarv1.ForwardResponse_NOT_NOW
	case errors.Is(err, ErrRefused):
		resp.Outcome = bursarv1.ForwardResponse_REFUSED
	default:
		resp.Outcome = bursarv1.ForwardResponse_UNKNOWN
	}
	resp.Reason = err.Error()
	return resp, nil
}

// leaderClient returns who leads and a client for it.
func (p *Peer) leaderClient() (cluster.Leader, bursarv1.PeerClient, error) {
	leader := p.conf.Node.Leader()
	switch {
	case leader.ID == "" || leader.Addr == "":
		return leader, nil, notNow("no leader is known")
	case leader.ID == p.me.ID:
		return leader, nil, notNow("this node becomes the leader, or ceases to be it")
	}
	client, err := p.links.clientOf(cluster.Server(leader))
	if err != nil {
		return leader, nil, notNow("%w", err)
	}
	return leader, client, nil
}

// TransferLeadership gives the leadership to another node without a write that fails or
// whose outcome no one knows: writes wait outside, those under way are finished,
// then it is transferred. The errors are those of cluster.TransferLeadership.
func (p *Peer) TransferLeadership(ctx context.Context) error {
	if !p.conf.Node.IsLeader() {
		return cluster.ErrNotLeader
	}
	if len(p.conf.Node.Members()) < 2 {
		return cluster.ErrNoPeer
	}
	p.gate.closeGate()
	defer p.gate.openGate()
	if err := p.gate.awaitEmpty(ctx); err != nil {
		return err
	}
	return p.conf.Node.TransferLeadership(ctx)
}

// gate keeps count of the writes under way, and keeps new ones outside while it
// is closed.
type gate struct {
	mu     sync.Mutex
	inside int
	closed int
	news   chan struct{} // closed and replaced when the last one has left
}

func (g *gate) init() { g.news = make(chan struct{}) }

func (g *gate) enterGate() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed > 0 {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leaveGate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 {
		close(g.news)
		g.news = make(chan struct{})
	}
}

func (g *gate) closeGate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed++
}

func (g *gate) openGate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed--
}

// awaitEmpty waits until no one is inside.
func (g *gate) awaitEmpty(ctx context.Context) error {
	for {
		g.mu.Lock()
		inside, news := g.inside, g.news
		g.mu.Unlock()
		if inside == 0 {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leaderWatch knows who leads, and who waits for a leader to be another.
type leaderWatch struct {
	mu     sync.Mutex
	leader cluster.Leader
	change chan struct{} // closed and replaced at every change
}

// lateAnswer is how long a former leader may take to answer once another one is
// known: what it had committed, it has answered by then.
const lateAnswer = 500 * time.Millisecond

func (r *leaderWatch) init() { r.change = make(chan struct{}) }

func (r *leaderWatch) followNews(ctx context.Context, news <-chan cluster.Leader) {
	for {
		select {
		case leader, ok := <-news:
			if !ok {
				return
			}
			r.mu.Lock()
			r.leader = leader
			close(r.change)
			r.change = make(chan struct{})
			r.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (r *leaderWatch) currentLeader() (cluster.Leader, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leader, r.change
}

// whileLeads calls cancel when a node other than id is known to lead, a little
// later. The caller calls what it returns when it no longer wants that.
func (r *leaderWatch) whileLeads(id string, cancel func()) (end func()) {
	done := make(chan struct{})
	go func() {
		for {
			leader, change := r.currentLeader()
			wake := change
			var late <-chan time.Time
			if leader.ID != "" && leader.ID != id {
				late = time.After(lateAnswer)
			}
			select {
			case <-done:
				return
			case <-wake:
			case <-late:
				cancel()
				return
			}
		}
	}()
	return func() { close(done) }
}

// messageOf returns the message of an error of gRPC without its code.
func messageOf(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
