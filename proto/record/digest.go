package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Digest identifies content: the first 16 bytes of the SHA-256 of a canonical
// encoding, which never changes for the same content in any release.
type Digest [16]byte

// Compare orders digests as byte strings.
func (d Digest) Compare(o Digest) int { return bytes.Compare(d[:], o[:]) }

// digestFormat is the first byte of every canonical encoding.
const digestFormat = 1

// Digest returns the digest of all of r's content.
func (r *Record) Digest() Digest {
	var buf [512]byte
	return checksumOf(appendRecord(append(buf[:0], digestFormat, 'r'), r))
}

func checksumOf(b []byte) Digest {
	h := sha256.Sum256(b)
	return Digest(h[:16])
}

func appendRecord(b []byte, r *Record) []byte {
	b = appendText(b, r.ID)
	b = appendMeta(b, r.Meta)
	b = binary.AppendUvarint(b, uint64(len(r.Components)))
	for i := range r.Components {
		b = appendComponent(b, &r.Components[i])
	}
	b = appendTime(b, r.Start)
	b = appendTime(b, r.Stop)
	b = appendTime(b, r.Submit)
	b = appendText(b, r.State)
	return appendExit(b, r.Exit)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTime(b []byte, t Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t))
}

// appendMeta keeps an absent meta (0) and an empty one (1) apart.
func appendMeta(b []byte, m Meta) []byte {
	if m == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(m))+1)
	for i := range m {
		b = appendText(b, m[i].Key)
		b = binary.AppendUvarint(b, uint64(len(m[i].Values)))
		for _, v := range m[i].Values {
			b = appendText(b, v)
		}
	}
	return b
}

func appendComponent(b []byte, c *Component) []byte {
	b = appendText(b, c.Name)
	b = binary.AppendUvarint(b, uint64(c.Amount))
	b = append(b, byte(c.Kind))
	b = binary.AppendUvarint(b, uint64(len(c.Scores)))
	for _, s := range c.Scores {
		b = appendText(b, s.Name)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(s.Value))
	}
	return b
}

func appendExit(b []byte, e Exit) []byte {
	if !e.Known {
		return append(b, 0)
	}
	b = binary.AppendVarint(append(b, 1), int64(e.Code))
	return binary.AppendVarint(b, int64(e.Signal))
}
