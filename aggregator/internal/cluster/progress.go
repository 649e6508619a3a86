package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// A data directory that goes back to an older copy has forgotten votes and entries that
// it confirmed. Raft cannot see that: the copy is whole, and with another node that
// lagged it is a majority that never heard of what is missing. So each node keeps its
// progress in a second place, outside of the data directory, and compares at the start.
// The newest entry is recorded there before it is confirmed, by a write that survives
// the process but not the machine; the term at once, and what is committed each second,
// by writes that survive both.
// A node that finds itself behind its own progress casts no vote and stands for no
// election until it holds everything that a leader, elected without it, has committed.

const (
	// progressEvery is how often the committed index is recorded, when it has moved.
	// After a power cut a copy that is younger than that is not noticed by its index.
	progressEvery = time.Second
	// regainEvery is how often a node that is behind looks whether it has caught up.
	regainEvery = 50 * time.Millisecond
)

// errBehind answers those who ask a node for its vote that is behind its own progress.
var errBehind = errors.New("cluster: this node's data directory is an older copy; it does not vote until it has caught up")

// progressBody is the body of <ProgressDir>/<node id>.json.
type progressBody struct {
	Node   string `json:"node"`
	Term   uint64 `json:"term"`   // the newest that the node has stored
	Commit uint64 `json:"commit"` // the newest committed entry that it knew
	// Voters is how many voters the newest configuration had, this node included.
	Voters int `json:"voters"`
	// Behind: the node was found behind Term or Commit and has not caught up.
	Behind bool `json:"behind"`
	// Forked is why the node must not start: see [ErrForked].
	Forked string `json:"forked,omitempty"`
}

// progress is the record of what this node has reached. Its zero value with an empty
// path keeps nothing.
type progress struct {
	path string
	mark mark

	writing sync.Mutex // held by who changes body; mu is free while the disk is waited for
	mu      sync.Mutex
	body    progressBody
	failed  error      // why it was not written last; nil: it was
	leader  leaderMark // of the calls that arrived while the node is behind
}

// leaderMark is the newest commit index that a leader of a term has told.
type leaderMark struct{ term, commit uint64 }

// openProgress reads the record, or begins one, and compares it with the log. A place
// that cannot be written is not worth a node: it runs unprotected and says so.
func (n *Node) openProgress() error {
	if n.conf.ProgressDir == "" {
		return nil
	}
	n.progress.path = filepath.Join(n.conf.ProgressDir, n.id+".json")
	if err := os.MkdirAll(n.conf.ProgressDir, 0o700); err != nil {
		n.warnUnprotected(err)
		return nil
	}
	term, last, lastTerm, err := n.reachedTerm()
	if err != nil {
		return err
	}
	var was progressBody
	switch err := readSealed(n.progress.path, &was); {
	case errors.Is(err, fs.ErrNotExist):
		was = progressBody{Node: n.id, Term: term}
	case errors.Is(err, ErrCorrupt):
		n.logger.Error("the record of this node's progress is damaged and begun anew; an older copy of its data would not be noticed", "error", err)
		was = progressBody{Node: n.id, Term: term}
	case err != nil:
		return fmt.Errorf("cluster: progress: %w", err)
	}
	if was.Forked != "" {
		return fmt.Errorf("%w: %s", ErrForked, was.Forked)
	}
	stored, storedTerm, err := n.progress.mark.openRecord(n.progress.path + ".mark")
	if err != nil {
		n.warnUnprotected(err)
	}
	lacks := lastTerm < storedTerm || lastTerm == storedTerm && last < stored
	if was.Behind || term < was.Term || last < was.Commit || lacks {
		if err := n.checkAlone(was); err != nil {
			return err
		}
		n.logger.Error("the data directory is an older copy: this node does not vote until it has caught up",
			"term", term, "recorded_term", was.Term, "last_entry", last, "recorded_commit", was.Commit, "recorded_entry", stored)
		was.Behind = true
	}
	if term < was.Term {
		// A leader of an earlier term must not win the node over.
		if err := n.votes.SetUint64([]byte(termKey), was.Term); err != nil {
			return fmt.Errorf("cluster: progress: %w", err)
		}
	}
	n.progress.body = was
	if err := n.progress.writeRecord(was); err != nil {
		n.warnUnprotected(err)
	}
	if !was.Behind { // what a node that is behind gets it had confirmed before
		n.entries.recordNewestIn(&n.progress.mark)
	}
	return nil
}

// checkAlone refuses a copy from the time when the node was a cluster by itself: raft
// would have it lead one again, beside the others.
func (n *Node) checkAlone(was progressBody) error {
	end, err := n.endOfLog()
	if err != nil {
		return err
	}
	if was.Voters < 2 || len(end.members.Servers) > 1 {
		return nil
	}
	return fmt.Errorf("%w: %s is an older copy, from before the cluster had %d voters; put the newest data back, or move %s away and start again: the node then joins as a new one",
		ErrMismatch, n.conf.DataDir, was.Voters, n.conf.DataDir)
}

