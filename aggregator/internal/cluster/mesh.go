package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// maxPool is how many connections to a peer are kept for further requests.
const maxPool = 3

// mesh is raft's transport with four things added: the id of the node that is
// meant goes with each address, the leader remembers how far each peer is, a
// pipeline cannot block for ever, and a new voter is believed to be one.
type mesh struct {
	*raft.NetworkTransport
	greets bool // the stream dials by id and address
	peers  *contacts
	// progress says whether this node may vote.
	progress *progress
	// tell tells a peer this node's history, which leads in a term; nil where none can be
	// reached so.
	tell func(ctx context.Context, to Server, term uint64) error
	// within bounds tell.
	within time.Duration
	// silent says why nothing may be sent now, nil for go ahead.
	silent func() error

	calls   chan raft.RPC // of the peers
	raft    atomic.Pointer[raft.Raft]
	closed  chan struct{}
	closing sync.Once
}

func (n *Node) newTransport() *mesh {
	stream := n.conf.Stream
	if stream == nil {
		stream = newLoneStream(n.ownAddr())
	}
	_, greets := stream.(*raftStream)
	under := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:                  newTracked(stream),
		MaxPool:                 maxPool,
		Timeout:                 10 * time.Second * time.Duration(n.conf.Multiplier),
		Logger:                  newHCLog(n.logger),
		MsgpackUseNewTimeFormat: true,
	})
	m := &mesh{
		NetworkTransport: under, greets: greets, peers: newContacts(), progress: &n.progress, silent: n.whySilent, within: 10 * time.Second * time.Duration(n.conf.Multiplier),
		calls: make(chan raft.RPC), closed: make(chan struct{}),
	}
	if greets {
		m.tell = n.tellHistory
	}
	go m.answerCalls()
	return m
}

func (m *mesh) dialName(id raft.ServerID, addr raft.ServerAddress) raft.ServerAddress {
	if m.greets {
		return joinIDAndAddress(id, addr)
	}
	return addr
}

// AppendEntries sends entries, or a heartbeat.
func (m *mesh) AppendEntries(id raft.ServerID, addr raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if err := m.silent(); err != nil {
		return err
	}
	heartbeat := req.PrevLogEntry == 0 && len(req.Entries) == 0
	if !heartbeat {
		if err := m.introduceTo(id, addr, req.Term); err != nil {
			return err
		}
	}
	asked := time.Now()
	err := m.NetworkTransport.AppendEntries(id, m.dialName(id, addr), req, resp)
	if err == nil {
		m.peers.noteAppended(string(id), asked, req, resp)
	} else {
		m.peers.forgetPeer(string(id)) // it may be started with other data
	}
	return err
}

// introduceTo tells a peer this node's history before the first entry of its term, and anew
// after the peer was out of reach.
func (m *mesh) introduceTo(id raft.ServerID, addr raft.ServerAddress, term uint64) error {
	if m.tell == nil || m.peers.knowsHistory(string(id), term) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.within)
	defer cancel()
	if err := m.tell(ctx, Server{ID: string(id), Addr: string(addr)}, term); err != nil {
		return err
	}
	m.peers.noteIntroduced(string(id), term)
	return nil
}

// RequestVote asks for a vote.
func (m *mesh) RequestVote(id raft.ServerID, addr raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if m.progress.isBehind() {
		return errBehind
	}
	return repeatOnDeadConnections(func() error { return m.NetworkTransport.RequestVote(id, m.dialName(id, addr), req, resp) })
}

// RequestPreVote asks whether a vote would be given.
func (m *mesh) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if m.progress.isBehind() {
		return errBehind
	}
	return repeatOnDeadConnections(func() error { return m.NetworkTransport.RequestPreVote(id, m.dialName(id, addr), req, resp) })
}

// TimeoutNow hands the leadership on.
func (m *mesh) TimeoutNow(id raft.ServerID, addr raft.ServerAddress, req *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return repeatOnDeadConnections(func() error { return m.NetworkTransport.TimeoutNow(id, m.dialName(id, addr), req, resp) })
}

// repeatOnDeadConnections repeats a request that can be repeated while the connections that the
// pool holds turn out to be dead: a peer that has restarted would not be asked
// for its vote, and the election would take another timeout.
func repeatOnDeadConnections(do func() error) error {
	for range maxPool {
		err := do()
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			return err
		}
	}
	return do()
}

// InstallSnapshot sends an image of the State.
func (m *mesh) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if err := m.silent(); err != nil {
		return err
	}
	if err := m.introduceTo(id, addr, req.Term); err != nil {
		return err
	}
	err := m.NetworkTransport.InstallSnapshot(id, m.dialName(id, addr), req, resp, data)
	if err == nil && resp.Success {
		m.peers.noteContact(string(id), contact{term: req.Term, match: req.LastLogIndex})
	}
	return err
}

