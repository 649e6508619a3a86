package columns

import (
	"encoding/binary"
	"math/bits"
)

// How a column of numbers is stored. Numbers are 64 bits wide and are read as
// signed where their order counts; all arithmetic wraps.
const (
	modeConst  = 1 // value
	modeLinear = 2 // first, step
	modePlain  = 3 // least, divisor, width; planes of (v - least) / divisor
	modeDelta  = 4 // the same of zigzag((v - previous) / divisor), the first previous being least
	modeGroup  = 5 // as modeDelta, the previous number of the same group
	modeTable  = 6 // least, divisor, count, values; one plane of indexes
)

// A plane is the bytes of one significance of all numbers, a stream of its own.
// Planes of high bytes are nearly constant and cost next to nothing.

// appendNumbers appends v, which may not be empty, in the mode that is smallest
// by estimate. The result has at most len(v) * width + [numbersOverhead] bytes,
// where width is the bytes of the difference of the largest and the least.
// With groups (numbers below the count of groups, one each of v) differences
// are taken within a group.
func (c *codec) appendNumbers(dst []byte, v []uint64, group []uint32) []byte {
	least, most, linear := surveyNumbers(v)
	if least == most {
		return binary.AppendUvarint(append(dst, modeConst), zigzagOf(v[0]))
	}
	if linear {
		dst = binary.AppendUvarint(append(dst, modeLinear), zigzagOf(v[0]))
		return binary.AppendUvarint(dst, zigzagOf(v[1]-v[0]))
	}
	divisor := commonDivisor(v, uint64(least))
	width := byteWidth(uint64(most-least) / divisor)
	plain := c.plainNumbers(v, uint64(least), divisor)
	if width > 1 {
		if out, ok := c.appendTable(dst, plain, uint64(least), divisor, width); ok {
			return out
		}
	}
	deltas, mode := c.zigzagDifferences(v, group, uint64(least), divisor)
	words := plain
	if cost := bitsOf(deltas); byteWidth(highestOf(deltas)) <= width && cost < bitsOf(plain) {
		words = deltas
	} else {
		mode = modePlain
	}
	return c.appendPlanes(appendBase(dst, mode, uint64(least), divisor), words)
}

// numbersOverhead is what a column costs beside its planes, at most.
const numbersOverhead = 48

func appendBase(dst []byte, mode byte, least, divisor uint64) []byte {
	dst = binary.AppendUvarint(append(dst, mode), zigzagOf(least))
	return binary.AppendUvarint(dst, divisor)
}

// surveyNumbers returns the least and the largest number and whether all steps are the
// same.
func surveyNumbers(v []uint64) (least, most int64, linear bool) {
	least, most, linear = int64(v[0]), int64(v[0]), len(v) > 1
	for i, u := range v {
		least, most = min(least, int64(u)), max(most, int64(u))
		if i > 0 && u-v[i-1] != v[1]-v[0] {
			linear = false
		}
	}
	return least, most, linear
}

// commonDivisor returns the greatest divisor of all differences to least; 1
// when differences between neighbours may overflow.
func commonDivisor(v []uint64, least uint64) uint64 {
	g := uint64(0)
	for _, u := range v {
		d := u - least
		if int64(d) < 0 {
			return 1
		}
		if g != 0 && d%g == 0 {
			continue
		}
		if g = greatestDivisor(d, g); g == 1 {
			return 1
		}
	}
	return max(g, 1)
}

func greatestDivisor(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (c *codec) plainNumbers(v []uint64, least, divisor uint64) []uint64 {
	c.words = c.words[:0]
	for _, u := range v {
		c.words = append(c.words, u-least)
	}
	divideAll(c.words, divisor)
	return c.words
}

func divideAll(v []uint64, divisor uint64) {
	if divisor == 1 {
		return
	}
	for i := range v {
		v[i] /= divisor
	}
}

// zigzagDifferences returns the zigzag differences of v and the mode that reads them.
func (c *codec) zigzagDifferences(v []uint64, group []uint32, least, divisor uint64) ([]uint64, byte) {
	c.deltas = c.deltas[:0]
	if group == nil {
		previous := least
		for _, u := range v {
			c.deltas = append(c.deltas, stepSize(u-previous, divisor))
			previous = u
		}
		return c.deltas, modeDelta
	}
	previous := previousOf(group, least)
	for i, u := range v {
		c.deltas = append(c.deltas, stepSize(u-previous[group[i]], divisor))
		previous[group[i]] = u
	}
	return c.deltas, modeGroup
}

func stepSize(d, divisor uint64) uint64 {
	if divisor != 1 {
		d = uint64(int64(d) / int64(divisor))
	}
	return zigzagOf(d)
}

func previousOf(group []uint32, least uint64) []uint64 {
	last := uint32(0)
	for _, g := range group {
		last = max(last, g)
	}
	previous := make([]uint64, last+1)
	for i := range previous {
		previous[i] = least
	}
	return previous
}

// bitsOf estimates what v costs.
func bitsOf(v []uint64) int {
	n := 0
	for _, u := range v {
		n += bits.Len64(u)
	}
	return n
}

func highestOf(v []uint64) uint64 {
	all := uint64(0)
	for _, u := range v {
		all |= u
	}
	return all
}

func byteWidth(v uint64) int { return max(1, (bits.Len64(v)+7)/8) }

func (c *codec) appendPlanes(dst []byte, words []uint64) []byte {
	width := byteWidth(highestOf(words))
	dst = append(dst, byte(width))
	for p := range width {
		c.plane = c.plane[:0]
		for _, u := range words {
			c.plane = append(c.plane, byte(u>>(8*p)))
		}
		dst = c.appendStream(dst, c.plane, isPackable(c.plane))
	}
	return dst
}

// tableSize is the most values of modeTable.
const tableSize = 256

// appendTable appends words as indexes into a table of their values, when there
// are few and that is smaller than planes.
func (c *codec) appendTable(dst []byte, words []uint64, least, divisor uint64, width int) ([]byte, bool) {
	values, ok := c.indexWords(words, min(tableSize, len(words)/8))
	if !ok {
		return dst, false
	}
	at := len(dst)
	dst = appendBase(dst, modeTable, least, divisor)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	for _, u := range values {
		dst = binary.AppendUvarint(dst, u)
	}
	if len(dst)-at+len(words) > len(words)*width {
		return dst[:at], false
	}
	return c.appendStream(dst, c.plane, isPackable(c.plane)), true
}

// indexWords puts into c.plane the index of each word in the values returned, which
// are in order of appearance; false when there are more than limit.
func (c *codec) indexWords(words []uint64, limit int) ([]uint64, bool) {
	var slots [4 * tableSize]uint16
	values := make([]uint64, 0, tableSize)
	c.plane = c.plane[:0]
	for _, u := range words {
		h := u * 0x9e3779b97f4a7c15 >> 54
		for slots[h] != 0 && values[slots[h]-1] != u {
			h = (h + 1) % uint64(len(slots))
		}
		if slots[h] == 0 {
			if len(values) == limit {
				return nil, false
			}
			values = append(values, u)
			slots[h] = uint16(len(values))
		}
		c.plane = append(c.plane, byte(slots[h]-1))
	}
	return values, true
}
