package store

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// filter is a Bloom filter of record ids: blocks of one cache line, 14 bits an
// id, in segments that are sized ahead so that none is ever copied.
type filter struct {
	segments []*segment
	warm     uint64 // what prefetch read, so that it is read
}

// segment holds capacity ids; each has its bits in one line of 512 bits.
type segment struct {
	lines    [][8]uint64
	n        int
	capacity int
}

const (
	filterBits   = 14
	filterProbes = 7
	lineBits     = 512
	firstSegment = 1 << 22
)

func newSegment(capacity int) *segment {
	return &segment{lines: make([][8]uint64, (capacity*filterBits+lineBits-1)/lineBits), capacity: capacity}
}

// newFilter makes room for four times the ids that are there.
func newFilter(ids int) *filter {
	return &filter{segments: []*segment{newSegment(max(firstSegment, 4*ids))}}
}

func hashID(id []byte) uint64           { return xxhash.Sum64(id) }
func hashText(id string) uint64         { return xxhash.Sum64String(id) }
func (f *filter) lastSegment() *segment { return f.segments[len(f.segments)-1] }
func (s *segment) lineOf(h uint64) *[8]uint64 {
	return &s.lines[(h>>32)*uint64(len(s.lines))>>32]
}

// addID adds an id by its hash.
func (f *filter) addID(h uint64) {
	s := f.lastSegment()
	if s.n >= s.capacity {
		s = newSegment(2 * s.capacity)
		f.segments = append(f.segments, s)
	}
	s.n++
	line := s.lineOf(h)
	x := uint32(h)
	step := uint32(h>>17) | 1
	for range filterProbes {
		line[x>>6&7] |= 1 << (x & 63)
		x += step
	}
}

// prefetch reads what the ids will ask for next, all at once: the lines are nowhere
// near each other, and memory is slow one line at a time.
func (f *filter) prefetch(hashes []uint64) {
	s, sum := f.lastSegment(), f.warm
	for _, h := range hashes {
		sum ^= s.lineOf(h)[0]
	}
	f.warm = sum
}

// prefetchAhead is how many ids are prefetched at a time.
const prefetchAhead = 64

func (f *filter) addIDs(hashes []uint64) {
	for chunk := range slices.Chunk(hashes, prefetchAhead) {
		f.prefetch(chunk)
		for _, h := range chunk {
			f.addID(h)
		}
	}
}

// mayContain reports false only for an id that was never added.
func (f *filter) mayContain(h uint64) bool {
	for _, s := range f.segments {
		if s.mayContain(h) {
			return true
		}
	}
	return false
}

func (s *segment) mayContain(h uint64) bool {
	line := s.lineOf(h)
	x := uint32(h)
	step := uint32(h>>17) | 1
	for range filterProbes {
		if line[x>>6&7]&(1<<(x&63)) == 0 {
			return false
		}
		x += step
	}
	return true
}
