package wire

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// ErrProto is wrapped by every error of decoding protobuf.
var ErrProto = errors.New("malformed protobuf")

// The wire types of protobuf, and a field's tag with each.
const (
	typeVarint = 0
	typeFixed8 = 1
	typeBytes  = 2
	typeFixed4 = 5
)

// reader walks over a message. After the first malformed byte it is bad and
// yields zeroes.
type reader struct {
	b   []byte
	i   int
	bad bool
}

func (r *reader) hasMore() bool { return r.i < len(r.b) && !r.bad }

func (r *reader) readError(what string) error {
	if !r.bad {
		return nil
	}
	return fmt.Errorf("%s: %w at byte %d of %d", what, ErrProto, r.i, len(r.b))
}

// readTag reads the next field's tag, where there is more.
func (r *reader) readTag() uint64 {
	if c := r.b[r.i]; c < 0x80 {
		r.i++
		return uint64(c)
	}
	return r.longUvarint()
}

func (r *reader) readUvarint() uint64 {
	if i := r.i; i < len(r.b) && r.b[i] < 0x80 {
		r.i = i + 1
		return uint64(r.b[i])
	}
	return r.longUvarint()
}

// Not inlined, so that uvarint is.
//
//go:noinline
func (r *reader) longUvarint() uint64 {
	var v uint64
	for shift := 0; shift < 70 && r.i < len(r.b); shift += 7 {
		c := r.b[r.i]
		r.i++
		if shift == 63 && c > 1 {
			break
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.bad = true
	return 0
}

func (r *reader) readSvarint() int64 {
	v := r.readUvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reader) svarint32() int32 {
	v := r.readSvarint()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.bad = true
		return 0
	}
	return int32(v)
}

// uint8 is a varint that must fit.
func (r *reader) uint8() uint8 {
	v := r.readUvarint()
	if v > math.MaxUint8 {
		r.bad = true
		return 0
	}
	return uint8(v)
}

func (r *reader) readBytes() []byte {
	if from := r.i + 1; from <= len(r.b) {
		if to := from + int(r.b[r.i]); to <= len(r.b) && to < from+0x80 {
			r.i = to
			return r.b[from:to:to]
		}
	}
	return r.longBytes()
}

func (r *reader) longBytes() []byte {
	n := r.readUvarint()
	if n > uint64(len(r.b)-r.i) {
		r.bad = true
		return nil
	}
	from := r.i
	r.i += int(n)
	return r.b[from:r.i:r.i]
}

func (r *reader) readText() string { return viewString(r.readBytes()) }

// viewString returns b as a string without a copy.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) } //nolint:gosec // no one writes to b while its views live

func (r *reader) readFloat() float64 {
	if len(r.b)-r.i < 8 {
		r.bad = true
		return 0
	}
	var v uint64
	for j := range 8 {
		v |= uint64(r.b[r.i+j]) << (8 * j)
	}
	r.i += 8
	return math.Float64frombits(v)
}

// skipField passes over a field whose number is above known. A known field of another
// wire type, a group and the field 0 are malformed.
func (r *reader) skipField(tag uint64, known uint64) {
	if number := tag >> 3; number <= known || number >= 1<<29 {
		r.bad = true
		return
	}
	switch tag & 7 {
	case typeVarint:
		r.readUvarint()
	case typeBytes:
		r.readBytes()
	case typeFixed8:
		r.passBytes(8)
	case typeFixed4:
		r.passBytes(4)
	default:
		r.bad = true
	}
}

func (r *reader) passBytes(n int) {
	if len(r.b)-r.i < n {
		r.bad = true
		return
	}
	r.i += n
}

// varintSize is the number of bytes of v as a varint.
func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
