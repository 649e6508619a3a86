package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/klauspost/compress/s2"
)

// DamagedTrailer is the name under which an agent that cannot read a chunk tells
// the aggregator, in the trailer of its answer, in which file that is.
const DamagedTrailer = "bursar-damaged-file"

// Errors of [Parse], [Peek] and the methods of [Chunk].
var (
	// ErrVersion: the chunk is of a format that this program does not know.
	ErrVersion = errors.New("unknown chunk format")
	// ErrCorrupt: the bytes are no chunk, or not those that were written.
	ErrCorrupt = errors.New("corrupt chunk")
	// ErrChain: the frames are not those that the digests speak of.
	ErrChain = errors.New("broken chain of digests")
	// ErrRange: the chunk has no frame with that sequence number.
	ErrRange = errors.New("not in this chunk")
)

// Header is what a chunk says of itself.
type Header struct {
	First  uint64 // sequence number of the first frame
	Count  int    // number of frames
	Size   int    // length of the body before compression
	Before Digest // of the chain before the first frame
	After  Digest // of the chain after the last frame
	packed bool
	sum    uint32
}

// Last returns the sequence number of the last frame.
func (h *Header) Last() uint64 { return h.First + uint64(h.Count) - 1 }

// Peek reads the header of a chunk and checks no sum: it is for what [Parse] has
// accepted before. The error wraps [ErrVersion] or [ErrCorrupt].
func Peek(chunk []byte) (Header, error) {
	if len(chunk) == 0 {
		return Header{}, fmt.Errorf("%w: empty", ErrCorrupt)
	}
	if chunk[0] != version1 {
		return Header{}, fmt.Errorf("%w: version %d", ErrVersion, chunk[0])
	}
	if len(chunk) < headerSize {
		return Header{}, fmt.Errorf("%w: %d bytes are no header", ErrCorrupt, len(chunk))
	}
	if chunk[1]&^knownFlags != 0 {
		return Header{}, fmt.Errorf("%w: flags %#x", ErrVersion, chunk[1])
	}
	return parseHeader(chunk)
}

func parseHeader(chunk []byte) (Header, error) {
	h := Header{
		First:  binary.LittleEndian.Uint64(chunk[2:]),
		Count:  int(binary.LittleEndian.Uint32(chunk[10:])),
		Size:   int(binary.LittleEndian.Uint32(chunk[14:])),
		Before: Digest(chunk[18:34]),
		After:  Digest(chunk[34:50]),
		packed: chunk[1]&flagS2 != 0,
		sum:    binary.LittleEndian.Uint32(chunk[50:]),
	}
	switch {
	case h.First == 0 || h.Count == 0 || uint64(h.Count-1) > math.MaxUint64-h.First:
		return Header{}, fmt.Errorf("%w: %d frames from %d on", ErrCorrupt, h.Count, h.First)
	case h.Size > MaxBody:
		return Header{}, fmt.Errorf("%w: body of %d bytes", ErrCorrupt, h.Size)
	}
	return h, nil
}

// Check checks the header and the sum of a chunk, so that what was written is
// there, and nothing beyond. The error wraps [ErrVersion] or [ErrCorrupt].
func Check(chunk []byte) error {
	h, err := Peek(chunk)
	if err != nil {
		return err
	}
	if sum := chunkSum(chunk); sum != h.sum {
		return fmt.Errorf("%w: CRC32C is %08x, not %08x", ErrCorrupt, sum, h.sum)
	}
	return nil
}

// Chunk is a parsed chunk.
type Chunk struct {
	Header
	raw    []byte
	body   []byte
	frames []span
}

// span is where a frame lies in the body.
type span struct{ from, to uint32 }

// Parse reads a chunk and checks its format, its sums and its structure; the
// chain is checked by [Chunk.Verify]. The result keeps views into chunk, which
// must not change while it is in use. The error wraps [ErrVersion] or
// [ErrCorrupt]. Whatever the bytes are, Parse allocates no more than a few times
// [MaxBody].
func Parse(chunk []byte) (*Chunk, error) {
	if err := Check(chunk); err != nil {
		return nil, err
	}
	h, err := parseHeader(chunk)
	if err != nil {
		return nil, err
	}
	c := &Chunk{Header: h, raw: chunk}
	if c.body, err = unpackBody(chunk[headerSize:], &h); err != nil {
		return nil, err
	}
	if c.frames, err = splitFrames(c.body, &h); err != nil {
		return nil, err
	}
	return c, nil
}