func (n *Node) warnUnprotected(err error) {
	n.progress.mu.Lock()
	defer n.progress.mu.Unlock()
	n.progress.failed = err
	n.logger.Warn("the node's progress cannot be recorded; an older copy of its data directory would not be noticed",
		"dir", n.conf.ProgressDir, "error", err)
}

// reachedTerm returns the term of this node, and the end of its log with the term of that.
func (n *Node) reachedTerm() (term, last, lastTerm uint64, err error) {
	if term, err = n.votes.GetUint64([]byte(termKey)); err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return 0, 0, 0, err
	}
	last, lastTerm = n.entries.newestEntry()
	return term, last, lastTerm, nil
}

// writeRecord replaces the record. p.writing is held, or nothing else runs yet.
func (p *progress) writeRecord(body progressBody) error {
	err := writeSealed(p.path, body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed = err; err == nil {
		p.body = body
	}
	return err
}

// currentRecord returns the record, and why it was not written last.
func (p *progress) currentRecord() (progressBody, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.body, p.failed
}

// isBehind reports whether the node must not vote.
func (p *progress) isBehind() bool {
	body, _ := p.currentRecord()
	return body.Behind
}

// noteStoredTerm notes a term before the node votes in it.
func (p *progress) noteStoredTerm(key, value []byte) error {
	if p == nil || string(key) != termKey || len(value) != 8 {
		return nil
	}
	return p.advanceRecord(binary.BigEndian.Uint64(value), 0, 0)
}

// advanceRecord records a later term or committed entry, and the number of voters unless it
// is 0. While the node is behind only the term counts: what it commits is less than what
// it had confirmed.
func (p *progress) advanceRecord(term, commit uint64, voters int) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	was, failed := p.currentRecord()
	if was.Node == "" {
		return nil
	}
	next := was
	next.Term = max(next.Term, term)
	if !next.Behind {
		next.Commit, next.Voters = max(next.Commit, commit), valueOr(voters, next.Voters)
	}
	if next == was && failed == nil {
		return nil
	}
	return p.writeRecord(next)
}

// noteHeard notes what a leader has committed, from a call before raft has answered it.
func (p *progress) noteHeard(req *raft.AppendEntriesRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch at := &p.leader; {
	case req.Term > at.term:
		*at = leaderMark{term: req.Term, commit: req.LeaderCommitIndex}
	case req.Term == at.term:
		at.commit = max(at.commit, req.LeaderCommitIndex)
	}
}

// keepProgress records how far the node is, once it has caught up, and at its end.
func (n *Node) keepProgress() {
	for n.progress.isBehind() {
		if n.regainVote(); !waitOrStop(regainEvery, n.stopping) {
			return
		}
	}
	for goes := true; goes; {
		goes = waitOrStop(progressEvery, n.stopping)
		voters := 0
		for _, m := range n.currentServers() {
			if m.Suffrage == raft.Voter {
				voters++
			}
		}
		if err := n.progress.advanceRecord(n.raft.CurrentTerm(), n.raft.CommitIndex(), voters); err != nil {
			n.logger.Debug("the node's progress was not recorded", "error", err)
		}
	}
}

// regainVote gives the node its vote back. It has caught up when it has committed all that
// a leader of the present term told it was committed, an entry of that term among it:
// that leader was elected without this node's vote, or by the vote that it had cast
// before, so it holds all that was ever committed.
func (n *Node) regainVote() {
	commit, term := n.raft.CommitIndex(), n.raft.CurrentTerm()
	p := &n.progress
	p.mu.Lock()
	mark, floor := p.leader, p.body
	p.mu.Unlock()
	alone := n.isAlone()
	if !alone && (mark.term != term || mark.commit == 0 || commit < mark.commit || commit < floor.Commit) {
		return
	}
	if !alone {
		entry := new(raft.Log)
		if err := n.entries.readEntry(commit, entry); err != nil || entry.Term != term {
			return // the leader's next entry will do
		}
	}
	if p.resumeVoting(progressBody{Node: n.id, Term: term, Commit: commit}) != nil {
		return
	}
	n.entries.recordNewestIn(&p.mark)
	if alone {
		n.logger.Error("this node is alone and was taken back to an older copy of its data; what it had stored since is gone unless the agents still have it",
			"commit", commit, "recorded_commit", floor.Commit)
		return
	}
	n.logger.Info("the node has caught up and votes again", "commit", commit)
}

// resumeVoting records that the node has caught up.
func (p *progress) resumeVoting(next progressBody) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	was, _ := p.currentRecord()
	next.Term, next.Voters = max(next.Term, was.Term), was.Voters
	return p.writeRecord(next)
}

// Behind returns why this node does not vote: its data directory is an older copy of
// itself and has not caught up. It is nil otherwise.
func (n *Node) Behind() error {
	if n.progress.isBehind() {
		return errBehind
	}
	return nil
}

// Unprotected returns why an older copy of the data directory would not be noticed; nil
// when it would, or when Config has no ProgressDir.
func (n *Node) Unprotected() error {
	_, failed := n.progress.currentRecord()
	return errors.Join(failed, n.progress.mark.lastFailure())
}
