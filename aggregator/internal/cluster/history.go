package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"
)

// What was committed every later leader has, and a term has one leader. Where that is not
// so, nodes that went back to older copies of their data have elected a leader. Raft does
// not look: it would cut committed entries out of the log, or take the entries of two
// leaders of one term for the same, and the State would skip the new ones up to the index
// that it had applied. So each node remembers the terms of its entries, beyond the end of
// its log; a leader tells its own to each peer before it sends the first entry of its term,
// and the peer compares.

// termStart is where a term begins in the log.
type termStart struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	// At is when the leader made the entry, in nanoseconds since 1970: no other leader's
	// entry has the same. 0 is for unknown, or when the term began before Index.
	At int64 `json:"at,omitempty"`
}

// maxTerms is how many terms are remembered, and toldTerms how many a leader tells.
const (
	maxTerms  = 1024
	toldTerms = 256
)

// history is the term of each entry: of those in the log, and of earlier ones as far as
// snapshots have told. Two histories that agree at an index agree in all before it.
type history struct {
	starts []termStart // in order; of entries before the first nothing is known
	end    uint64      // the newest entry
}

// addEntry notes an entry that a leader made at a time. An entry that is not the next replaces
// what it overlaps and forgets what lies before a gap.
func (h *history) addEntry(index, term uint64, at time.Time) {
	switch {
	case index > h.end+1:
		h.starts = nil
	case index <= h.end:
		h.cutFrom(index)
	}
	h.end = index
	if n := len(h.starts); n > 0 && h.starts[n-1].Term == term {
		return
	}
	start := termStart{Index: index, Term: term}
	if !at.IsZero() && (len(h.starts) > 0 || index == 1) {
		start.At = at.UnixNano()
	}
	h.starts = append(h.starts, start)
	if over := len(h.starts) - maxTerms; over > 0 {
		h.starts = slices.Delete(h.starts, 0, over)
	}
}

// cutFrom forgets the entries from index on.
func (h *history) cutFrom(index uint64) {
	if index > h.end {
		return
	}
	h.starts = slices.Clip(h.starts[:h.termsBefore(index)])
	h.end = index - 1
	if len(h.starts) == 0 {
		h.end = 0
	}
}

// termsBefore returns how many terms begin before index.
func (h *history) termsBefore(index uint64) int {
	return sort.Search(len(h.starts), func(i int) bool { return h.starts[i].Index >= index })
}

// termOf returns the term of an entry, and whether it is known.
func (h *history) termOf(index uint64) (uint64, bool) {
	n := h.termsBefore(index + 1)
	if n == 0 || index > h.end {
		return 0, false
	}
	return h.starts[n-1].Term, true
}

// newestEntry returns the newest entry and its term; zero for none.
func (h *history) newestEntry() (index, term uint64) {
	term, _ = h.termOf(h.end)
	return h.end, term
}

// copyUntil returns a copy of what is known of the entries up to index.
func (h *history) copyUntil(index uint64) history {
	return history{starts: slices.Clone(h.starts[:h.termsBefore(index+1)]), end: min(h.end, index)}
}

// prependEarlier puts what is known of earlier entries in front; it does nothing when earlier
// does not reach the first that is known here.
func (h *history) prependEarlier(earlier history) {
	if len(h.starts) == 0 {
		*h = earlier
		return
	}
	first := h.starts[0]
	if before, known := earlier.termOf(first.Index - 1); known {
		h.starts = slices.Concat(earlier.starts[:earlier.termsBefore(first.Index)], h.starts)
		if before == first.Term {
			at := earlier.termsBefore(first.Index)
			h.starts = slices.Delete(h.starts, at, at+1)
		}
	}
}

// coveredHistory returns the terms that a snapshot covers; its last one at least.
func (m *snapshotMeta) coveredHistory() history {
	if len(m.Terms) == 0 {
		return history{starts: []termStart{{Index: m.Index, Term: m.Term}}, end: m.Index}
	}
	return history{starts: m.Terms, end: m.Index}
}

