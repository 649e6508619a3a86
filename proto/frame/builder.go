package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
)

// Sizes in bytes.
const (
	// MaxFrame is the length of the longest frame.
	MaxFrame = 1 << 20
	// Target is the body length, before compression, beyond which a chunk takes
	// no further frame.
	Target = 256 << 10
	// MaxBody is the body length, before compression, of the largest chunk: one
	// frame of [MaxFrame].
	MaxBody = MaxFrame + frameOverhead

	headerSize    = 54
	frameOverhead = 3 + 4 // the uvarint of MaxFrame and a sum
)

const (
	version1   = 1
	flagS2     = 1 << 0
	knownFlags = flagS2
)

// Errors of [Builder.Append].
var (
	ErrFull  = errors.New("chunk is full")
	ErrFrame = errors.New("frame is empty or too large")
)

// Builder puts frames together to a chunk. Make one with [NewBuilder]. It is not
// safe for concurrent use.
type Builder struct {
	first  uint64
	count  uint32
	before Digest
	after  Digest
	body   []byte
}

// NewBuilder returns a builder of the chunk whose first frame has the sequence
// number first and follows a frame with the chain's digest before.
func NewBuilder(first uint64, before Digest) *Builder {
	return &Builder{first: first, before: before, after: before}
}

// Append copies frame to the chunk's end. It returns [ErrFrame] for a frame that
// no chunk can hold, and [ErrFull] for one that belongs into the next chunk; an
// empty chunk is never full. After an error the builder is as before.
func (b *Builder) Append(frame []byte) error {
	if len(frame) == 0 || len(frame) > MaxFrame {
		return fmt.Errorf("%w: %d bytes", ErrFrame, len(frame))
	}
	if !b.Fits(len(frame)) {
		return ErrFull
	}
	b.addFrame(frame)
	return nil
}

func (b *Builder) addFrame(frame []byte) {
	b.body = binary.AppendUvarint(b.body, uint64(len(frame)))
	b.body = binary.LittleEndian.AppendUint32(b.body, checksumOf(frame))
	b.body = append(b.body, frame...)
	b.after = b.after.Next(frame)
	b.count++
}

// Fits reports whether a frame of n bytes belongs into this chunk.
func (b *Builder) Fits(n int) bool {
	return b.count == 0 || len(b.body)+n+frameOverhead <= Target
}

// Len returns the number of frames.
func (b *Builder) Len() int { return int(b.count) }

// Size returns the length of the body before compression.
func (b *Builder) Size() int { return len(b.body) }

// Last returns the sequence number of the last frame; that before the first one
// while the chunk is empty.
func (b *Builder) Last() uint64 { return b.first + uint64(b.count) - 1 }

// After returns the chain's digest after the last frame.
func (b *Builder) After() Digest { return b.after }

// Finish returns the chunk and makes the builder ready for the one that follows
// it. It returns nil when there are no frames.
func (b *Builder) Finish() []byte {
	if b.count == 0 {
		return nil
	}
	chunk := b.encodeChunk()
	b.first += uint64(b.count)
	b.before, b.count, b.body = b.after, 0, b.body[:0]
	return chunk
}

// encodeChunk compresses the body where that makes it smaller.
func (b *Builder) encodeChunk() []byte {
	out := make([]byte, headerSize, headerSize+len(b.body))
	var flags byte
	if packed := s2.Encode(nil, b.body); len(packed) < len(b.body) {
		flags, out = flagS2, append(out, packed...)
	} else {
		out = append(out, b.body...)
	}
	out[0], out[1] = version1, flags
	binary.LittleEndian.PutUint64(out[2:], b.first)
	binary.LittleEndian.PutUint32(out[10:], b.count)
	binary.LittleEndian.PutUint32(out[14:], uint32(len(b.body)))
	copy(out[18:], b.before[:])
	copy(out[34:], b.after[:])
	binary.LittleEndian.PutUint32(out[50:], chunkSum(out))
	return out
}

// chunkSum is the sum over all of the chunk but the sum itself.
func chunkSum(chunk []byte) uint32 {
	return crc32.Update(checksumOf(chunk[:50]), crc32.MakeTable(crc32.Castagnoli), chunk[headerSize:])
}

func checksumOf(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}
