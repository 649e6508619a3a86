package wire

import (
	"bytes"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonValues reads the values of a body one after the other. It finds where names,
// numbers and lists begin and end and takes nothing that is not JSON; package jsontext
// resolves escapes, passes over what no field is for, and says what is wrong.
type jsonValues struct {
	input []byte
	base  int  // where in the body it began
	pos   int  // where what was read last ends
	due   byte // the comma or colon that must come before the next value; 0 for none
}

// begin reads the body from i on. A key that comes twice is for [jsonValues.object] to
// refuse: what is passed over may have any.
func (in *jsonValues) begin(body []byte, i int) {
	in.input, in.base, in.pos, in.due = body, i, i, 0
}

// from returns the first byte from i on that is no white space, and where it is; 0 at the
// end.
func (in *jsonValues) from(i int) (c byte, at int) {
	for ; i < len(in.input); i++ {
		if c = in.input[i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, i
		}
	}
	return 0, i
}

// peek returns the byte that begins the next value, or ends the object or list, and where
// it is; 0 where neither may be.
func (in *jsonValues) peek() (c byte, at int) {
	c, at = in.from(in.pos)
	if in.due == 0 || in.due == ',' && (c == '}' || c == ']') {
		return c, at
	}
	if c != in.due {
		return 0, at
	}
	if c, at = in.from(at + 1); c == '}' || c == ']' {
		return 0, at
	}
	return c, at
}

// took notes that a value was read to its end.
func (in *jsonValues) took(end int) { in.pos, in.due = end, ',' }

// closes reports whether the object or list ends here, and passes its end.
func (in *jsonValues) closes(kind byte) bool {
	c, at := in.peek()
	if c == kind {
		in.took(at + 1)
	}
	return c == kind
}

// open reads the bracket or brace that begins a value.
func (in *jsonValues) open(kind byte, want string) *JSONError {
	c, at := in.peek()
	if c != kind {
		return in.wrongType(want)
	}
	in.pos, in.due = at+1, 0
	return nil
}

// scalar returns where the number or the literal ends that begins at i with c; 0 where
// none does.
func (in *jsonValues) scalar(c byte, i int) int {
	rest := in.input[i:]
	switch {
	case c == 0:
	case c == '-' || c >= '0' && c <= '9':
		return in.number(i)
	case bytes.HasPrefix(rest, []byte("true")) || bytes.HasPrefix(rest, []byte("null")):
		return i + len("null")
	case bytes.HasPrefix(rest, []byte("false")):
		return i + len("false")
	}
	return 0
}

// quoted returns where the string ends that begins at i; 0 where it does not. It is plain
// when it stands there as it is.
func (in *jsonValues) quoted(i int) (end int, plain bool) {
	plain = true
	for i++; i < len(in.input); i++ {
		switch c := in.input[i]; {
		case c > '"' && c != '\\' && c < utf8.RuneSelf:
		case c == '"':
			return i + 1, plain
		case c < ' ':
			return 0, false
		case c == '\\':
			plain = false
			i++
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	return 0, false
}

// number returns where the number ends that begins at i; 0 where it is none.
func (in *jsonValues) number(i int) int {
	is := func(a, b byte) bool { return i < len(in.input) && (in.input[i] == a || in.input[i] == b) }
	if is('-', '-') {
		i++
	}
	from := i
	if i = in.digitsFrom(i); i == from || in.input[from] == '0' && i > from+1 {
		return 0
	}
	if is('.', '.') {
		if from = i + 1; in.digitsFrom(from) == from {
			return 0
		}
		i = in.digitsFrom(from)
	}
	if !is('e', 'E') {
		return i
	}
	if i++; is('+', '-') {
		i++
	}
	if end := in.digitsFrom(i); end > i {
		return end
	}
	return 0
}

// digitsFrom returns where the digits from i on end.
func (in *jsonValues) digitsFrom(i int) int {
	for i < len(in.input) && in.input[i] >= '0' && in.input[i] <= '9' {
		i++
	}
	return i
}

// object reads an object. read is called for each of the fields that is there, which
// may be once; other fields are passed over. seen has the bits of those that were read, and
// those of required must be among them.
func (in *jsonValues) object(what string, fields []string, required int, read func(field int) *JSONError) (seen int, err *JSONError) {
	if err := in.open('{', what); err != nil {
		return 0, err
	}
	for next := 0; ; next++ {
		key, more, err := in.key()
		if err != nil {
			return seen, err
		}
		if !more {
			break
		}
		field := next // nearly always they come in our order
		if field >= len(fields) || fields[field] != key {
			field = slices.Index(fields, key)
		}
		if field < 0 {
			if err := in.skip(); err != nil {
				return seen, err
			}
			continue
		}
		if seen&(1<<field) != 0 {
			return seen, in.fail("duplicate field `%s`", key)
		}
		seen, next = seen|1<<field, field
		if err := read(field); err != nil {
			return seen, err.in("%s", key)
		}
	}
	if missing := required &^ seen; missing != 0 {
		return seen, in.fail("missing field `%s`", fields[bits.TrailingZeros(uint(missing))])
	}
	return seen, nil
}

// list calls read for each element of a list.
func (in *jsonValues) list(read func() *JSONError) *JSONError {
	if err := in.open('[', "a sequence"); err != nil {
		return err
	}
	for i := 0; !in.closes(']'); i++ {
		if err := read(); err != nil {
			return err.in("[%d]", i)
		}
	}
	return nil
}

// skip passes over a value.
func (in *jsonValues) skip() *JSONError {
	c, at := in.peek()
	switch c {
	case '"':
		_, err := in.textAt(at)
		return err
	case '{', '[':
		dec := jsontext.NewDecoder(bytes.NewBuffer(in.input[at:]), jsontext.AllowDuplicateNames(true))
		if dec.SkipValue() != nil {
			return in.broken()
		}
		in.took(at + int(dec.InputOffset()))
		return nil
	}
	_, err := in.next(c, at)
	return err
}

// next reads a number or a literal, of which peek has seen the start.
func (in *jsonValues) next(c byte, at int) (string, *JSONError) {
	end := in.scalar(c, at)
	if end == 0 {
		return "", in.broken()
	}
	in.took(end)
	return view(in.input[at:end]), nil
}

// text reads a string: a view into the body when nothing is escaped.
func (in *jsonValues) text(want string) (string, *JSONError) {
	c, at := in.peek()
	if c != '"' {
		return "", in.wrongType(want)
	}
	return in.textAt(at)
}

// textAt reads the string that begins there.
func (in *jsonValues) textAt(at int) (string, *JSONError) {
	end, plain := in.quoted(at)
	if end == 0 {
		return "", in.broken()
	}
	raw := in.input[at:end]
	if plain {
		in.took(end)
		return view(raw[1 : len(raw)-1]), nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", in.broken()
	}
	in.took(end)
	return view(text), nil
}

// key reads the key of an object; there is none more at its end, which it passes.
func (in *jsonValues) key() (key string, more bool, err *JSONError) {
	c, at := in.peek()
	switch c {
	case '"':
		key, err = in.textAt(at)
		in.due = ':'
		return key, true, err
	case '}':
		in.took(at + 1)
		return "", false, nil
	}
	return "", false, in.broken()
}

// digits reads a number as it is written.
func (in *jsonValues) digits(want string) (string, *JSONError) {
	c, at := in.peek()
	if c != '-' && (c < '0' || c > '9') {
		return "", in.wrongType(want)
	}
	return in.next(c, at)
}

// whole reads an integer of so many bits. A number with a fraction or an exponent is
// none, and neither is -0.
func (in *jsonValues) whole(want string, bits int) (int64, *JSONError) {
	text, err := in.digits(want)
	if err != nil {
		return 0, err
	}
	if isFloat(text) {
		return 0, in.failValue("invalid type: floating point `%s`, expected %s", excerpt(text), want)
	}
	v, bad := strconv.ParseInt(text, 10, bits)
	if bad != nil {
		return 0, in.failValue("invalid value: integer `%s`, expected %s", excerpt(text), want)
	}
	return v, nil
}

func isFloat(number string) bool { return number == "-0" || strings.ContainsAny(number, ".eE") }

// null reads a null, where one comes next.
func (in *jsonValues) null() (bool, *JSONError) {
	c, at := in.peek()
	if c != 'n' {
		return false, nil
	}
	_, err := in.next(c, at)
	return true, err
}

// end checks that nothing follows.
func (in *jsonValues) end() *JSONError {
	if _, at := in.from(in.pos); at < len(in.input) {
		return in.failAt(at+1, "trailing characters")
	}
	return nil
}

// wrongType says what came instead of what was wanted.
func (in *jsonValues) wrongType(want string) *JSONError {
	c, at := in.peek()
	switch c {
	case '{':
		return in.fail("invalid type: map, expected %s", want)
	case '[':
		return in.fail("invalid type: sequence, expected %s", want)
	case '"':
		text, err := in.textAt(at)
		if err == nil {
			err = in.fail("invalid type: string %q, expected %s", excerpt(text), want)
		}
		return err
	}
	raw, err := in.next(c, at)
	switch {
	case err != nil:
		return err
	case c == 'n':
		return in.fail("invalid type: null, expected %s", want)
	case c == 't' || c == 'f':
		return in.fail("invalid type: boolean `%s`, expected %s", raw, want)
	case isFloat(raw):
		return in.fail("invalid type: floating point `%s`, expected %s", excerpt(raw), want)
	}
	return in.fail("invalid type: integer `%s`, expected %s", excerpt(raw), want)
}
