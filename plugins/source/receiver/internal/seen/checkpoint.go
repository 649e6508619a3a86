package seen

import (
	"encoding/binary"
	"encoding/hex"
)

// Checkpoint names how much of which file is in the buffer.
type Checkpoint struct {
	File  FileID
	Batch uint64 // the greatest that is there
}

// FileID tells one file of ids from another.
type FileID [16]byte

// String returns the id in hexadecimal digits.
func (f FileID) String() string { return hex.EncodeToString(f[:]) }

// checkpointFormat stands before every checkpoint.
const checkpointFormat = 1

// Bytes is what the agent keeps.
func (c Checkpoint) Bytes() []byte {
	b := append([]byte{checkpointFormat}, c.File[:]...)
	return binary.BigEndian.AppendUint64(b, c.Batch)
}

// ParseCheckpoint reads what Bytes wrote. It is false for everything else, which is
// the checkpoint of no file.
func ParseCheckpoint(b []byte) (c Checkpoint, ok bool) {
	if len(b) != 1+len(c.File)+8 || b[0] != checkpointFormat {
		return Checkpoint{}, false
	}
	n := copy(c.File[:], b[1:])
	c.Batch = binary.BigEndian.Uint64(b[1+n:])
	return c, true
}
