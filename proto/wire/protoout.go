package wire

import (
	"encoding/binary"
	"math"
)

// appendTag appends the tag of a field below 16, whose tag is one byte, or
// above.
func appendTag(b []byte, number, wireType uint64) []byte {
	return binary.AppendUvarint(b, number<<3|wireType)
}

// appendString appends a field of text; nothing when it is empty.
func appendString(b []byte, number uint64, s string) []byte {
	if s == "" {
		return b
	}
	return appendElement(b, number, s)
}

// appendElement appends an element of a repeated field of text, also an empty one.
func appendElement(b []byte, number uint64, s string) []byte {
	b = appendTag(b, number, typeBytes)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendUint(b []byte, number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return binary.AppendUvarint(appendTag(b, number, typeVarint), v)
}

func appendBool(b []byte, number uint64, v bool) []byte {
	if !v {
		return b
	}
	return append(appendTag(b, number, typeVarint), 1)
}

// appendSint appends a zigzag number; nothing when it is zero.
func appendSint(b []byte, number uint64, v int64) []byte {
	if v == 0 {
		return b
	}
	return appendOptional(b, number, v)
}

// appendOptional appends a zigzag number, also zero.
func appendOptional(b []byte, number uint64, v int64) []byte {
	return binary.AppendVarint(appendTag(b, number, typeVarint), v)
}

func appendDouble(b []byte, number uint64, v float64) []byte {
	if v == 0 && !math.Signbit(v) {
		return b
	}
	return binary.LittleEndian.AppendUint64(appendTag(b, number, typeFixed8), math.Float64bits(v))
}

// beginMessage opens a message field; end closes the one that was opened at mark. The
// length is put in when it is known, behind the tag and before the content.
func beginMessage(b []byte, number uint64) (opened []byte, mark int) {
	b = append(appendTag(b, number, typeBytes), 0)
	return b, len(b)
}

func endMessage(b []byte, mark int) []byte {
	n := len(b) - mark
	if n < 0x80 {
		b[mark-1] = byte(n)
		return b
	}
	width := varintSize(uint64(n))
	b = append(b, make([]byte, width-1)...)
	copy(b[mark+width-1:], b[mark:mark+n])
	binary.PutUvarint(b[mark-1:], uint64(n))
	return b
}
