package columns

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// How the bytes of a stream are stored.
const (
	streamConst = 0 // one byte, repeated
	streamRaw   = 1
	streamZstd  = 2 // length, then a zstd frame
)

// maxStream is the most bytes that a stream may hold when it is expanded.
const maxStream = 64 << 20

// maxExpansion bounds what a stream may claim to expand to per stored byte:
// zstd stays below it.
const maxExpansion = 1 << 15

// codec compresses and expands streams. It belongs to one goroutine at a time.
type codec struct {
	enc    *zstd.Encoder
	dec    *zstd.Decoder
	packed []byte   // the last compressed stream
	plane  []byte   // one plane of a column
	words  []uint64 // a column, transformed
	deltas []uint64
	planes [8][]byte
}

// codecs keeps coders, which are dear to make, between uses. They carry nothing
// from one use to the next.
var codecs = sync.Pool{New: func() any { return newCodec() }}

func getCodec() *codec  { return codecs.Get().(*codec) }
func putCodec(c *codec) { codecs.Put(c) }

func newCodec() *codec {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(128<<10), zstd.WithSingleSegment(true))
	if err != nil {
		panic(fmt.Sprintf("columns: zstd options: %v", err)) // constants: cannot happen
	}
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxStream),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true), zstd.IgnoreChecksum(true))
	if err != nil {
		panic(fmt.Sprintf("columns: zstd options: %v", err)) // constants: cannot happen
	}
	return &codec{enc: enc, dec: dec}
}

// appendStream appends data in its smallest form: never more than 1 + len(data)
// bytes. The reader must know len(data).
func (c *codec) appendStream(dst, data []byte, try bool) []byte {
	if isConstant(data) {
		return append(dst, streamConst, data[0])
	}
	if try {
		c.packed = c.enc.EncodeAll(data, c.packed[:0])
		if len(c.packed)+len(c.packed)>>7+4 < len(data) {
			dst = binary.AppendUvarint(append(dst, streamZstd), uint64(len(c.packed)))
			return append(dst, c.packed...)
		}
	}
	return append(append(dst, streamRaw), data...)
}

// readStream reads a stream of n bytes. The result is buf's memory when that is
// large enough, or a view of r's.
func (c *codec) readStream(r *reader, n int, buf []byte) ([]byte, error) {
	switch kind := r.readByte(); {
	case n > maxStream:
		return nil, corruptError("stream of %d bytes", n)
	case kind == streamRaw:
		if v := r.nextBytes(uint64(n)); !r.bad {
			return v, nil
		}
	case kind == streamConst && n <= maxExpansion:
		if v := r.readByte(); !r.bad {
			return filledBytes(buf, n, v), nil
		}
	case kind == streamZstd:
		if packed := r.readField(); !r.bad && n/maxExpansion <= len(packed) {
			return c.expandPacked(packed, n, buf)
		}
	}
	return nil, corruptError("stream is cut off or of no known kind")
}

func (c *codec) expandPacked(packed []byte, n int, buf []byte) ([]byte, error) {
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	out, err := c.dec.DecodeAll(packed, buf[:0:n])
	if err != nil {
		return nil, corruptError("stream: %v", err)
	}
	if len(out) != n {
		return nil, corruptError("stream has %d bytes, want %d", len(out), n)
	}
	return out, nil
}

func filledBytes(buf []byte, n int, v byte) []byte {
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	for i := range buf {
		buf[i] = v
	}
	return buf
}

// isConstant reports whether data, which may not be empty, is one byte repeated.
func isConstant(data []byte) bool {
	if len(data) == 0 {
		return false
	}
	for _, v := range data {
		if v != data[0] {
			return false
		}
	}
	return true
}

// isPackable reports whether the bytes of a plane are uneven enough for an
// entropy coder to gain: their chance of being equal in pairs is a tenth above
// that of random bytes.
func isPackable(plane []byte) bool {
	if len(plane) < 64 {
		return len(plane) > 16
	}
	var count [256]uint32
	for _, v := range plane {
		count[v]++
	}
	pairs, n := uint64(0), uint64(len(plane))
	for _, k := range count {
		pairs += uint64(k) * uint64(k)
	}
	return (pairs-n)*2560 > n*n*11
}
