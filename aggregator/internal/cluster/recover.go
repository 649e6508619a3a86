package cluster

import "errors"

// Inspection is what a data directory holds, for choosing the node that is
// furthest: the greatest LastTerm, and among equals the greatest Last.
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
}

// Further reports whether i holds more than o.
func (i Inspection) Further(o Inspection) bool {
	if i.LastTerm != o.LastTerm {
		return i.LastTerm > o.LastTerm
	}
	return i.Last > o.Last
}

// Inspect reads the data directory of a node that is stopped.
func Inspect(_ string) (Inspection, error) { return Inspection{}, errors.ErrUnsupported }

// Recover makes the node whose data are in conf.DataDir, and which is stopped,
// the only member of its cluster, after the quorum was lost for good. servers is
// that node alone, with the address under which it will be reached.
//
// The node keeps its log and State, and gets a new id: members of the old
// cluster that come back mean the old id and are refused. They join with new
// ids, their data directories moved away. What was proposed and never confirmed
// may be committed by it.
func Recover(_ Config, _ []Server) error { return errors.ErrUnsupported }
