package columns

import (
	"encoding/binary"
	"unsafe"
)

// bytesOrText lets the parsers read both encoded bytes and dictionary entries.
type bytesOrText interface{ ~[]byte | ~string }

// reader reads fields one after the other. After the first field that is not
// there, bad is set and all further fields are zero.
type reader struct {
	b   []byte
	at  int
	bad bool
	// own says that b is no one else's and stays as it is, so that texts are
	// parts of it instead of copies.
	own bool
}

// readText returns a reader of s, which is only read.
func readText(s string) reader { return reader{b: unsafe.Slice(unsafe.StringData(s), len(s))} } //nolint:gosec // a reader does not write to b

// bytesLeft returns how many bytes are left.
func (r *reader) bytesLeft() int { return len(r.b) - r.at }

func (r *reader) failReading() { r.at, r.bad = len(r.b), true }

func (r *reader) readUvarint() uint64 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint64(r.b[r.at-1])
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.failReading()
		return 0
	}
	r.at += n
	return v
}

func (r *reader) readVarint() int64 {
	u := r.readUvarint()
	return int64(zigzagValue(u))
}

func (r *reader) readByte() byte {
	if r.at >= len(r.b) {
		r.failReading()
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

// nextBytes returns the next n bytes, which are a view.
func (r *reader) nextBytes(n uint64) []byte {
	if n > uint64(r.bytesLeft()) {
		r.failReading()
		return nil
	}
	end := r.at + int(n)
	v := r.b[r.at:end:end]
	r.at = end
	return v
}

// readField returns the bytes behind a length, which are a view.
func (r *reader) readField() []byte { return r.nextBytes(r.readUvarint()) }

// readText returns the field as a copy, or as a part of b where that is the reader's
// own.
func (r *reader) readText() string {
	f := r.readField()
	if r.own {
		return unsafe.String(unsafe.SliceData(f), len(f)) //nolint:gosec // no one writes to b, which is own
	}
	return string(f)
}

func (r *reader) uint64() uint64 {
	b := r.nextBytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *reader) uint32() uint32 {
	b := r.nextBytes(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// isDone reports whether all was read and all was there.
func (r *reader) isDone() bool { return !r.bad && r.at == len(r.b) }

func zigzagOf(v uint64) uint64    { return v<<1 ^ uint64(int64(v)>>63) }
func zigzagValue(u uint64) uint64 { return u>>1 ^ -(u & 1) }

func appendField[T bytesOrText](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
