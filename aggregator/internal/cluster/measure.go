package cluster

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Stats is a node at one moment. The fields are read one after the other and
// need not be of the same instant.
type Stats struct {
	ID     string
	State  string // Follower, Candidate, Leader or Shutdown
	Leader Leader
	Term   uint64
	// Last, Commit: the newest entry in the log, and the newest that is known to
	// be on a majority. Applied: the newest command that the State has applied;
	// it stays below Commit when the newest entries are no commands.
	Last, Commit, Applied uint64
	// Snapshot is the index up to which the log may have been cut.
	Snapshot uint64
	// LogBytes is about what has been added to the log since then.
	LogBytes int64
	// InFlight counts proposals that wait for their result.
	InFlight int
	// Contact is when this node, a follower, last heard from the leader; zero
	// for never.
	Contact time.Time
	// Servers are the members.
	Servers []Member
}

// Member is a server of the newest configuration. One that is no voter gets the
// log and takes no part in decisions: it is new.
type Member struct {
	Server
	Voter  bool
	Leader bool
}

// Stats returns how this node stands.
func (n *Node) Stats() Stats {
	snapshot := n.lastSnapshot()
	applied, _ := n.machine.statePosition()
	s := Stats{
		ID: n.id, State: n.raft.State().String(), Leader: n.Leader(), Term: n.raft.CurrentTerm(),
		Last: n.raft.LastIndex(), Commit: n.raft.CommitIndex(), Applied: applied,
		Snapshot: snapshot, LogBytes: n.entries.bytesAfter(snapshot),
		InFlight: len(n.slots), Contact: n.raft.LastContact(),
	}
	s.Servers = n.Members()
	return s
}

// lastSnapshot is the index of the newest snapshot; raft tells it as text only.
func (n *Node) lastSnapshot() uint64 {
	index, err := strconv.ParseUint(n.raft.Stats()["last_snapshot_index"], 10, 64)
	if err != nil {
		return 0
	}
	return index
}

// measure is what the node shows to Prometheus.
type measure struct {
	node   *Node
	to     prometheus.Registerer
	commit prometheus.Histogram
	gauges []gauge
}

type gauge struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*Node) float64
}

func newMeasure(n *Node) *measure {
	m := &measure{node: n, commit: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "bursar_raft_commit_seconds",
		Help:    "Time from a proposal to its result on the leader.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
	})}
	m.addMetric("leader", "1 on the node that leads, otherwise 0.", func(n *Node) float64 {
		if n.IsLeader() {
			return 1
		}
		return 0
	})
	m.addMetric("term", "The newest term that this node has seen.", func(n *Node) float64 { return float64(n.raft.CurrentTerm()) })
	m.addMetric("applied_index", "The newest command that this node has applied.", func(n *Node) float64 {
		at, _ := n.machine.statePosition()
		return float64(at)
	})
	m.addMetric("commit_index", "The newest entry that this node knows to be committed.", func(n *Node) float64 { return float64(n.raft.CommitIndex()) })
	m.addMetric("proposals_in_flight", "Commands handed to raft and not yet answered.", func(n *Node) float64 { return float64(len(n.slots)) })
	m.addMetric("log_bytes", "Bytes in the raft log since the newest snapshot.", func(n *Node) float64 {
		return float64(n.entries.bytesAfter(n.lastSnapshot()))
	})
	m.gauges = append(m.gauges, gauge{
		desc:  prometheus.NewDesc("bursar_raft_log_syncs_total", "Times that new entries of the raft log were synced to disk.", nil, nil),
		kind:  prometheus.CounterValue,
		value: func(n *Node) float64 { return float64(n.journal.syncs.Load()) },
	})
	return m
}

func (m *measure) addMetric(name, help string, value func(*Node) float64) {
	desc := prometheus.NewDesc("bursar_raft_"+name, help, nil, nil)
	m.gauges = append(m.gauges, gauge{desc: desc, kind: prometheus.GaugeValue, value: value})
}

func (m *measure) registerMetrics(to prometheus.Registerer) error {
	if to == nil {
		return nil
	}
	if err := to.Register(m); err != nil {
		return fmt.Errorf("cluster: metrics: %w", err)
	}
	m.to = to
	return nil
}

func (m *measure) unregisterMetrics() {
	if m.to != nil {
		m.to.Unregister(m)
	}
}

// Describe implements prometheus.Collector.
func (m *measure) Describe(to chan<- *prometheus.Desc) {
	m.commit.Describe(to)
	for _, g := range m.gauges {
		to <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (m *measure) Collect(to chan<- prometheus.Metric) {
	m.commit.Collect(to)
	for _, g := range m.gauges {
		to <- prometheus.MustNewConstMetric(g.desc, g.kind, g.value(m.node))
	}
}
