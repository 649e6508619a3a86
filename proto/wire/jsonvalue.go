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

// beginAt reads the body from i on. A key that comes twice is for [jsonValues.readObject] to
// refuse: what is passed over may have any.
func (in *jsonValues) beginAt(body []byte, i int) {
	in.input, in.base, in.pos, in.due = body, i, i, 0
}

// skipSpace returns the first byte from i on that is no white space, and where it is; 0 at the
// end.
func (in *jsonValues) skipSpace(i int) (c byte, at int) {
	for ; i < len(in.input); i++ {
		if c = in.input[i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, i
		}
	}
	return 0, i
}

// peekValue returns the byte that begins the next value, or ends the object or list, and where
// it is; 0 where neither may be.
func (in *jsonValues) peekValue() (c byte, at int) {
	c, at = in.skipSpace(in.pos)
	if in.due == 0 || in.due == ',' && (c == '}' || c == ']') {
		return c, at
	}
	if c != in.due {
		return 0, at
	}
	if c, at = in.skipSpace(at + 1); c == '}' || c == ']' {
		return 0, at
	}
	return c, at
}

// tookValue notes that a value was read to its end.
func (in *jsonValues) tookValue(end int) { in.pos, in.due = end, ',' }

// closesHere reports whether the object or list ends here, and passes its end.
func (in *jsonValues) closesHere(kind byte) bool {
	c, at := in.peekValue()
	if c == kind {
		in.tookValue(at + 1)
	}
	return c == kind
}

// openBracket reads the bracket or brace that begins a value.
func (in *jsonValues) openBracket(kind byte, want string) *JSONError {
	c, at := in.peekValue()
	if c != kind {
		return in.wrongType(want)
	}
	in.pos, in.due = at+1, 0
	return nil
}

// scalarEnd returns where the number or the literal ends that begins at i with c; 0 where
// none does.
func (in *jsonValues) scalarEnd(c byte, i int) int {
	rest := in.input[i:]
	switch {
	case c == 0:
	case c == '-' || c >= '0' && c <= '9':
		return in.numberEnd(i)
	case bytes.HasPrefix(rest, []byte("true")) || bytes.HasPrefix(rest, []byte("null")):
		return i + len("null")
	case bytes.HasPrefix(rest, []byte("false")):
		return i + len("false")
	}
	return 0
}

