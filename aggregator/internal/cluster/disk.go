package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/bursar-accounting/bursar/proto/boltfile"
	"github.com/bursar-accounting/bursar/proto/durable"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// openDisk opens the raft directory and makes sure that log, snapshots, State
// and identity belong together. Nothing has been sent or changed by then.
func (n *Node) openDisk() error {
	if cut, err := fileExists(filepath.Join(n.conf.DataDir, planFile)); err != nil || cut {
		return errors.Join(err, fmt.Errorf("%w: %s is there; run the recovery again, it carries on where it ended",
			ErrRecovery, filepath.Join(n.conf.DataDir, planFile)))
	}
	member, err := readMarker(n.conf.DataDir, n.id)
	if err != nil {
		return err
	}
	there, err := fileExists(n.conf.logPath())
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if member && !there {
		return raftFileLost(n.conf, n.conf.logPath(), n.id)
	}
	if err := os.MkdirAll(n.conf.raftDir(), 0o700); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := n.openBolt(); err != nil {
		return err
	}
	// bbolt syncs the file but not its name.
	if err := errors.Join(durable.SyncDir(n.conf.raftDir()), durable.SyncDir(n.conf.DataDir)); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := n.openJournal(); err != nil {
		return err
	}
	n.votes = n.newVotes()
	n.snaps, err = openSnapshots(n.conf.snapshotDir(), n.scratchDir(), n.machine.checkpointState)
	if err != nil {
		return err
	}
	n.snaps.terms, n.snaps.arrived = n.entries.termsUpTo, n.checkTail
	if n.imageStore, err = openImageStore(filepath.Join(n.conf.raftDir(), "images")); err != nil {
		return err
	}
	n.machine.imageStore = n.imageStore
	if err := n.reconcileParts(member); err != nil {
		return err
	}
	return n.openProgress()
}

func (n *Node) openBolt() error {
	return guardRaftLog(n.conf, func() (err error) {
		n.bolt, err = openBoltLog(raftboltdb.Options{
			Path: n.conf.logPath(),
			BoltOptions: &bbolt.Options{
				Timeout:        n.conf.lockWait,
				NoFreelistSync: true,
				FreelistType:   bbolt.FreelistMapType,
			},
			MsgpackUseNewTimeFormat: true,
		})
		if errors.Is(err, bolterrors.ErrTimeout) {
			return fmt.Errorf("cluster: raft log %s: another process holds it", n.conf.logPath())
		}
		if err != nil {
			return fmt.Errorf("cluster: raft log %s: %w", n.conf.logPath(), err)
		}
		return nil
	})
}

// openJournal opens the journal in front of bbolt, and with it the log. From then on
// programs that know no journal refuse the folder.
func (n *Node) openJournal() error {
	used, err := usesJournal(n.conf.DataDir)
	if err != nil {
		return err
	}
	for i := range 2 {
		there, err := fileExists(journalPath(n.conf.raftDir(), i))
		if err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		if used && !there {
			return raftFileLost(n.conf, journalPath(n.conf.raftDir(), i), n.id)
		}
	}
	n.journal, err = openJournal(n.conf.raftDir(), n.bolt)
	if errors.Is(err, ErrCorrupt) {
		return raftLogUnreadable(n.conf, err)
	}
	if err != nil {
		return fmt.Errorf("cluster: raft log: %w", err)
	}
	n.entries = n.newEntryLog(n.journal)
	return rewriteMarker(n.conf.DataDir, sealedJournalFormat)
}

func (n *Node) newEntryLog(under raft.LogStore) *entryLog {
	return &entryLog{under: under, path: n.conf.logPath(), halt: n.haltNode, end: n.endRaftGoroutine, writes: &n.writes}
}

// guardRaftLog opens or reads the raft log. Its structure is checked first, since bbolt
// panics where nothing can recover from it; what is left, panics and faults of do,
// becomes an error that names the file and the remedy.
func guardRaftLog(c Config, do func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if r := recover(); r != nil {
			err = raftLogUnreadable(c, fmt.Errorf("%v", r))
		}
	}()
	err = boltfile.Check(c.logPath())
	if errors.Is(err, boltfile.ErrDamaged) {
		return raftLogUnreadable(c, err)
	}
	if err != nil {
		return fmt.Errorf("cluster: raft log: %w", err)
	}
	return do()
}

// raftLogUnreadable says what an operator can do about a raft log whose structure is broken.
func raftLogUnreadable(c Config, cause error) error {
	return fmt.Errorf(`%w: raft log %s: %w
Give this node up: move %s away as a whole and start again. It then has a new id;
in a cluster of three it joins as a new member, and a node alone starts empty and is filled from a snapshot and from its agents`,
		ErrCorrupt, c.logPath(), cause, c.DataDir)
}

