package wire

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// text reads a string: a view into the input when nothing is escaped.
func (s *scanner) text() (string, *JSONError) {
	if s.space() != '"' {
		return "", s.wrongType("a string")
	}
	from, high := s.i+1, byte(0)
	for i := plain(s.b, from); i < len(s.b); i++ {
		c := s.b[i]
		switch {
		case c == '"':
			s.i = i + 1
			if high >= utf8.RuneSelf && !utf8.Valid(s.b[from:i]) {
				return "", s.fail("invalid unicode code point")
			}
			return view(s.b[from:i]), nil
		case c == '\\':
			return s.escaped(from, i)
		case c < 0x20:
			s.i = i + 1
			return "", s.fail("control character (\\u0000-\\u001F) found while parsing a string")
		}
		high |= c
	}
	s.i = len(s.b)
	return "", s.fail("EOF while parsing a string")
}

// plain returns a position from which a string that begins at i has to be read
// byte by byte: before it are only plain characters, eight at a time.
func plain(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^ones*'"', x^ones*'\\'
		if special := (quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x | x; special&tops != 0 {
			return i + bits.TrailingZeros64(special&tops)/8
		}
	}
	return i
}

// escaped reads the rest of a string that begins at from and has its first
// escape at i.
func (s *scanner) escaped(from, i int) (string, *JSONError) {
	text := append(make([]byte, 0, i-from+32), s.b[from:i]...)
	s.i = i
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			if !utf8.Valid(text) {
				return "", s.fail("invalid unicode code point")
			}
			return view(text), nil
		case c == '\\':
			var err *JSONError
			if text, err = s.escape(text); err != nil {
				return "", err
			}
		case c < 0x20:
			return "", s.fail("control character (\\u0000-\\u001F) found while parsing a string")
		default:
			text = append(text, c)
		}
	}
	return "", s.fail("EOF while parsing a string")
}

// escape reads what follows a backslash.
func (s *scanner) escape(text []byte) ([]byte, *JSONError) {
	if s.ended() {
		return nil, s.fail("EOF while parsing a string")
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/':
		return append(text, c), nil
	case 'b':
		return append(text, '\b'), nil
	case 'f':
		return append(text, '\f'), nil
	case 'n':
		return append(text, '\n'), nil
	case 'r':
		return append(text, '\r'), nil
	case 't':
		return append(text, '\t'), nil
	case 'u':
		return s.unicode(text)
	}
	return nil, s.fail("invalid escape")
}

// unicode reads the digits behind \u, and the second half of a pair.
func (s *scanner) unicode(text []byte) ([]byte, *JSONError) {
	r, err := s.hex()
	if err != nil {
		return nil, err
	}
	switch {
	case r >= 0xdc00 && r <= 0xdfff:
		return nil, s.fail("lone leading surrogate in hex escape")
	case r < 0xd800 || r > 0xdbff:
		return utf8.AppendRune(text, r), nil
	}
	if s.i+2 > len(s.b) || s.b[s.i] != '\\' || s.b[s.i+1] != 'u' {
		return nil, s.fail("unexpected end of hex escape")
	}
	s.i += 2
	low, err := s.hex()
	if err != nil {
		return nil, err
	}
	if low < 0xdc00 || low > 0xdfff {
		return nil, s.fail("lone leading surrogate in hex escape")
	}
	return utf8.AppendRune(text, 0x10000+(r-0xd800)<<10+(low-0xdc00)), nil
}

func (s *scanner) hex() (rune, *JSONError) {
	if s.i+4 > len(s.b) {
		s.i = len(s.b)
		return 0, s.fail("EOF while parsing a string")
	}
	v, err := strconv.ParseUint(view(s.b[s.i:s.i+4]), 16, 16)
	s.i += 4
	if err != nil {
		return 0, s.fail("invalid escape")
	}
	return rune(v), nil
}