// quotedEnd returns where the string ends that begins at i; 0 where it does not. It is plain
// when it stands there as it is.
func (in *jsonValues) quotedEnd(i int) (end int, plain bool) {
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

// numberEnd returns where the number ends that begins at i; 0 where it is none.
func (in *jsonValues) numberEnd(i int) int {
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

// readObject reads an object. read is called for each of the fields that is there, which
// may be once; other fields are passed over. seen has the bits of those that were read, and
// those of required must be among them.
func (in *jsonValues) readObject(what string, fields []string, required int, read func(field int) *JSONError) (seen int, err *JSONError) {
	if err := in.openBracket('{', what); err != nil {
		return 0, err
	}
	for next := 0; ; next++ {
		key, more, err := in.readKey()
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
			if err := in.skipValue(); err != nil {
				return seen, err
			}
			continue
		}
		if seen&(1<<field) != 0 {
			return seen, in.failBehind("duplicate field `%s`", key)
		}
		seen, next = seen|1<<field, field
		if err := read(field); err != nil {
			return seen, err.prependPath("%s", key)
		}
	}
	if missing := required &^ seen; missing != 0 {
		return seen, in.failBehind("missing field `%s`", fields[bits.TrailingZeros(uint(missing))])
	}
	return seen, nil
}

// readList calls read for each element of a list.
func (in *jsonValues) readList(read func() *JSONError) *JSONError {
	if err := in.openBracket('[', "a sequence"); err != nil {
		return err
	}
	for i := 0; !in.closesHere(']'); i++ {
		if err := read(); err != nil {
			return err.prependPath("[%d]", i)
		}
	}
	return nil
}

// skipValue passes over a value.
func (in *jsonValues) skipValue() *JSONError {
	c, at := in.peekValue()
	switch c {
	case '"':
		_, err := in.textAt(at)
		return err
	case '{', '[':
		dec := jsontext.NewDecoder(bytes.NewBuffer(in.input[at:]), jsontext.AllowDuplicateNames(true))
		if dec.SkipValue() != nil {
			return in.brokenSyntax()
		}
		in.tookValue(at + int(dec.InputOffset()))
		return nil
	}
	_, err := in.readScalar(c, at)
	return err
}

// readScalar reads a number or a literal, of which peek has seen the start.
func (in *jsonValues) readScalar(c byte, at int) (string, *JSONError) {
	end := in.scalarEnd(c, at)
	if end == 0 {
		return "", in.brokenSyntax()
	}
	in.tookValue(end)
	return viewString(in.input[at:end]), nil
}

// readText reads a string: a view into the body when nothing is escaped.
func (in *jsonValues) readText(want string) (string, *JSONError) {
	c, at := in.peekValue()
	if c != '"' {
		return "", in.wrongType(want)
	}
	return in.textAt(at)
}

// textAt reads the string that begins there.
func (in *jsonValues) textAt(at int) (string, *JSONError) {
	end, plain := in.quotedEnd(at)
	if end == 0 {
		return "", in.brokenSyntax()
	}
	raw := in.input[at:end]
	if plain {
		in.tookValue(end)
		return viewString(raw[1 : len(raw)-1]), nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", in.brokenSyntax()
	}
	in.tookValue(end)
	return viewString(text), nil
}

// readKey reads the key of an object; there is none more at its end, which it passes.
func (in *jsonValues) readKey() (key string, more bool, err *JSONError) {
	c, at := in.peekValue()
	switch c {
	case '"':
		key, err = in.textAt(at)
		in.due = ':'
		return key, true, err
	case '}':
		in.tookValue(at + 1)
		return "", false, nil
	}
	return "", false, in.brokenSyntax()
}

// readDigits reads a number as it is written.
func (in *jsonValues) readDigits(want string) (string, *JSONError) {
	c, at := in.peekValue()
	if c != '-' && (c < '0' || c > '9') {
		return "", in.wrongType(want)
	}
	return in.readScalar(c, at)
}

// readInteger reads an integer of so many bits. A number with a fraction or an exponent is
// none, and neither is -0.
func (in *jsonValues) readInteger(want string, bits int) (int64, *JSONError) {
	text, err := in.readDigits(want)
	if err != nil {
		return 0, err
	}
	if isFloat(text) {
		return 0, in.failValue("invalid type: floating point `%s`, expected %s", excerptOf(text), want)
	}
	v, bad := strconv.ParseInt(text, 10, bits)
	if bad != nil {
		return 0, in.failValue("invalid value: integer `%s`, expected %s", excerptOf(text), want)
	}
	return v, nil
}

func isFloat(number string) bool { return number == "-0" || strings.ContainsAny(number, ".eE") }

// readNull reads a null, where one comes next.
func (in *jsonValues) readNull() (bool, *JSONError) {
	c, at := in.peekValue()
	if c != 'n' {
		return false, nil
	}
	_, err := in.readScalar(c, at)
	return true, err
}

// checkEnd checks that nothing follows.
func (in *jsonValues) checkEnd() *JSONError {
	if _, at := in.skipSpace(in.pos); at < len(in.input) {
		return in.failAt(at+1, "trailing characters")
	}
	return nil
}

// wrongType says what came instead of what was wanted.
func (in *jsonValues) wrongType(want string) *JSONError {
	c, at := in.peekValue()
	switch c {
	case '{':
		return in.failBehind("invalid type: map, expected %s", want)
	case '[':
		return in.failBehind("invalid type: sequence, expected %s", want)
	case '"':
		text, err := in.textAt(at)
		if err == nil {
			err = in.failBehind("invalid type: string %q, expected %s", excerptOf(text), want)
		}
		return err
	}
	raw, err := in.readScalar(c, at)
	switch {
	case err != nil:
		return err
	case c == 'n':
		return in.failBehind("invalid type: null, expected %s", want)
	case c == 't' || c == 'f':
		return in.failBehind("invalid type: boolean `%s`, expected %s", raw, want)
	case isFloat(raw):
		return in.failBehind("invalid type: floating point `%s`, expected %s", excerptOf(raw), want)
	}
	return in.failBehind("invalid type: integer `%s`, expected %s", excerptOf(raw), want)
}