func (n *Node) newVotes() *votes {
	return &votes{
		under: n.bolt, path: n.conf.logPath(), halt: n.haltNode, end: n.endRaftGoroutine,
		voted: func() error { return nil }, progress: &n.progress,
		writes: &n.writes, closed: n.stopping, logger: n.logger,
	}
}

// reconcileParts compares the parts with each other, bootstraps where all is empty,
// and brings the State up to the newest snapshot.
func (n *Node) reconcileParts(member bool) error {
	newest, err := n.snaps.newestMeta()
	if err != nil {
		return err
	}
	err = guardRaftLog(n.conf, func() error {
		return errors.Join(n.dropTail(newest), n.entries.verifyEntries(newest.Index))
	})
	if err != nil {
		return err
	}
	if newest.ID != "" {
		n.entries.followSnapshot(newest)
	}
	used, err := n.mayHaveVoted(newest)
	if err != nil {
		return err
	}
	if !used {
		return n.beginNew(member)
	}
	if err := n.rememberMembership(member); err != nil {
		return err
	}
	if err := n.catchUp(newest); err != nil {
		return err
	}
	return n.checkHistory(newest)
}

// mayHaveVoted reports whether this node may have voted or confirmed anything. Term 1
// alone does not say so: it is what a bootstrap that was cut short leaves, and
// the first election is for term 2.
func (n *Node) mayHaveVoted(newest snapshotMeta) (bool, error) {
	last, err := n.entries.LastIndex()
	if err != nil {
		return false, fmt.Errorf("cluster: raft log %s: %w", n.conf.logPath(), err)
	}
	term, err := n.votes.GetUint64([]byte(termKey))
	if err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return false, err
	}
	return last > 0 || newest.ID != "" || term > 1, nil
}

// termKey is raft's name for its term in the stable store.
const termKey = "CurrentTerm"

// rememberMembership makes sure that a lost raft.db will be noticed.
func (n *Node) rememberMembership(member bool) error {
	if member {
		return nil
	}
	return n.markMember()
}

// markMember notes that the node is a member. A founder does so when it founds, and while
// it does another one may have its vote already.
func (n *Node) markMember() error {
	n.marking.Lock()
	defer n.marking.Unlock()
	return writeMarker(n.conf.DataDir, n.id)
}

// beginNew starts a node without history.
func (n *Node) beginNew(member bool) error {
	if member {
		return raftFileLost(n.conf, n.conf.logPath(), n.id)
	}
	if index, _ := n.conf.State.Applied(); index > 0 {
		return fmt.Errorf("%w: the state is at entry %d, but the raft log %s is empty; put the log back, or move the state away to start anew",
			ErrMismatch, index, n.conf.logPath())
	}
	if len(n.conf.Bootstrap) > 0 {
		return n.bootstrapCluster()
	}
	// A bootstrap that was cut short has left term 1, and can be repeated.
	if err := n.votes.SetUint64([]byte(termKey), 0); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	// It becomes a member when others first write to it or ask for its vote.
	n.votes.voted = n.markMember
	return nil
}

// bootstrapCluster writes the first entry of a new cluster; it can be repeated when it
// was cut short.
func (n *Node) bootstrapCluster() error {
	conf, err := foundingConfiguration(n.id, n.conf.Bootstrap)
	if err != nil {
		return err
	}
	if err := n.votes.SetUint64([]byte(termKey), 0); err != nil {
		return fmt.Errorf("cluster: bootstrap: %w", err)
	}
	rc := n.conf.raftConfig(n.id, nil)
	err = raft.BootstrapCluster(rc, n.entries, n.votes, n.snaps, n.newBootstrapTransport(), conf)
	if err != nil {
		return fmt.Errorf("cluster: bootstrap: %w", err)
	}
	return n.rememberMembership(false)
}

// newBootstrapTransport is asked for nothing with protocol version 3.
func (n *Node) newBootstrapTransport() raft.Transport {
	_, trans := raft.NewInmemTransport(raft.ServerAddress(n.ownAddr()))
	return trans
}

func foundingConfiguration(id string, servers []Server) (c raft.Configuration, err error) {
	self := false
	for _, s := range servers {
		self = self || s.ID == id
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Addr),
		})
	}
	if !self {
		return c, fmt.Errorf("cluster: bootstrap: node %s is not among the servers", id)
	}
	return c, nil
}

// catchUp restores a received snapshot that the State has not taken in, because
// the process ended between the two. Raft does not: it is told not to restore at
// the start, for the State is durable.
func (n *Node) catchUp(newest snapshotMeta) error {
	at, _ := n.conf.State.Applied()
	if at >= newest.StateIndex {
		return nil
	}
	if newest.Held {
		return fmt.Errorf("%w: the state is at entry %d, but it was durable up to entry %d when the log was shortened; the state has lost data: restore it, or move %s away and join as a new node",
			ErrMismatch, at, newest.StateIndex, n.conf.DataDir)
	}
	_, r, err := n.snaps.Open(newest.ID)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := n.machine.Restore(r); err != nil {
		return err
	}
	if at, _ := n.conf.State.Applied(); at < newest.StateIndex {
		return fmt.Errorf("%w: the state is at entry %d after it was restored up to %d", ErrMismatch, at, newest.StateIndex)
	}
	return nil
}

