package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// planFile is there while a recovery is under way.
const planFile = "recovery.plan"

// plan is the body of recovery.plan: all that a recovery does, so that one that
// was cut short is carried on with and not started over.
type plan struct {
	From  string `json:"from"` // the ids
	To    string `json:"to"`
	Addr  string `json:"addr"`
	Index uint64 `json:"index"` // of the new configuration
	Term  uint64 `json:"term"`
}

// Inspection is what a data directory holds, for choosing the node that is
// furthest.
type Inspection struct {
	ID   string
	Term uint64
	// Last and LastTerm are of the newest entry, committed or not.
	Last, LastTerm uint64
	// Flushed is the entry up to which the State was durable when the log was
	// last shortened; the State may be further.
	Flushed uint64
	// Members is the newest configuration.
	Members []Member
	// Recovering: Recover was cut short and must be run again.
	Recovering bool
}

// Further reports whether i holds more than o: a later term, or in the same term
// more entries. What a majority had confirmed is on the furthest of its members.
func (i Inspection) Further(o Inspection) bool {
	if i.LastTerm != o.LastTerm {
		return i.LastTerm > o.LastTerm
	}
	return i.Last > o.Last
}

// Inspect reads and verifies the data directory of a node that is stopped, and
// changes nothing. Errors as of Open.
func Inspect(dataDir string) (Inspection, error) {
	n, member, err := openOffline(Config{DataDir: dataDir}, true)
	if err != nil {
		return Inspection{}, err
	}
	defer n.closeQuietly()
	i := Inspection{ID: n.id}
	if !member {
		return i, nil
	}
	end, err := n.endOfLog()
	if err != nil {
		return i, err
	}
	i.Term, i.Last, i.LastTerm, i.Flushed = end.current, end.index, end.term, end.flushed
	for _, s := range end.members.Servers {
		i.Members = append(i.Members, Member{Server: Server{ID: string(s.ID), Addr: string(s.Address)}, Voter: s.Suffrage == raft.Voter})
	}
	_, err = readPlan(dataDir)
	i.Recovering = err == nil
	return i, nil
}

// Recover makes the node whose data are in conf.DataDir, and which is stopped,
// the only member of its cluster, after the quorum was permanently lost. servers is
// that node alone, with the address under which it will be reached. Other fields
// of conf are not needed.
//
// The node keeps its log and State, and gets a new id: members of the old
// cluster that come back mean the old id and are refused by it. They join with
// new ids, their data directories moved away. What was proposed and never
// confirmed may be committed by the recovered node.
//
// A crash in between is noticed by Open, which then refuses; running Recover
// again carries on. Errors as of Open.
func Recover(conf Config, servers []Server) error {
	if len(servers) != 1 || servers[0].Addr == "" {
		return errors.New("cluster: recover: name this node alone, with its address; the others join it afterwards with new ids")
	}
	p, err := readPlan(conf.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		p, err = newPlan(conf, servers[0])
	}
	if err != nil {
		return err
	}
	return p.carryOut(conf)
}

func readPlan(dataDir string) (p plan, err error) {
	if err := readSealed(filepath.Join(dataDir, planFile), &p); err != nil {
		return p, fmt.Errorf("cluster: recover: %w", err)
	}
	return p, nil
}

// newPlan looks at the data and decides.
func newPlan(conf Config, self Server) (plan, error) {
	n, member, err := openOffline(conf, false)
	if err != nil {
		return plan{}, err
	}
	defer n.closeQuietly()
	if !member {
		return plan{}, fmt.Errorf("cluster: recover: %s has never been a member of a cluster: there is nothing to recover", conf.DataDir)
	}
	if self.ID != "" && self.ID != n.id {
		return plan{}, fmt.Errorf("cluster: recover: %s is the data of node %s, not of %s", conf.DataDir, n.id, self.ID)
	}
	end, err := n.endOfLog()
	if err != nil {
		return plan{}, err
	}
	p := plan{From: n.id, To: newUUID(), Addr: self.Addr, Index: end.index + 1, Term: max(end.current, end.term) + 1}
	if err := writeSealed(filepath.Join(conf.DataDir, planFile), p); err != nil {
		return plan{}, fmt.Errorf("cluster: recover: %w", err)
	}
	return p, nil
}

// carryOut does what was planned; every step may have been done before.
func (p plan) carryOut(conf Config) error {
	n, _, err := openOffline(conf, false)
	if err != nil {
		return err
	}
	err = p.writeConfiguration(n)
	if err := errors.Join(err, n.closeDisk()); err != nil {
		return fmt.Errorf("cluster: recover: %w", err)
	}
	err = errors.Join(
		writeSealed(filepath.Join(conf.DataDir, markerFile), marker{Node: p.To, Generation: n.generation + 1}),
		writeSealed(filepath.Join(conf.DataDir, identityFile), identity{ID: p.To}),
	)
	if err != nil {
		return fmt.Errorf("cluster: recover: %w", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(conf.DataDir, planFile)), durable.SyncDir(conf.DataDir)); err != nil {
		return fmt.Errorf("cluster: recover: %w", err)
	}
	return nil
}

