package store

import (
	"github.com/bursar-accounting/bursar/proto/record"
)

// state is everything small that changes with every command. It is one value in
// Pebble, written in the batch of the command.
type state struct {
	Cluster string // the cluster's id, "" before SetClusterCommand
	Version uint32 // the cluster version
	Index   uint64 // of the last command applied
	Term    uint64
	Next    uint64 // the next sequence number
	Clock   int64  // the last observed time given to a pushed write
	Shown   uint64 // records that are shown
	Rows    uint64 // rows that are not superseded, tombstones included
	Hash    Hash
}

const stateFormat = 1

func (s *state) fields(f fields) {
	f.text(&s.Cluster)
	small(f, &s.Version)
	f.uint(&s.Index)
	f.uint(&s.Term)
	f.reserved()
	f.uint(&s.Next)
	f.int(&s.Clock)
	f.uint(&s.Shown)
	f.uint(&s.Rows)
	f.hash(&s.Hash)
}

// peek returns the observed time that a pushed write at now would get: of a
// clock that never goes back and never stands still. A write that is taken moves
// Clock to it.
func (s *state) peek(now record.Time) int64 { return max(s.Clock+1, int64(now)) }

func (s *state) tick(now record.Time) int64 {
	s.Clock = s.peek(now)
	return s.Clock
}
