package cluster

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/hashicorp/raft"
)

// What a leader was told to be committed, every later leader has: where it has another
// entry, nodes that went back to older copies of their data have elected it. Raft does
// not look: it would cut committed entries out of the log, and the State would skip the
// new ones up to the index that it had applied. So each node remembers the terms of its
// entries, beyond the end of its log, and compares them with what a leader sends.

// termStart is where a term begins in the log.
type termStart struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
}

// maxTerms is how many terms are remembered.
const maxTerms = 1024

// history is the term of each entry: of those in the log, and of earlier ones as far as
// snapshots have told. Two histories that agree at an index agree in all before it.
type history struct {
	starts []termStart // in order; of entries before the first nothing is known
	end    uint64      // the newest entry
}

// add notes an entry. One that is not the next replaces what it overlaps and forgets
// what lies before a gap.
func (h *history) add(index, term uint64) {
	switch {
	case index > h.end+1:
		h.starts = nil
	case index <= h.end:
		h.cut(index)
	}
	h.end = index
	if n := len(h.starts); n > 0 && h.starts[n-1].Term == term {
		return
	}
	h.starts = append(h.starts, termStart{Index: index, Term: term})
	if over := len(h.starts) - maxTerms; over > 0 {
		h.starts = slices.Delete(h.starts, 0, over)
	}
}

// cut forgets the entries from index on.
func (h *history) cut(index uint64) {
	if index > h.end {
		return
	}
	h.starts = slices.Clip(h.starts[:h.from(index)])
	h.end = index - 1
	if len(h.starts) == 0 {
		h.end = 0
	}
}

// from returns how many terms begin before index.
func (h *history) from(index uint64) int {
	return sort.Search(len(h.starts), func(i int) bool { return h.starts[i].Index >= index })
}

// term returns the term of an entry, and whether it is known.
func (h *history) term(index uint64) (uint64, bool) {
	n := h.from(index + 1)
	if n == 0 || index > h.end {
		return 0, false
	}
	return h.starts[n-1].Term, true
}

// newest returns the newest entry and its term; zero for none.
func (h *history) newest() (index, term uint64) {
	term, _ = h.term(h.end)
	return h.end, term
}

// until returns a copy of what is known of the entries up to index.
func (h *history) until(index uint64) history {
	return history{starts: slices.Clone(h.starts[:h.from(index+1)]), end: min(h.end, index)}
}

// follow puts what is known of earlier entries in front; it does nothing when earlier
// does not reach the first that is known here.
func (h *history) follow(earlier history) {
	if len(h.starts) == 0 {
		*h = earlier
		return
	}
	first := h.starts[0]
	if before, known := earlier.term(first.Index - 1); known {
		h.starts = slices.Concat(earlier.starts[:earlier.from(first.Index)], h.starts)
		if before == first.Term {
			at := earlier.from(first.Index)
			h.starts = slices.Delete(h.starts, at, at+1)
		}
	}
}

// history returns the terms that a snapshot covers; its last one at least.
func (m *snapshotMeta) history() history {
	if len(m.Terms) == 0 {
		return history{starts: []termStart{{Index: m.Index, Term: m.Term}}, end: m.Index}
	}
	return history{starts: m.Terms, end: m.Index}
}

// committed returns an entry up to which all is committed, as this node knows: it is
// never too high, and may be too low.
func (n *Node) committed() uint64 {
	at, _ := n.machine.position()
	if body, _ := n.progress.now(); !body.Behind {
		return max(at, body.Commit)
	}
	return at
}

// checkEntries halts the node where a leader sends other entries than those that it has
// committed.
func (n *Node) checkEntries(req *raft.AppendEntriesRequest) error {
	committed := n.committed()
	if req.Term < n.raft.CurrentTerm() { // read last: what is committed by now was not so in an earlier term
		return nil // raft refuses it
	}
	if err := n.contradicts(req.PrevLogEntry, req.PrevLogTerm, committed); err != nil {
		return n.fork(req.Addr, err)
	}
	for _, l := range req.Entries {
		if err := n.contradicts(l.Index, l.Term, committed); err != nil {
			return n.fork(req.Addr, err)
		}
	}
	return nil
}

// checkSnapshot is checkEntries for a snapshot that a leader has sent.
func (n *Node) checkSnapshot(s snapshotMeta) error {
	committed := n.committed()
	theirs := s.history()
	at := min(committed, s.Index)
	if term, known := theirs.term(at); known {
		if err := n.contradicts(at, term, committed); err != nil {
			return n.fork(nil, err)
		}
	}
	return nil
}

// Forked returns why the node has stopped for good, an error that wraps [ErrForked]: a
// leader has other entries than those that it has committed. It is nil otherwise.
func (n *Node) Forked() error {
	if err := n.failure(); errors.Is(err, ErrForked) {
		return err
	}
	return nil
}

// contradicts returns an error when an entry of others is not the one that was committed
// here.
func (n *Node) contradicts(index, term, committed uint64) error {
	if index > committed {
		return nil
	}
	own, known := n.entries.term(index)
	if !known || own == term {
		return nil
	}
	return fmt.Errorf("has entry %d of term %d, and this node has committed that of term %d, and all up to entry %d", index, term, own, committed)
}

// fork stops the node for good, since there are two histories.
func (n *Node) fork(leader []byte, cause error) error {
	from := "the leader"
	if len(leader) > 0 {
		from += " at " + string(leader)
	}
	why := fmt.Sprintf(`%s %s.
Nodes that lead now went back to older copies of their data, and lack what was confirmed since. This node has it, and serves nothing more.
Keep %s, and go on as the runbook "There are two histories" says`, from, cause, n.conf.DataDir)
	if err := n.progress.forked(why); err != nil {
		n.logger.Warn("it was not recorded that this node must not start again", "error", err)
	}
	err := fmt.Errorf("%w: %s", ErrForked, why)
	n.halt(err)
	return err
}

// forked records why the node must not start.
func (p *progress) forked(why string) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	next, _ := p.now()
	if next.Node == "" {
		return errors.New("no place is configured for it")
	}
	next.Forked = why
	return p.write(next)
}
