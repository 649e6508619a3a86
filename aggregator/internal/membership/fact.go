package membership

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// NodeFact is what a node says of itself, newly every two seconds. A [FactSource] of
// each part fills its fields.
type NodeFact struct {
	Name string // as in the certificate
	ID   string
	Addr string // by which the other nodes reach it

	Version        string // of the program
	CommandVersion uint32 // the newest commands that it can apply
	Cluster        string // the id of its cluster; "" while it knows none
	Fresh          bool   // it holds neither log nor state
	Waits          string // what a node without a cluster waits for, for people
	Leads          bool
	Term           uint64
	Applied        uint64
	// Command is the newest committed command that a leader knows; 0 of others.
	Command uint64

	HashIndex uint64 // of the newest state hash; 0: none yet
	Hash      store.Hash

	Clock   time.Time // when this was said, by the node's own clock
	Started time.Time // when its process began

	DiskFree, DiskSize uint64
	ConfigDigest       [32]byte // of what the cluster shares, in its own files; zero: unknown
	CertEnds           time.Time
	Fenced             string // why it neither reads nor votes; "": it is well
	LogStalled         time.Duration
	API                string // the TLS address of its REST interface, by which machines join and agents dial in

	// Extra are the facts of parts that have no field of their own, by a name of
	// the part.
	Extra map[string]json.RawMessage

	// Seen is when this node heard it, by this node's clock. It is not sent.
	Seen time.Time
	// RoundTrip is how long the exchange took that brought it; it bounds how far
	// Clock is off Seen. It is not sent.
	RoundTrip time.Duration
	// Unreached says that an exchange with it has failed since Seen. It is not sent.
	Unreached bool
}

// FactSource fills in what its part knows of this node. It is called every two
// seconds and at every question of another node, so it is quick and waits for
// nothing.
type FactSource interface {
	Fill(f *NodeFact)
}

// FactFunc is a function as a [FactSource].
type FactFunc func(f *NodeFact)

// Fill implements [FactSource].
func (fn FactFunc) Fill(f *NodeFact) { fn(f) }

// SetExtra keeps v under name; a v that is no JSON is a defect of the caller and
// left out.
func (f *NodeFact) SetExtra(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		return
	}
	if f.Extra == nil {
		f.Extra = map[string]json.RawMessage{}
	}
	f.Extra[name] = b
}

// maxExtra bounds the extra facts of a node.
const maxExtra = 64 << 10

func unixMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// factMessage returns the fact as it is sent.
func (f *NodeFact) factMessage() *bursarv1.NodeFacts {
	m := &bursarv1.NodeFacts{
		Name: f.Name, Id: f.ID, Addr: f.Addr, Version: f.Version, CommandVersion: f.CommandVersion, Cluster: f.Cluster,
		Fresh: f.Fresh, Waits: f.Waits, Leads: f.Leads, Term: f.Term, Applied: f.Applied, Command: f.Command,
		HashIndex: f.HashIndex, HashHi: f.Hash.Hi, HashLo: f.Hash.Lo, ClockUs: unixMicros(f.Clock), StartedUs: unixMicros(f.Started),
		DiskFree: f.DiskFree, DiskSize: f.DiskSize, ConfigDigest: f.ConfigDigest[:], CertEndsUs: unixMicros(f.CertEnds),
		Fenced: f.Fenced, LogStalledMs: uint64(max(f.LogStalled, 0).Milliseconds()), Api: f.API,
	}
	if len(f.Extra) == 0 {
		return m
	}
	if b, err := json.Marshal(f.Extra); err == nil && len(b) <= maxExtra {
		m.Extra = b
	}
	return m
}

// factOf reads what another node has sent. A newer program may send more, which
// is not looked at; what is there must be right.
func factOf(m *bursarv1.NodeFacts) (NodeFact, error) {
	if m.GetName() == "" || m.GetId() == "" {
		return NodeFact{}, fmt.Errorf("facts without a name or an id")
	}
	f := NodeFact{
		Name: m.GetName(), ID: m.GetId(), Addr: m.GetAddr(), Version: m.GetVersion(), CommandVersion: m.GetCommandVersion(),
		Cluster: m.GetCluster(), Fresh: m.GetFresh(), Waits: m.GetWaits(), Leads: m.GetLeads(), Term: m.GetTerm(),
		Applied: m.GetApplied(), Command: m.GetCommand(), HashIndex: m.GetHashIndex(), Hash: store.Hash{Hi: m.GetHashHi(), Lo: m.GetHashLo()},
		Clock: fromMicros(m.GetClockUs()), Started: fromMicros(m.GetStartedUs()), DiskFree: m.GetDiskFree(), DiskSize: m.GetDiskSize(),
		CertEnds: fromMicros(m.GetCertEndsUs()), Fenced: m.GetFenced(), API: m.GetApi(),
		LogStalled: time.Duration(min(m.GetLogStalledMs(), 1<<40)) * time.Millisecond,
	}
	copy(f.ConfigDigest[:], m.GetConfigDigest())
	if b := m.GetExtra(); len(b) > 0 {
		if len(b) > maxExtra {
			return NodeFact{}, fmt.Errorf("facts of %s: %d bytes of extra facts, at most %d", f.Name, len(b), maxExtra)
		}
		if err := json.Unmarshal(b, &f.Extra); err != nil {
			return NodeFact{}, fmt.Errorf("facts of %s: %w", f.Name, err)
		}
	}
	return f, nil
}
