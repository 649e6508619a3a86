package wire

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
