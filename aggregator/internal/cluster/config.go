package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

// MaxEntry is the greatest length of a command in bytes. Larger entries would
// delay the heartbeats that share the connection with them.
const MaxEntry = 384 << 10

// Server is a member of the cluster: its id (see Identity) and the address of
// its raft listener.
type Server struct {
	ID   string
	Addr string
}

// Config says how a node is opened. State and DataDir are required.
type Config struct {
	// DataDir holds node.id, raft.generation and the directory raft/. It is
	// made with mode 0700 when it is missing. One process at a time.
	DataDir string

	// ProgressDir is a directory outside of DataDir, and not part of copies of it, in
	// which the node records its term and how far it is, so that a DataDir that went back
	// to an older copy is noticed: see Behind. It is made when it is missing. Empty: the
	// node records nothing.
	ProgressDir string

	// State is what commands are applied to. The caller closes it, after Run or
	// Shutdown has returned.
	State State

	// Images sends and receives the State. Nil: the node cannot bring another
	// one up to date whose log is too far behind, nor be brought.
	Images Images

	// Stream carries raft between the nodes: Transport.Raft. The node closes it.
	// Nil: the node is alone, dials no one and listens nowhere.
	Stream raft.StreamLayer

	// Bootstrap lists the voters of a new cluster, this node among them. It is
	// used once, when neither the log nor the State holds anything, and ignored
	// ever after. All nodes of a new cluster are given the same list. Empty: a
	// new node waits until it is added.
	Bootstrap []Server

	// Multiplier stretches the timeouts of elections for slow networks and disks; 1 to
	// 10, 0 means 1. At 1 a follower stands for election after 0.5 to 1 s.
	Multiplier int

	// MaxInFlight bounds the commands handed to raft and not yet applied; 0
	// means 64. Further callers wait.
	MaxInFlight int

	// LogBytes is how much of the log may be added before the State is flushed
	// and the log shortened; 0 means 64 MiB.
	LogBytes int64

	// TrailingBytes is how much of the log is kept behind that, for followers
	// that lag; 0 means 64 MiB.
	TrailingBytes int64

	// Stable is how long a new node must have kept up before it gets its vote; 0
	// means 10 s.
	Stable time.Duration

	// Logger gets what raft and the node have to say; nil means silence.
	Logger *slog.Logger

	// Metrics gets the bursar_raft_* metrics; nil means none.
	Metrics prometheus.Registerer

	// stall is how long a write of the log may hang before a leader gives up the
	// leadership.
	stall time.Duration

	// fetchPause lies between two rounds of questions for an image.
	fetchPause time.Duration

	// calm multiplies the timeouts of elections beyond what Multiplier may; 0 means 1. A test
	// of what must not cost a leader its term is not judged by how busy the machine is.
	calm int

	// lockWait is how long another process may hold the log at the start.
	lockWait time.Duration
}

func (c Config) withDefaults() Config {
	c.Multiplier = valueOr(c.Multiplier, 1)
	c.MaxInFlight = valueOr(c.MaxInFlight, 64)
	c.LogBytes = valueOr(c.LogBytes, 64<<20)
	c.TrailingBytes = valueOr(c.TrailingBytes, 64<<20)
	c.Stable = valueOr(c.Stable, 10*time.Second)
	c.fetchPause = valueOr(c.fetchPause, fetchPause)
	c.stall = valueOr(c.stall, stallLimit)
	c.lockWait = valueOr(c.lockWait, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func valueOr[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func (c Config) validateConfig() error {
	var problems []error
	if c.DataDir == "" {
		problems = append(problems, errors.New("no data directory"))
	}
	if c.State == nil {
		problems = append(problems, errors.New("no state"))
	}
	if c.Multiplier < 1 || c.Multiplier > 10 {
		problems = append(problems, fmt.Errorf("raft multiplier %d is not between 1 and 10", c.Multiplier))
	}
	if c.MaxInFlight < 1 || c.LogBytes < 1 || c.TrailingBytes < 1 {
		problems = append(problems, errors.New("a limit is negative"))
	}
	if len(problems) > 0 {
		return fmt.Errorf("cluster: configuration: %w", errors.Join(problems...))
	}
	return nil
}

func (c Config) raftDir() string     { return filepath.Join(c.DataDir, "raft") }
func (c Config) logPath() string     { return filepath.Join(c.raftDir(), "raft.db") }
func (c Config) snapshotDir() string { return filepath.Join(c.raftDir(), "snapshots") }

// leaseTimeout is how long a leader that hears from no one believes that it leads.
func (c Config) leaseTimeout() time.Duration {
	return 300 * time.Millisecond * c.stretch()
}

// stretch is by what the timeouts of elections are multiplied.
func (c Config) stretch() time.Duration {
	return time.Duration(c.Multiplier * max(1, c.calm))
}

// checkEvery is how often the node looks whether the log should be shortened.
const checkEvery = time.Second

// raftConfig has the settings that a failover below two seconds and entries of
// up to MaxEntry need; DESIGN.md has the reasons. Raft counts entries where we
// mean bytes, so its own snapshot trigger is off and the keeper pulls it.
func (c Config) raftConfig(id string, notify chan<- bool) *raft.Config {
	m := c.stretch()
	conf := raft.DefaultConfig()
	conf.ProtocolVersion = 3
	conf.LocalID = raft.ServerID(id)
	conf.HeartbeatTimeout = 500 * time.Millisecond * m
	conf.ElectionTimeout = 500 * time.Millisecond * m
	conf.LeaderLeaseTimeout = c.leaseTimeout()
	conf.CommitTimeout = 25 * time.Millisecond
	conf.MaxAppendEntries = 16
	conf.BatchApplyCh = true
	conf.ShutdownOnRemove = false
	conf.SnapshotInterval = time.Hour
	conf.SnapshotThreshold = 1 << 62
	conf.TrailingLogs = minTrailing
	conf.NoSnapshotRestoreOnStart = true
	conf.NoLegacyTelemetry = true
	conf.NotifyCh = notify
	conf.Logger = newHCLog(c.Logger)
	return conf
}

// A log keeps at least minTrailing entries and at most maxTrailing behind a
// snapshot, whatever their size.
const (
	minTrailing = 64
	maxTrailing = 16384
)
