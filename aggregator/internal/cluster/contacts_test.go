package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestALateAnswerToAnOldQuestionConfirmsNothingNewer(t *testing.T) {
	c := newContacts()
	began := time.Now()
	old, fresh := began.Add(-time.Second), began.Add(time.Second)
	answer := func(term uint64, asked time.Time) {
		header := raft.RPCHeader{}
		c.noteAppended("b", asked, &raft.AppendEntriesRequest{RPCHeader: header, Term: term}, &raft.AppendEntriesResponse{Term: term, Success: true})
	}
	answer(3, old)
	if c.contactOf("b", 3).asked.After(began) {
		t.Error("an answer to a question of before counts")
	}
	answer(3, fresh)
	answer(3, old) // overtaken by the other
	if !c.contactOf("b", 3).asked.After(began) {
		t.Error("an answer to a question of afterwards does not count")
	}
	if c.contactOf("b", 2).asked.After(began) || c.contactOf("b", 4).asked.After(began) {
		t.Error("an answer counts in another term")
	}
}
