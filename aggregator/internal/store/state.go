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

func (s *state) visitFields(f fields) {
	f.visitText(&s.Cluster)
	visitSmallUint(f, &s.Version)
	f.visitUint(&s.Index)
	f.visitUint(&s.Term)
	f.visitReserved()
	f.visitUint(&s.Next)
	f.visitInt(&s.Clock)
	f.visitUint(&s.Shown)
	f.visitUint(&s.Rows)
	f.visitHash(&s.Hash)
}

// peekClock returns the observed time that a pushed write at now would get: of a
// clock that never goes back and never stands still. A write that is taken moves
// Clock to it.
func (s *state) peekClock(now record.Time) int64 { return max(s.Clock+1, int64(now)) }

func (s *state) tickClock(now record.Time) int64 {
	s.Clock = s.peekClock(now)
	return s.Clock
}
