package buffer

import "errors"

// What a caller decides on.
var (
	// ErrFull: what some known cluster has not acknowledged, or no one, fills the
	// buffer. Nothing was written; try again when it has pulled, or when a cluster
	// that is permanently gone was forgotten.
	ErrFull = errors.New("the buffer is full of frames that not all aggregator clusters have acknowledged")
	// ErrCluster: the buffer does not know a cluster of that name.
	ErrCluster = errors.New("the cluster is not known")
	// ErrSuperseded: the source was sent back to an older checkpoint since it
	// began; begin again.
	ErrSuperseded = errors.New("the source was sent back to an older checkpoint")
	// ErrEpoch: the position belongs to another epoch of this buffer.
	ErrEpoch = errors.New("the epoch is not this buffer's")
	// ErrDigest: the history before the position is another one.
	ErrDigest = errors.New("the digest differs from the buffer's")
	// ErrAhead: the position is beyond the buffer's end.
	ErrAhead = errors.New("the position is beyond the buffer's end")
	// ErrDamaged: the file is broken. What to do: move it away and start again; the
	// agent makes a new one and collects again from where the clusters have come to,
	// so that only what was pushed to it and not pulled yet is gone.
	ErrDamaged = errors.New("the buffer's file is damaged")
	// ErrFormat: the file has a format that this release does not know.
	ErrFormat = errors.New("unknown format of the buffer's file")
)
