package cluster

import (
	"strconv"

	"github.com/hashicorp/raft"
)

// Raft asks a voter for its vote even when the voter has not heard yet that the
// candidate has one: "a server also grants its vote to a candidate that is not
// part of the server's latest configuration (if the candidate has sufficiently
// up-to-date log and a current term). This vote may occasionally be needed to keep
// the cluster available" (Ongaro, Consensus, §4.1). hashicorp/raft refuses it,
// with which three voters of whom one is gone never elect anyone when the entry
// that made the candidate a voter had reached no one else.

// answerCalls hands raft the calls of its peers.
func (m *mesh) answerCalls() {
	for {
		select {
		case call := <-m.NetworkTransport.Consumer():
			if m.progress.isBehind() && m.withholdVote(call) {
				continue
			}
			m.judgeByOlderConfiguration(call.Command)
			select {
			case m.calls <- call:
			case <-m.closed:
				return
			}
		case <-m.closed:
			return
		}
	}
}

// withholdVote answers those who want the vote of a node that has forgotten what it
// confirmed, and reports whether it did.
func (m *mesh) withholdVote(call raft.RPC) bool {
	switch req := call.Command.(type) {
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest, *raft.TimeoutNowRequest:
		call.Respond(nil, errBehind)
		return true
	case *raft.AppendEntriesRequest:
		m.progress.noteHeard(req)
	}
	return false
}

// Consumer returns the calls of the peers.
func (m *mesh) Consumer() <-chan raft.RPC { return m.calls }

// Close ends the transport.
func (m *mesh) Close() error {
	m.closing.Do(func() { close(m.closed) })
	return m.NetworkTransport.Close()
}

// judgeByOlderConfiguration lets raft judge a candidate whose log is newer than the own by all
// but the own configuration, which is an older one: the id in the call, which raft
// looks up there and uses for nothing else, becomes that of a voter.
func (m *mesh) judgeByOlderConfiguration(command any) {
	switch req := command.(type) {
	case *raft.RequestVoteRequest:
		req.ID = m.candidateFranchise(req.ID, req.LastLogTerm, req.LastLogIndex)
	case *raft.RequestPreVoteRequest:
		req.ID = m.candidateFranchise(req.ID, req.LastLogTerm, req.LastLogIndex)
	}
}

func (m *mesh) candidateFranchise(candidate []byte, term, index uint64) []byte {
	r := m.raft.Load()
	if r == nil || len(candidate) == 0 || !logIsNewer(r.Stats(), term, index) {
		return candidate
	}
	known := candidate
	for _, s := range r.GetConfiguration().Configuration().Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) == string(candidate):
			return candidate
		default:
			known = []byte(s.ID)
		}
	}
	return known
}

// logIsNewer reports whether a log that ends at index of term is ahead of the own.
func logIsNewer(own map[string]string, term, index uint64) bool {
	ownTerm, err1 := strconv.ParseUint(own["last_log_term"], 10, 64)
	ownIndex, err2 := strconv.ParseUint(own["last_log_index"], 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	return term > ownTerm || term == ownTerm && index > ownIndex
}