// logConflictsWith reports whether the log has another entry where a snapshot ends.
// Then nothing from there on was ever committed.
func (n *Node) logConflictsWith(s snapshotMeta) (bool, error) {
	l := new(raft.Log)
	err := n.entries.readEntry(s.Index, l)
	if errors.Is(err, raft.ErrLogNotFound) {
		return false, nil
	}
	return err == nil && l.Term != s.Term, err
}

// dropTail discards a log that conflicts with a received snapshot, as the Raft
// paper demands of a follower and raft does not do: it would keep the log and
// refuse every entry that follows the snapshot, for ever.
func (n *Node) dropTail(newest snapshotMeta) error {
	if newest.ID == "" || newest.Held {
		return nil
	}
	bad, err := n.logConflictsWith(newest)
	if err != nil || !bad {
		return err
	}
	first, err1 := n.entries.FirstIndex()
	last, err2 := n.entries.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("cluster: raft log %s: %w", n.conf.logPath(), err)
	}
	n.logger.Warn("the raft log conflicts with the snapshot from the leader and is discarded",
		"first", first, "last", last, "snapshot", newest.Index)
	return n.entries.DeleteRange(first, last)
}

// checkTail stops the node when a snapshot has arrived that its log conflicts
// with: raft has the end of its log in memory, so only a start can drop it.
func (n *Node) checkTail(s snapshotMeta) error {
	bad, err := n.logConflictsWith(s)
	if err == nil && !bad {
		n.entries.followSnapshot(s)
		return nil
	}
	if bad {
		n.entries.mark.forgetEntry() // the next start has less, and rightly so
		err = fmt.Errorf("%w: entry %d is of another term", ErrRestart, s.Index)
	}
	n.haltNode(err)
	return err
}

// checkHistory makes sure that what the State has applied is in this log.
func (n *Node) checkHistory(newest snapshotMeta) error {
	at, term := n.conf.State.Applied()
	last, err := n.entries.LastIndex()
	if err != nil {
		return fmt.Errorf("cluster: raft log %s: %w", n.conf.logPath(), err)
	}
	if known := max(last, newest.Index, newest.StateIndex); at > known {
		return fmt.Errorf("%w: the state is at entry %d, the raft log %s ends at %d; one of them is older than the other",
			ErrMismatch, at, n.conf.logPath(), known)
	}
	l := new(raft.Log)
	err = n.entries.readEntry(at, l)
	if errors.Is(err, raft.ErrLogNotFound) {
		return nil
	}
	if err == nil && l.Term != term {
		err = fmt.Errorf("%w: entry %d has term %d in the state and %d in the raft log %s",
			ErrMismatch, at, term, l.Term, n.conf.logPath())
	}
	return err
}

func (n *Node) closeDisk() error {
	err := n.progress.mark.closeRecord()
	if n.journal != nil {
		closed := n.journal.Close()
		if closed == nil {
			closed = rewriteMarker(n.conf.DataDir, sealedFormat)
		}
		err = errors.Join(err, closed)
	}
	if n.bolt != nil {
		err = errors.Join(err, n.bolt.Close())
	}
	return err
}

// keepLogShort flushes the State and cuts the log when enough has come in.
func (n *Node) keepLogShort() {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-n.stopping:
			return
		case <-n.halted:
			return
		}
		if n.entries.bytesAfter(n.lastSnapshot()) < n.conf.LogBytes {
			continue
		}
		if err := n.shortenLog(); err != nil {
			n.logger.Warn("the raft log could not be shortened", "error", err)
		}
	}
}

// shortenLog takes a snapshot and leaves as many entries as fit into the budget.
func (n *Node) shortenLog() error {
	n.cutting.Lock()
	defer n.cutting.Unlock()
	return n.snapshot(min(max(n.entries.newestWithin(n.conf.TrailingBytes), minTrailing), maxTrailing))
}

// snapshot flushes the State and cuts the log; at least the newest entries stay, as many
// as are said.
func (n *Node) snapshot(newest uint64) error {
	rc := n.raft.ReloadableConfig()
	rc.TrailingLogs = newest
	if err := n.raft.ReloadConfig(rc); err != nil {
		return fmt.Errorf("cluster: snapshot: %w", err)
	}
	err := n.raft.Snapshot().Error()
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("cluster: snapshot: %w", err)
	}
	return n.imageStore.sweepImages(n.entries.orderedImages())
}
