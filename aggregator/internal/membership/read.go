package membership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// Linearizable returns nil when a read of this node's store that begins
// afterwards sees all that was acknowledged by any node before the call. It is
// one try: [ErrNotNow] says that there is no leader just now.
func (p *Peer) Linearizable(ctx context.Context) error {
	begun := time.Now()
	var err error
	if p.conf.Node.IsLeader() {
		_, err = p.conf.Node.ReadIndex(ctx)
		if errors.Is(err, cluster.ErrNotLeader) {
			return notNow("%w", err)
		}
	} else {
		err = p.followLeader(ctx)
	}
	if err == nil {
		p.fresh.noteFresh(begun)
	}
	return err
}

// followLeader waits until this node has applied what the leader has committed.
func (p *Peer) followLeader(ctx context.Context) error {
	index, err := p.indexes.getIndex(ctx, p.askIndex)
	if err != nil {
		return err
	}
	return p.conf.Node.WaitApplied(ctx, index)
}

// indexTime bounds one question for the leader's index.
const indexTime = 2 * time.Second

func (p *Peer) askIndex() (uint64, error) {
	leader, client, err := p.leaderClient()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), indexTime)
	defer cancel()
	defer p.leaders.whileLeads(leader.ID, cancel)()
	resp, err := client.ReadIndex(ctx, &bursarv1.ReadIndexRequest{})
	switch {
	case err != nil:
		return 0, notNow("the leader at %s: %s", leader.Addr, messageOf(err))
	case !resp.GetLeads():
		return 0, notNow("%s leads no longer", leader.Addr)
	}
	return resp.GetIndex(), nil
}

// ReadIndex implements the peer protocol.
func (s server) ReadIndex(ctx context.Context, _ *bursarv1.ReadIndexRequest) (*bursarv1.ReadIndexResponse, error) {
	index, err := s.p.conf.Node.ReadIndex(ctx)
	if errors.Is(err, cluster.ErrNotLeader) || errors.Is(err, cluster.ErrStopped) {
		return &bursarv1.ReadIndexResponse{}, nil
	}
	return &bursarv1.ReadIndexResponse{Leads: true, Index: index}, err
}

// indexes lets the reads that wait at the same time share one question. A read
// takes only an answer to a question that was asked after the read began.
type indexes struct {
	mu      sync.Mutex
	running bool
	next    *indexAnswer // to the question that is not asked yet
}

type indexAnswer struct {
	done  chan struct{}
	index uint64
	err   error
}

func (x *indexes) getIndex(ctx context.Context, ask func() (uint64, error)) (uint64, error) {
	x.mu.Lock()
	if x.next == nil {
		x.next = &indexAnswer{done: make(chan struct{})}
	}
	mine := x.next
	if !x.running {
		x.running = true
		go x.askWhileWanted(ask)
	}
	x.mu.Unlock()
	select {
	case <-mine.done:
		return mine.index, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// askWhileWanted asks as long as someone waits.
func (x *indexes) askWhileWanted(ask func() (uint64, error)) {
	for {
		x.mu.Lock()
		a := x.next
		x.next = nil
		if a == nil {
			x.running = false
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
		a.index, a.err = ask()
		close(a.done)
	}
}

// Staleness says how old the state of this node may be.
type Staleness struct {
	// Age is how long ago this node last knew that it had applied all that was
	// committed.
	Age time.Duration
	// Never is true when it never knew; Age says nothing then.
	Never bool
}

// ErrTooOld is wrapped by the error of [Peer.Within].
var ErrTooOld = errors.New("this node's data may be older than asked for")

// Within returns how old this node's state may be, at most that age; a negative
// age is any. Where it may be older, the leader is asked, and the error says that
// it does not answer.
func (p *Peer) Within(ctx context.Context, age time.Duration) (Staleness, error) {
	s := p.fresh.ageAt(time.Now())
	if age < 0 || (!s.Never && s.Age <= age) {
		return s, nil
	}
	if err := p.Linearizable(ctx); err != nil {
		return s, fmt.Errorf("%w, and the leader cannot be asked: %w", ErrTooOld, err)
	}
	return p.fresh.ageAt(time.Now()), nil
}

// freshness is when this node was last known to have all that was committed.
type freshness struct {
	mu sync.Mutex
	at time.Time
}

func (f *freshness) noteFresh(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.After(f.at) {
		f.at = at
	}
}

func (f *freshness) ageAt(now time.Time) Staleness {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() {
		return Staleness{Never: true}
	}
	return Staleness{Age: max(now.Sub(f.at), 0)}
}

// freshEvery is how often a node asks how far the leader is when no read does.
const freshEvery = time.Second

// keepFresh asks until ctx ends, so that a stale read knows its age.
func (p *Peer) keepFresh(ctx context.Context) {
	repeat.Every(ctx, freshEvery, func() bool {
		if s := p.fresh.ageAt(time.Now()); !s.Never && s.Age < freshEvery/2 {
			return true
		}
		ctx, cancel := context.WithTimeout(ctx, indexTime)
		defer cancel()
		_ = p.Linearizable(ctx) // who has to know sees it in the age
		return true
	})
}