// writeConfiguration puts the new configuration at the end of the log, in a term of its own.
func (p plan) writeConfiguration(n *Node) error {
	if err := n.votes.SetUint64([]byte(termKey), p.Term); err != nil {
		return err
	}
	last, err := n.entries.LastIndex()
	if err != nil || last >= p.Index {
		return err
	}
	alone := raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(p.To), Address: raft.ServerAddress(p.Addr),
	}}}
	return n.entries.StoreLog(&raft.Log{
		Index: p.Index, Term: p.Term, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(alone), AppendedAt: time.Now(),
	})
}

// openOffline opens what a stopped node has on disk, and verifies it.
func openOffline(conf Config, readOnly bool) (n *Node, member bool, err error) {
	conf.State = nothing{}
	conf = conf.withDefaults()
	var id identity
	if err := readSealed(filepath.Join(conf.DataDir, identityFile), &id); err != nil {
		return nil, false, fmt.Errorf("cluster: node id: %w", err)
	}
	n = newNode(conf, id.ID)
	member, err = n.openMarker()
	if err != nil {
		return nil, false, err
	}
	there, err := fileExists(conf.logPath())
	if err != nil {
		return nil, false, fmt.Errorf("cluster: %w", err)
	}
	if !there && member {
		return nil, false, raftFileLost(conf, conf.logPath(), n.id)
	}
	if !there {
		return nil, false, fmt.Errorf("cluster: %s has no raft log: it has never been a member of a cluster", conf.DataDir)
	}
	if readOnly {
		err = n.openReadOnly()
	} else if err = n.openBolt(); err == nil {
		err = n.openJournal()
	}
	if err != nil {
		return nil, false, errors.Join(err, n.closeDisk())
	}
	n.votes = n.newVotes()
	n.snaps = &snapshots{dir: conf.snapshotDir()}
	if err := n.verifyOffline(readOnly); err != nil {
		return nil, false, errors.Join(err, n.closeDisk())
	}
	return n, member, nil
}

// closeQuietly closes what was only read.
func (n *Node) closeQuietly() { _ = n.bolt.Close() }

// openMarker reads the marker; during a recovery it may name the new id already.
func (n *Node) openMarker() (member bool, err error) {
	var m marker
	err = readSealed(filepath.Join(n.conf.DataDir, markerFile), &m)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cluster: %w", err)
	}
	n.generation = m.Generation
	if p, err := readPlan(n.conf.DataDir); err == nil && (m.Node == p.From || m.Node == p.To) {
		if m.Node == p.To {
			n.generation-- // it was raised already
		}
		return true, nil
	}
	return readMarker(n.conf.DataDir, n.id)
}

// openReadOnly opens the log for reading, with what a journal holds.
func (n *Node) openReadOnly() error {
	return guardRaftLog(n.conf, func() (err error) {
		n.bolt, err = openBoltLog(raftboltdb.Options{
			Path:                    n.conf.logPath(),
			BoltOptions:             &bbolt.Options{Timeout: n.conf.lockWait, ReadOnly: true},
			MsgpackUseNewTimeFormat: true,
		})
		if errors.Is(err, bolterrors.ErrTimeout) {
			return fmt.Errorf("cluster: raft log %s: another process holds it; stop the node first", n.conf.logPath())
		}
		if err != nil {
			return fmt.Errorf("cluster: raft log %s: %w", n.conf.logPath(), err)
		}
		held, err := readJournal(n.conf.raftDir(), n.bolt)
		if err != nil {
			return fmt.Errorf("cluster: raft log: %w", err)
		}
		n.entries = n.newEntryLog(held)
		return nil
	})
}

func (n *Node) verifyOffline(readOnly bool) error {
	newest, err := n.snaps.newestMeta()
	if err != nil {
		return err
	}
	return guardRaftLog(n.conf, func() error {
		if !readOnly {
			if err := n.dropTail(newest); err != nil {
				return err
			}
		}
		return n.entries.verifyEntries(newest.Index)
	})
}

// logEnd is where a log ends.
type logEnd struct {
	index, term uint64
	current     uint64 // the term of the votes
	flushed     uint64
	members     raft.Configuration
}

func (n *Node) endOfLog() (e logEnd, err error) {
	newest, err := n.snaps.newestMeta()
	if err != nil {
		return e, err
	}
	e.index, e.term, e.flushed = newest.Index, newest.Term, newest.StateIndex
	if e.members, err = fromServers(newest.Servers); err != nil {
		return e, err
	}
	if e.current, err = n.votes.GetUint64([]byte(termKey)); err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return e, err
	}
	last, err := n.entries.LastIndex()
	if err != nil {
		return e, fmt.Errorf("cluster: raft log %s: %w", n.conf.logPath(), err)
	}
	for i := newest.Index + 1; i <= last; i++ {
		l := new(raft.Log)
		if err := n.entries.readEntry(i, l); err != nil {
			return e, err
		}
		e.index, e.term = l.Index, l.Term
		if l.Type == raft.LogConfiguration {
			e.members = raft.DecodeConfiguration(l.Data)
		}
	}
	return e, nil
}

// nothing is a State that holds nothing, for looking at a log alone.
type nothing struct{}

// Apply is not called.
func (nothing) Apply(uint64, uint64, []byte) (any, error) { return nil, errors.ErrUnsupported }

// Applied returns 0.
func (nothing) Applied() (index, term uint64) { return 0, 0 }

// Flush does nothing.
func (nothing) Flush() error { return nil }