// committedIndex returns an entry up to which all is committed, as this node knows: it is
// never too high, and may be too low.
func (n *Node) committedIndex() uint64 {
	at, _ := n.machine.statePosition()
	if body, _ := n.progress.currentRecord(); !body.Behind {
		return max(at, body.Commit)
	}
	return at
}

// Forked returns why the node has stopped for good, an error that wraps [ErrForked]: a
// leader has other entries than those that it has committed. It is nil otherwise.
func (n *Node) Forked() error {
	if err := n.haltReason(); errors.Is(err, ErrForked) {
		return err
	}
	return nil
}

// clashWith returns where a leader's history contradicts this one, of which all up to an entry
// is committed; nil when it does not.
func (h *history) clashWith(leader history, committed uint64) error {
	if leader.end < committed {
		return fmt.Errorf("has entries up to %d, and this node has committed those up to %d", leader.end, committed)
	}
	for _, own := range h.starts {
		for _, theirs := range leader.starts {
			if own.Term == theirs.Term && own.At != 0 && theirs.At != 0 && own != theirs {
				return fmt.Errorf("has begun term %d with another entry, %d, than this node knows, %d", own.Term, theirs.Index, own.Index)
			}
		}
	}
	own, known := h.termOf(committed)
	theirs, told := leader.termOf(committed)
	if known && told && own != theirs {
		return fmt.Errorf("has entry %d of term %d, and this node has committed that of term %d", committed, theirs, own)
	}
	return nil
}

// told is what a leader tells of its history.
type told struct {
	Term   uint64      `json:"term"` // in which it leads
	End    uint64      `json:"end"`
	Starts []termStart `json:"starts"`
}

// tellHistory tells a peer the entries of this node, which leads in a term, and returns nil
// when they are no others than those that the peer has committed.
func (n *Node) tellHistory(ctx context.Context, to Server, term uint64) error {
	h := n.entries.pastTerms()
	t := told{Term: term, End: h.end, Starts: h.starts[max(0, len(h.starts)-toldTerms):]}
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	c, end, err := n.dialMember(ctx, to, forHistory, body)
	if err != nil {
		return err
	}
	defer end()
	what, err := receiveByte(patient{c})
	if err == nil && what != imageGo {
		err = fmt.Errorf("cluster: node %s does not follow this one", to.ID)
	}
	return err
}

// hearHistory answers tellHistory. Where there are two histories, this node stops for good.
func (n *Node) hearHistory(g greeting, c *Conn, body []byte) error {
	var t told
	if err := json.Unmarshal(body, &t); err != nil {
		return fmt.Errorf("cluster: history of node %s: %w", g.from, err)
	}
	committed, own := n.committedIndex(), n.entries.pastTerms()
	if t.Term < n.raft.CurrentTerm() { // read last: what is committed by now was not so in an earlier term
		return sendByte(patient{c}, imageNo) // its leader will hear of that
	}
	if err := own.clashWith(history{starts: t.Starts, end: t.End}, committed); err != nil {
		return errors.Join(n.haltForked(c.Peer.Name, err), sendByte(patient{c}, imageNo))
	}
	return sendByte(patient{c}, imageGo)
}

// haltForked stops the node for good, since there are two histories.
func (n *Node) haltForked(leader string, cause error) error {
	why := fmt.Sprintf(`node %s, which leads, %s.
Nodes that lead now went back to older copies of their data, and lack what was confirmed since. This node has it, and serves nothing more.
Keep %s, and go on as the runbook "There are two histories" says`, leader, cause, n.conf.DataDir)
	if err := n.progress.recordFork(why); err != nil {
		n.logger.Warn("it was not recorded that this node must not start again", "error", err)
	}
	err := fmt.Errorf("%w: %s", ErrForked, why)
	n.haltNode(err)
	return err
}

// recordFork records why the node must not start.
func (p *progress) recordFork(why string) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	next, _ := p.currentRecord()
	if next.Node == "" {
		return errors.New("no place is configured for it")
	}
	next.Forked = why
	return p.writeRecord(next)
}