// unpackBody returns the body as it was before compression.
func unpackBody(body []byte, h *Header) ([]byte, error) {
	if !h.packed {
		if len(body) != h.Size {
			return nil, fmt.Errorf("%w: body has %d bytes, not %d", ErrCorrupt, len(body), h.Size)
		}
		return body, nil
	}
	if n, err := s2.DecodedLen(body); err != nil || n != h.Size {
		return nil, fmt.Errorf("%w: compressed body is not of %d bytes", ErrCorrupt, h.Size)
	}
	plain, err := s2.Decode(nil, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return plain, nil
}

// splitFrames finds the frames and checks their sums.
func splitFrames(body []byte, h *Header) ([]span, error) {
	const least = 1 + 4 + 1 // bytes of the shortest frame
	if h.Count > len(body)/least {
		return nil, fmt.Errorf("%w: %d bytes cannot hold %d frames", ErrCorrupt, len(body), h.Count)
	}
	frames := make([]span, 0, h.Count)
	pos := 0
	for range h.Count {
		s, err := frameAt(body, pos)
		if err != nil {
			return nil, fmt.Errorf("frame %d: %w", h.First+uint64(len(frames)), err)
		}
		frames, pos = append(frames, s), int(s.to)
	}
	if pos != len(body) {
		return nil, fmt.Errorf("%w: %d bytes behind the last frame", ErrCorrupt, len(body)-pos)
	}
	return frames, nil
}

// frameAt reads the frame at pos.
func frameAt(body []byte, pos int) (span, error) {
	n, width := binary.Uvarint(body[pos:])
	if width <= 0 || n == 0 || n > MaxFrame {
		return span{}, fmt.Errorf("%w: bad length", ErrCorrupt)
	}
	from := pos + width + 4
	to := from + int(n)
	if to > len(body) {
		return span{}, fmt.Errorf("%w: ends early", ErrCorrupt)
	}
	if want := binary.LittleEndian.Uint32(body[from-4:]); checksumOf(body[from:to]) != want {
		return span{}, fmt.Errorf("%w: CRC32C is not %08x", ErrCorrupt, want)
	}
	return span{uint32(from), uint32(to)}, nil
}

// Frames yields each frame with its sequence number, in order. The frames are
// views that the caller must not change; they stay valid as long as the chunk.
func (c *Chunk) Frames() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for i := range c.frames {
			if !yield(c.First+uint64(i), c.frameBytes(i)) {
				return
			}
		}
	}
}

// Frame returns the frame with that sequence number; nil when the chunk does not
// have it.
func (c *Chunk) Frame(seq uint64) []byte {
	if seq < c.First || seq > c.Last() {
		return nil
	}
	return c.frameBytes(int(seq - c.First))
}

func (c *Chunk) frameBytes(i int) []byte {
	s := c.frames[i]
	return c.body[s.from:s.to:s.to]
}

// Verify checks that the frames lead from [Header].Before to [Header].After. The
// error wraps [ErrChain].
func (c *Chunk) Verify() error {
	if d, _ := c.DigestAt(c.Last()); d != c.After {
		return fmt.Errorf("%w: frames %d to %d give %s, not %s", ErrChain, c.First, c.Last(), d, c.After)
	}
	return nil
}

// DigestAt returns the chain's digest after the frame seq, or before the first
// frame for seq = First-1; false for any other seq outside the chunk.
func (c *Chunk) DigestAt(seq uint64) (Digest, bool) {
	if seq < c.First-1 || seq > c.Last() {
		return Digest{}, false
	}
	d := c.Before
	for i := range int(seq - c.First + 1) {
		d = d.Next(c.frameBytes(i))
	}
	return d, true
}

// Slice returns the chunk of the frames behind after: c's own bytes when after
// is First-1. The error wraps [ErrRange] when c does not hold the frame after+1,
// and [ErrChain] when c's chain is broken.
func (c *Chunk) Slice(after uint64) ([]byte, error) {
	if after < c.First-1 || after >= c.Last() {
		return nil, fmt.Errorf("frame %d of %d to %d: %w", after+1, c.First, c.Last(), ErrRange)
	}
	if after == c.First-1 {
		return c.raw, nil
	}
	d, _ := c.DigestAt(after)
	b := NewBuilder(after+1, d)
	for i := int(after + 1 - c.First); i < len(c.frames); i++ {
		b.addFrame(c.frameBytes(i))
	}
	if b.After() != c.After {
		return nil, fmt.Errorf("%w: frames %d to %d", ErrChain, c.First, c.Last())
	}
	return b.Finish(), nil
}
