package wire

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// scanner reads JSON. Its methods begin where the last one ended.
type scanner struct {
	b []byte
	i int
}

// maxDepth is how deep objects and lists may lie in one another.
const maxDepth = 128

// space passes over blanks and returns the byte behind them, which is not read;
// zero at the end.
func (s *scanner) space() byte {
	if s.i < len(s.b) && s.b[s.i] > ' ' {
		return s.b[s.i]
	}
	return s.spaces()
}

func (s *scanner) spaces() byte {
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.i++
	}
	return 0
}

func (s *scanner) ended() bool { return s.i >= len(s.b) }

// key reads the next key of an object and the colon; more is false behind the
// last one, whose brace is read.
func (s *scanner) key(first bool) (key string, more bool, err *JSONError) {
	c := s.space()
	if c == '}' {
		s.i++
		return "", false, nil
	}
	if !first {
		if c != ',' {
			return "", false, s.expected("an object", "expected `,` or `}`")
		}
		s.i++
		if c = s.space(); c == '}' {
			return "", false, s.failNext("trailing comma")
		}
	}
	if c != '"' {
		return "", false, s.expected("an object", "key must be a string")
	}
	if key, err = s.text(); err != nil {
		return "", false, err
	}
	if s.space() != ':' {
		return "", false, s.expected("an object", "expected `:`")
	}
	s.i++
	return key, true, nil
}

// element goes to the next element of a list; false behind the last one, whose
// bracket is read.
func (s *scanner) element(first bool) (more bool, err *JSONError) {
	c := s.space()
	if c == ']' {
		s.i++
		return false, nil
	}
	if first && !s.ended() {
		return true, nil
	}
	if c != ',' {
		return false, s.expected("a list", "expected `,` or `]`")
	}
	s.i++
	if s.space() == ']' {
		return false, s.failNext("trailing comma")
	}
	return true, nil
}

// expected is an error at the next byte, or that there is none.
func (s *scanner) expected(what, message string) *JSONError {
	if s.ended() {
		return s.fail("EOF while parsing %s", what)
	}
	return s.failNext(message)
}

// open reads the bracket or brace that begins a value.
func (s *scanner) open(bracket byte, want string) *JSONError {
	if s.space() != bracket {
		return s.wrongType(want)
	}
	s.i++
	return nil
}

// null reports whether the next value is null, which is read then.
func (s *scanner) null() bool {
	return s.space() == 'n' && s.literal("null")
}

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

// number reads a number's text. It is whole when it has neither fraction nor
// exponent.
func (s *scanner) number() (text string, whole bool, err *JSONError) {
	from := s.i
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if !s.digits() {
		return "", false, s.badNumber()
	}
	if !s.ended() && s.b[s.i]-'0' <= 9 {
		return "", false, s.badNumber()
	}
	whole = true
	if !s.ended() && s.b[s.i] == '.' {
		s.i++
		if whole = false; !s.digits() {
			return "", false, s.badNumber()
		}
	}
	if !s.ended() && s.b[s.i]|0x20 == 'e' {
		s.i++
		if !s.ended() && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if whole = false; !s.digits() {
			return "", false, s.badNumber()
		}
	}
	return view(s.b[from:s.i]), whole, nil
}

func (s *scanner) badNumber() *JSONError {
	if s.ended() {
		return s.fail("EOF while parsing a value")
	}
	return s.failNext("invalid number")
}

// digits passes over at least one digit.
func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	return s.i > from
}

// atNumber reports whether a number comes next.
func (s *scanner) atNumber() bool {
	c := s.space()
	return c == '-' || c-'0' <= 9
}

// whole reads an integer of 64 bits. A number with a fraction or an exponent is
// none, and neither is -0.
func (s *scanner) whole(want string) (int64, *JSONError) {
	if v, ok := s.short(); ok {
		return v, nil
	}
	if !s.atNumber() {
		return 0, s.wrongType(want)
	}
	text, whole, err := s.number()
	if err != nil {
		return 0, err
	}
	if !whole || text == "-0" {
		return 0, s.failValue("invalid type: floating point `%s`, expected %s", excerpt(text), want)
	}
	v, bad := strconv.ParseInt(text, 10, 64)
	if bad != nil {
		return 0, s.failValue("invalid value: integer `%s`, expected %s", excerpt(text), want)
	}
	return v, nil
}