// AppendEntriesPipeline opens a pipeline.
func (m *mesh) AppendEntriesPipeline(id raft.ServerID, addr raft.ServerAddress) (raft.AppendPipeline, error) {
	under, err := m.NetworkTransport.AppendEntriesPipeline(id, m.dialName(id, addr))
	if err != nil {
		return nil, err
	}
	return newPipeline(under, string(id), m), nil
}

// pipeline stands between raft and its network pipeline, which can block for
// ever: raft's reader ends at the first answer that is no success and never
// reads again, the network's reader then waits for it with the next answer, and
// raft's sender waits for the network's reader, so that no one closes the
// pipeline. Here someone reads on to the end.
type pipeline struct {
	raft.AppendPipeline
	id     string
	mesh   *mesh
	out    chan raft.AppendFuture
	once   sync.Once
	closed chan struct{}
	failed chan struct{} // closed after the first answer at which raft's reader ends
}

func newPipeline(under raft.AppendPipeline, id string, m *mesh) *pipeline {
	p := &pipeline{AppendPipeline: under, id: id, mesh: m,
		out: make(chan raft.AppendFuture), closed: make(chan struct{}), failed: make(chan struct{})}
	go p.forwardAnswers()
	return p
}

// forwardAnswers hands answers to raft until it stops reading, then drops them.
func (p *pipeline) forwardAnswers() {
	for {
		select {
		case f := <-p.AppendPipeline.Consumer():
			p.passAnswer(f)
		case <-p.closed:
			return
		}
	}
}

func (p *pipeline) passAnswer(f raft.AppendFuture) {
	select {
	case <-p.failed:
		return
	default:
	}
	if f.Error() == nil {
		p.mesh.peers.noteAppended(p.id, f.Start(), f.Request(), f.Response())
	}
	select {
	case p.out <- f:
	case <-p.closed:
	}
	if f.Error() != nil || !f.Response().Success || f.Response().Term > f.Request().Term {
		close(p.failed)
	}
}

// AppendEntries sends the next message, unless an answer has ended the pipeline.
func (p *pipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	select {
	case <-p.failed:
		return nil, raft.ErrPipelineShutdown
	default:
	}
	if err := p.mesh.silent(); err != nil {
		return nil, err
	}
	return p.AppendPipeline.AppendEntries(req, resp)
}

// Consumer returns the answers.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.out }

// Close ends the pipeline.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	p.mesh.peers.forgetPeer(p.id)
	return p.AppendPipeline.Close()
}

// contacts is what a leader knows of its peers from their answers.
type contacts struct {
	mu   sync.Mutex
	list map[string]contact
	told map[string]uint64 // the terms in which peers were told the history
}

type contact struct {
	term  uint64
	match uint64
	at    time.Time // of the last answer
	asked time.Time // when the newest question began that was answered in the term
}

func newContacts() *contacts {
	return &contacts{list: map[string]contact{}, told: map[string]uint64{}}
}

// noteIntroduced notes that a peer was told the history in a term.
func (c *contacts) noteIntroduced(id string, term uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told[id] = term
}

// knowsHistory reports whether a peer was told the history in a term.
func (c *contacts) knowsHistory(id string, term uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told[id] == term
}

// forgetPeer has a peer be told again.
func (c *contacts) forgetPeer(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.told, id)
}

// noteAppended notes the answer to entries or to a heartbeat that were sent at a time.
func (c *contacts) noteAppended(id string, asked time.Time, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	if resp.Term > req.Term {
		return
	}
	match := uint64(0)
	if resp.Success {
		match = req.PrevLogEntry
		if n := len(req.Entries); n > 0 {
			match = req.Entries[n-1].Index
		}
	}
	c.noteContact(id, contact{term: req.Term, match: match, asked: asked})
}

// noteContact remembers what a peer has answered in a term; zero is for nothing new.
func (c *contacts) noteContact(id string, now contact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.list[id]
	if now.term < was.term {
		return
	}
	if now.term == was.term {
		now.match = max(now.match, was.match)
		if was.asked.After(now.asked) {
			now.asked = was.asked
		}
	}
	now.at = time.Now()
	c.list[id] = now
}

// contactOf returns what is known of a peer in that term.
func (c *contacts) contactOf(id string, term uint64) contact {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.list[id]
	if got.term != term {
		return contact{at: got.at}
	}
	return got
}

// whySilent returns an error while this node must not speak as a leader.
func (n *Node) whySilent() error {
	if d := n.LogStalled(); d > n.conf.stall {
		return fmt.Errorf("cluster: the raft log has not taken a write for %s", d.Round(time.Second))
	}
	return nil
}
