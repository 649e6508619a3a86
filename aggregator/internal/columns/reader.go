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

// left returns how many bytes are left.
func (r *reader) left() int { return len(r.b) - r.at }

func (r *reader) fail() { r.at, r.bad = len(r.b), true }

func (r *reader) uvarint() uint64 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint64(r.b[r.at-1])
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.fail()
		return 0
	}
	r.at += n
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(unzigzag(u))
}

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail()
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

// take returns the next n bytes, which are a view.
func (r *reader) take(n uint64) []byte {
	if n > uint64(r.left()) {
		r.fail()
		return nil
	}
	end := r.at + int(n)
	v := r.b[r.at:end:end]
	r.at = end
	return v
}

// field returns the bytes behind a length, which are a view.
func (r *reader) field() []byte { return r.take(r.uvarint()) }

// text returns the field as a copy, or as a part of b where that is the reader's
// own.
func (r *reader) text() string {
	f := r.field()
	if r.own {
		return unsafe.String(unsafe.SliceData(f), len(f)) //nolint:gosec // no one writes to b, which is own
	}
	return string(f)
}

func (r *reader) uint64() uint64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *reader) uint32() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// done reports whether all was read and all was there.
func (r *reader) done() bool { return !r.bad && r.at == len(r.b) }

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(u uint64) uint64 { return u>>1 ^ -(u & 1) }

func appendField[T bytesOrText](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
