package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/bursar-accounting/bursar/proto/ratelog"
)

// Node is this process's member of the cluster. Its methods may be called by
// many goroutines at once.
type Node struct {
	conf   Config
	id     string
	logger *slog.Logger

	bolt    *boltLog
	journal *journal // in front of it; nil when the log is only read
	entries *entryLog
	votes   *votes
	snaps   *snapshots
	machine *machine
	raft    *raft.Raft
	trans   *mesh

	slots    chan struct{} // one per command in flight
	changing chan struct{} // one change of the members at a time
	holding  chan struct{} // one at a time waits for all others to end
	writes   logWrites
	probe    probe

	imageStore *imageStore
	installing sync.Mutex
	receiving  sync.Mutex
	wanting    ratelog.Logger
	generation int // of the marker, offline
	reads      readGuard
	leadership leadership
	news       leaderNews
	measure    *measure
	progress   progress

	haltOnce sync.Once
	halted   chan struct{} // closed when the node must stop
	cause    error         // why; set before halted is closed
	armed    atomic.Bool   // raft's own goroutines run

	closing  atomic.Bool   // no more commands
	stopOnce sync.Once     // Shutdown runs once
	marking  sync.Mutex    // held by who writes the marker
	cutting  sync.Mutex    // held by who cuts the log
	begun    chan struct{} // closed when raft can be asked: it applies entries before
	stopping chan struct{} // closed when Shutdown begins
	ended    chan struct{} // closed when it is over
	stopErr  error
	tasks    sync.WaitGroup
}

// Open checks everything that is on disk, bootstraps a new cluster where Config
// says so, and starts to take part. It owns Config.Stream from the call on, also
// when it fails. What it refuses is ErrForgotten, ErrMismatch, ErrRecovery, ErrCorrupt,
// ErrFormat or an I/O error, each with the file.
func Open(conf Config) (*Node, error) {
	conf = conf.withDefaults()
	n, err := openNode(conf)
	if err != nil && conf.Stream != nil {
		err = errors.Join(err, closeStream(conf.Stream))
	}
	return n, err
}

// closeStream closes a stream that may be closed already.
func closeStream(s raft.StreamLayer) error {
	if err := s.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func openNode(conf Config) (*Node, error) {
	if err := conf.validateConfig(); err != nil {
		return nil, err
	}
	id, err := Identity(conf.DataDir)
	if err != nil {
		return nil, err
	}
	if s, ok := conf.Stream.(*raftStream); ok && s.t.ID() != id {
		return nil, fmt.Errorf("cluster: the transport is for node %s, and this is node %s", s.t.ID(), id)
	}
	n := newNode(conf, id)
	if err := n.openDisk(); err != nil {
		return nil, errors.Join(err, n.closeDisk())
	}
	if err := n.startRaft(); err != nil {
		return nil, errors.Join(err, n.closeDisk())
	}
	return n, nil
}

func newNode(conf Config, id string) *Node {
	n := &Node{
		conf: conf, id: id, logger: conf.Logger.With("node", id),
		slots:    make(chan struct{}, conf.MaxInFlight),
		changing: make(chan struct{}, 1),
		holding:  make(chan struct{}, 1),
		halted:   make(chan struct{}),
		stopping: make(chan struct{}),
		ended:    make(chan struct{}),
		begun:    make(chan struct{}),
	}
	n.leadership = newLeadership()
	n.OnLeader(n.maintainMembers)
	n.measure = newMeasure(n)
	n.machine = newMachine(conf.State, conf.Images, n.scratchDir(), n.haltNode)
	n.machine.fetch = n.fetchImage
	return n
}

func (n *Node) scratchDir() string { return filepath.Join(n.conf.raftDir(), "scratch") }

// haltNode notes why the node must stop; Run then ends it.
func (n *Node) haltNode(err error) {
	n.haltOnce.Do(func() {
		n.cause = err
		close(n.halted)
		n.logger.Error("the node stops", "error", err)
	})
}

// haltReason returns why the node halted, nil when it did not.
func (n *Node) haltReason() error {
	select {
	case <-n.halted:
		return n.cause
	default:
		return nil
	}
}

// endRaftGoroutine ends the calling goroutine if it is one of raft's.
func (n *Node) endRaftGoroutine() {
	if n.armed.Load() {
		endGoroutine()
	}
}

func (n *Node) startRaft() error {
	trans := n.newTransport()
	notify := make(chan bool, 16)
	r, err := raft.NewRaft(n.conf.raftConfig(n.id, notify), n.machine, n.cachedLog(), n.votes, n.snaps, trans)
	if err != nil {
		return errors.Join(fmt.Errorf("cluster: start raft: %w", err), n.haltReason(), trans.Close())
	}
	n.raft, n.trans = r, trans
	close(n.begun)
	trans.raft.Store(r)
	n.armed.Store(true)
	n.tasks.Go(func() { n.leadership.followNotices(notify, n.stopping) })
	n.serveImages(n.handleCalls)
	n.tasks.Go(n.keepLogShort)
	n.tasks.Go(n.keepProgress)
	n.tasks.Go(n.watchLog)
	n.tasks.Go(n.leadAlone)
	n.news.startFollowing(n)
	if err := n.measure.registerMetrics(n.conf.Metrics); err != nil {
		return errors.Join(err, n.Shutdown(context.Background()))
	}
	return nil
}

// leadAlone lets a node that is the only member stand for election at once: it
// has no one to hear from first. Otherwise the ordinary timeout does it.
func (n *Node) leadAlone() {
	if !n.isAlone() || n.raft.State() != raft.Follower {
		return
	}
	if n.progress.isBehind() {
		n.regainVote()
	}
	if err := n.standForElection(); err != nil {
		n.logger.Debug("the first election waits for its timeout", "error", err)
	}
}

// standForElection makes this node a candidate, by the message with which a leader hands
// over; raft has no other way.
func (n *Node) standForElection() error {
	req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3}}
	return n.trans.TimeoutNow(raft.ServerID(n.id), n.trans.LocalAddr(), req, new(raft.TimeoutNowResponse))
}

// cachedLog keeps the newest entries in memory for the followers.
func (n *Node) cachedLog() raft.LogStore {
	cache, err := raft.NewLogCache(64, n.entries)
	if err != nil { // only for a capacity of 0
		return n.entries
	}
	return cache
}

// ownAddr is the address that the bootstrap list gives this node.
func (n *Node) ownAddr() string {
	for _, s := range n.conf.Bootstrap {
		if s.ID == n.id {
			return s.Addr
		}
	}
	return n.id
}

// ID returns this node's id.
func (n *Node) ID() string { return n.id }

// Run serves the functions given to OnLeader and returns when the node has
// ended: nil after ctx was done or Shutdown was called, otherwise the reason why
// this node must not go on. The process should then exit; a restart with a pause
// is right, for a full disk and the like may have been the reason.
func (n *Node) Run(ctx context.Context) error {
	terms := make(chan struct{})
	go func() {
		defer close(terms)
		n.leadership.serveTerms(n, n.stopping)
	}()
	select {
	case <-ctx.Done():
	case <-n.halted:
	case <-n.stopping:
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	err := n.Shutdown(stop)
	<-terms
	return err
}
