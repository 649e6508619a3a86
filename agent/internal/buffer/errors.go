package buffer

import "errors"

// What a caller decides on.
var (
	// ErrFull: what nobody has acknowledged fills the buffer. Nothing was
	// written; try again when a cluster has pulled.
	ErrFull = errors.New("the buffer is full of frames that no aggregator has acknowledged")
	// ErrSuperseded: the source was sent back to an older checkpoint since it
	// began; begin again.
	ErrSuperseded = errors.New("the source was sent back to an older checkpoint")
	// ErrEpoch: the position belongs to another epoch of this buffer.
	ErrEpoch = errors.New("the epoch is not this buffer's")
	// ErrDigest: the history before the position is another one.
	ErrDigest = errors.New("the digest differs from the buffer's")
	// ErrAhead: the position is beyond the buffer's end.
	ErrAhead = errors.New("the position is beyond the buffer's end")
	// ErrFormat: the file has a format that this release does not know.
	ErrFormat = errors.New("unknown format of the buffer's file")
)
