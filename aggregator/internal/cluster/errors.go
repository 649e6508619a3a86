package cluster

import "errors"

// Errors of a running node.
var (
	// ErrNotLeader: this node does not lead, and nothing was proposed.
	ErrNotLeader = errors.New("cluster: not the leader")
	// ErrUnknownOutcome: leadership was lost, time ran out or the node stopped
	// after the command had been handed to raft. It may have been applied, and
	// may still be applied later. It wraps the cause.
	ErrUnknownOutcome = errors.New("cluster: outcome unknown")
	// ErrTooLarge: the command is longer than MaxEntry; nothing was proposed.
	ErrTooLarge = errors.New("cluster: command too large")
	// ErrStopped: the node has been shut down or has stopped itself; nothing
	// was proposed.
	ErrStopped = errors.New("cluster: node stopped")
	// ErrNotFresh: only a node without history is bootstrapped.
	ErrNotFresh = errors.New("cluster: the node has a history")
	// ErrQuorum: too few members can be reached for what was asked.
	ErrQuorum = errors.New("cluster: no quorum would be left")
	// ErrOtherNode: the node at an address is not the one that is meant.
	ErrOtherNode = errors.New("cluster: another node is at this address")
	// ErrNoPeer: there is no other voter to hand the leadership to.
	ErrNoPeer = errors.New("cluster: no peer to lead")
)

// Errors of Open and Run. Most need an operator; the message names the file and
// the remedy.
var (
	// ErrForgotten: this node was a member, but its raft.db is missing or empty.
	// It has forgotten its votes and must not take part under its old id.
	ErrForgotten = errors.New("cluster: the raft log of this node is gone")
	// ErrMismatch: the State has applied more than the raft log holds, or less
	// than its snapshot says, or another history: they are not of the same
	// moment or not of the same node.
	ErrMismatch = errors.New("cluster: state and raft log do not belong together")
	// ErrForked: a leader has other entries than those that this node has committed, so
	// there are two histories, and an operator has to choose.
	ErrForked = errors.New("cluster: two histories")
	// ErrRestart: the log of this node conflicts with a snapshot from the leader.
	// No operator is needed: the next start drops the log.
	ErrRestart = errors.New("cluster: the raft log must be discarded by a restart")
	// ErrRecovery: Recover was cut short and must be run again.
	ErrRecovery = errors.New("cluster: a recovery was cut short")
	// ErrImageGone: the log says that an image replaces the State, and no member
	// has it any more. Nothing is lost: move the data directory of this node away
	// and let it join as a new one.
	ErrImageGone = errors.New("cluster: an image that this node needs is gone; move its data directory away and let it join as a new node")
	// ErrCorrupt: a checksum does not match what is on disk.
	ErrCorrupt = errors.New("cluster: damaged data")
	// ErrFormat: a file or entry has a format version that this program does
	// not know; a newer program wrote it.
	ErrFormat = errors.New("cluster: unknown format version")
)
