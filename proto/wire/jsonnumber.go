package wire

import (
	"math"
	"strconv"
)

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