// short reads a plain integer of at most 18 digits, where there is one.
func (s *scanner) short() (v int64, ok bool) {
	i := s.i
	for ; i < len(s.b) && s.b[i]-'0' <= 9; i++ {
		v = v*10 + int64(s.b[i]-'0')
	}
	n := i - s.i
	if n == 0 || n > 18 || n > 1 && s.b[s.i] == '0' || i == len(s.b) || s.b[i] == '.' || s.b[i]|0x20 == 'e' {
		return 0, false
	}
	s.i = i
	return v, true
}

// literal reads that text, where it comes next.
func (s *scanner) literal(text string) bool {
	if end := s.i + len(text); end <= len(s.b) && string(s.b[s.i:end]) == text {
		s.i = end
		return true
	}
	return false
}

// float reads any number.
func (s *scanner) float() (float64, *JSONError) {
	if !s.atNumber() {
		return 0, s.wrongType("f64")
	}
	text, _, err := s.number()
	if err != nil {
		return 0, err
	}
	if v, ok := exact(text); ok {
		return v, nil
	}
	v, bad := strconv.ParseFloat(text, 64)
	if bad != nil || math.IsInf(v, 0) {
		return 0, s.fail("number out of range")
	}
	return v, nil
}

// exact reads a number of at most 15 digits without an exponent: then digits and
// power of ten are exact, and so is their quotient, rounded.
func exact(text string) (v float64, ok bool) {
	if len(text) > 16 {
		return 0, false
	}
	var digits int64
	power, scale := 1.0, 1.0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.' && scale == 1:
			scale = 10
		case c-'0' <= 9:
			digits = digits*10 + int64(c-'0')
			if scale == 10 {
				power *= 10
			}
		default:
			return 0, false
		}
	}
	if digits > 999_999_999_999_999 {
		return 0, false
	}
	return float64(digits) / power, true
}

// wrongType says what came instead of what was wanted.
func (s *scanner) wrongType(want string) *JSONError {
	c := s.space()
	switch {
	case s.ended():
		return s.fail("EOF while parsing a value")
	case c == '{':
		return s.failAt(s.i, "invalid type: map, expected %s", want)
	case c == '[':
		return s.failAt(s.i, "invalid type: sequence, expected %s", want)
	case c == '"':
		text, err := s.text()
		if err != nil {
			return err
		}
		return s.fail("invalid type: string %q, expected %s", excerpt(text), want)
	case s.atNumber():
		return s.wrongNumber(want)
	case c == 'n' || c == 't' || c == 'f':
		return s.wrongWord(want)
	}
	return s.failNext("expected value")
}

func (s *scanner) wrongNumber(want string) *JSONError {
	text, whole, err := s.number()
	if err != nil {
		return err
	}
	if whole {
		return s.fail("invalid type: integer `%s`, expected %s", excerpt(text), want)
	}
	return s.fail("invalid type: floating point `%s`, expected %s", excerpt(text), want)
}

func (s *scanner) wrongWord(want string) *JSONError {
	word, err := s.word()
	if err != nil {
		return err
	}
	if word == "null" {
		return s.fail("invalid type: null, expected %s", want)
	}
	return s.fail("invalid type: boolean `%s`, expected %s", word, want)
}

// word reads null, true or false.
func (s *scanner) word() (string, *JSONError) {
	for _, word := range [...]string{"null", "true", "false"} {
		if s.literal(word) {
			return word, nil
		}
	}
	return "", s.failNext("expected ident")
}

// skip passes over a value of any type at that depth.
func (s *scanner) skip(depth int) *JSONError {
	if depth > maxDepth {
		return s.fail("recursion limit exceeded")
	}
	var err *JSONError
	switch c := s.space(); {
	case s.ended():
		return s.fail("EOF while parsing a value")
	case c == '{':
		return s.skipObject(depth)
	case c == '[':
		return s.skipList(depth)
	case c == '"':
		_, err = s.text()
	case s.atNumber():
		_, _, err = s.number()
	case c == 'n' || c == 't' || c == 'f':
		_, err = s.word()
	default:
		return s.failNext("expected value")
	}
	return err
}

func (s *scanner) skipObject(depth int) *JSONError {
	s.i++
	for first := true; ; first = false {
		_, more, err := s.key(first)
		if err != nil || !more {
			return err
		}
		if err := s.skip(depth + 1); err != nil {
			return err
		}
	}
}

func (s *scanner) skipList(depth int) *JSONError {
	s.i++
	for first := true; ; first = false {
		more, err := s.element(first)
		if err != nil || !more {
			return err
		}
		if err := s.skip(depth + 1); err != nil {
			return err
		}
	}
}

// end checks that nothing follows.
func (s *scanner) end() *JSONError {
	if s.space(); !s.ended() {
		return s.failNext("trailing characters")
	}
	return nil
}
