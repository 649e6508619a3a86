package columns

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// The parts of an id template: text that all its ids share, and places for what
// differs.
const (
	idText   = 0 // length, text
	idNumber = 1 // decimal without leading zeros
	idFixed  = 2 // width; decimal with leading zeros
	idUUID   = 3 // 16 bytes as 8-4-4-4-12 lower-case hex digits
	idHex    = 4 // count; that many bytes as lower-case hex digits
)

// Limits of an id template. What is beyond them stays text.
const (
	maxNumbers   = 6
	maxDigits    = 18
	minHexDigits = 16
	maxHexDigits = 128
)

// idParser splits ids into a template and what differs. Its slices are valid
// until the next split.
type idParser struct {
	template []byte
	numbers  [maxNumbers]uint64
	count    int // of numbers
	bytes    []byte

	id     string
	text   int // where the text that is not yet in the template begins
	hexEnd int // end of the run of hex digits that was looked at last
}

// splitID reads id.
func (p *idParser) splitID(id string) {
	p.template, p.bytes, p.count = p.template[:0], p.bytes[:0], 0
	p.id, p.text, p.hexEnd = id, 0, 0
	for i := 0; i < len(id); {
		i = p.parseNext(i)
	}
	p.flushText(len(id))
}

// parseNext parses what begins at i and returns where the rest begins.
func (p *idParser) parseNext(i int) int {
	c := p.id[i]
	if !hexDigit(c) {
		return i + 1
	}
	if i >= p.hexEnd {
		p.hexEnd = runLength(p.id, i, hexDigit)
		if end, ok := p.parseLong(i); ok {
			return end
		}
	}
	if c > '9' {
		return i + 1
	}
	return p.parseDigits(i, runLength(p.id, i, isDigit))
}

// parseLong parses a UUID or a long run of hex digits.
func (p *idParser) parseLong(i int) (end int, ok bool) {
	if isUUID(p.id[i:]) {
		p.flushText(i)
		p.template = append(p.template, idUUID)
		return p.parseHex(i, i+8, i+9, i+13, i+14, i+18, i+19, i+23, i+24, i+36), true
	}
	n := p.hexEnd - i
	if n < minHexDigits || n > maxHexDigits || n%2 != 0 || runLength(p.id, i, isDigit) == p.hexEnd {
		return i, false
	}
	p.flushText(i)
	p.template = append(p.template, idHex, byte(n/2))
	return p.parseHex(i, p.hexEnd), true
}

// parseHex parses the hex digits between pairs of positions and returns the last.
func (p *idParser) parseHex(at ...int) int {
	for k := 0; k < len(at); k += 2 {
		for i := at[k]; i < at[k+1]; i += 2 { //nolint:gosec // the positions come in pairs
			p.bytes = append(p.bytes, nibbleValue(p.id[i])<<4|nibbleValue(p.id[i+1]))
		}
	}
	end := at[len(at)-1]
	p.text = end
	return end
}

// parseDigits parses a run of decimal digits that no letter follows.
func (p *idParser) parseDigits(i, end int) int {
	n := end - i
	if p.count == maxNumbers || n > maxDigits || end < len(p.id) && isLetter(p.id[end]) {
		return end
	}
	p.flushText(i)
	if n > 1 && p.id[i] == '0' {
		p.template = append(p.template, idFixed, byte(n))
	} else {
		p.template = append(p.template, idNumber)
	}
	v := uint64(0)
	for _, c := range []byte(p.id[i:end]) {
		v = v*10 + uint64(c-'0')
	}
	p.numbers[p.count] = v
	p.count++
	p.text = end
	return end
}

func (p *idParser) flushText(end int) {
	if p.text < end {
		p.template = appendField(append(p.template, idText), p.id[p.text:end])
	}
	p.text = end
}

func runLength(s string, i int, in func(byte) bool) int {
	for i < len(s) && in(s[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func hexDigit(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func nibbleValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'a' + 10
}

func isUUID(s string) bool {
	if len(s) < 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	for i := range 36 {
		if !hexDigit(s[i]) && i != 8 && i != 13 && i != 18 && i != 23 {
			return false
		}
	}
	return len(s) == 36 || !hexDigit(s[36])
}

// idShape is what a template takes from the columns.
type idShape struct{ numbers, bytes int }

// shapeOf checks a template and returns its shape.
func shapeOf(template string) (idShape, bool) {
	r, s := readText(template), idShape{}
	for r.bytesLeft() > 0 {
		switch r.readByte() {
		case idText:
			r.readField()
		case idNumber:
			s.numbers++
		case idFixed:
			s.numbers++
			r.bad = r.bad || r.readByte() > maxDigits
		case idUUID:
			s.bytes += 16
		case idHex:
			s.bytes += int(r.readByte())
		default:
			return s, false
		}
	}
	return s, !r.bad && s.numbers <= maxNumbers
}

// appendID puts an id together from a template that [shapeOf] accepted.
func appendID(dst []byte, template string, number func(k int) uint64, raw []byte) []byte {
	r, k := readText(template), 0
	for r.bytesLeft() > 0 {
		switch r.readByte() {
		case idText:
			dst = append(dst, r.readField()...)
		case idNumber:
			dst = strconv.AppendUint(dst, number(k), 10)
			k++
		case idFixed:
			dst = appendFixed(dst, number(k), int(r.readByte()))
			k++
		case idUUID:
			dst, raw = appendUUID(dst, raw[:16]), raw[16:]
		case idHex:
			n := r.readByte()
			dst, raw = hex.AppendEncode(dst, raw[:n]), raw[n:]
		}
	}
	return dst
}

func appendUUID(dst, raw []byte) []byte {
	dst = append(hex.AppendEncode(dst, raw[:4]), '-')
	dst = append(hex.AppendEncode(dst, raw[4:6]), '-')
	dst = append(hex.AppendEncode(dst, raw[6:8]), '-')
	dst = append(hex.AppendEncode(dst, raw[8:10]), '-')
	return hex.AppendEncode(dst, raw[10:])
}

func appendFixed(dst []byte, v uint64, width int) []byte {
	var digits [24]byte
	text := strconv.AppendUint(digits[:0], v, 10)
	for n := len(text); n < width; n++ {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}

// appendItem appends one item of a meta set: a pair and whether it goes on with
// the key before.
func appendItem(b []byte, pair uint32, goesOn bool) []byte {
	u := uint64(pair) << 1
	if goesOn {
		u |= 1
	}
	return binary.AppendUvarint(b, u)
}
