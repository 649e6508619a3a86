package frame

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is a link of the chain that ties every frame of an epoch to all before
// it. The zero Digest stands before the first frame.
type Digest [16]byte

// Next returns the digest after frame: the first 16 bytes of
// SHA-256(d ‖ frame).
func (d Digest) Next(frame []byte) Digest {
	var buf [2048]byte
	h := sha256.Sum256(append(append(buf[:0], d[:]...), frame...))
	return Digest(h[:16])
}

// String returns d in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }
