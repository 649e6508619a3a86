package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonValues reads the values of a body one after the other.
type jsonValues struct {
	input []byte
	base  int // where in the body the decoder began
	dec   jsontext.Decoder
}

// begin reads the body from i on. A key that comes twice is for [jsonValues.object] to
// refuse: what is passed over may have any.
func (in *jsonValues) begin(body []byte, i int) {
	in.input, in.base = body, i
	in.dec.Reset(bytes.NewBuffer(body[i:]), jsontext.AllowDuplicateNames(true))
}

// at is where in the body what was read last ends.
func (in *jsonValues) at() int { return in.base + int(in.dec.InputOffset()) }

// closes reports whether the object or list ends here.
func (in *jsonValues) closes(kind jsontext.Kind) bool { return in.dec.PeekKind() == kind }

// open reads the bracket or brace that begins a value.
func (in *jsonValues) open(kind jsontext.Kind, want string) *JSONError {
	if in.dec.PeekKind() != kind {
		return in.wrongType(want)
	}
	return in.close()
}

// close reads a bracket or brace that is there.
func (in *jsonValues) close() *JSONError {
	if _, err := in.dec.ReadToken(); err != nil {
		return in.broken(err)
	}
	return nil
}

// object reads an object. read is called for each of the fields that is there, which
// may be once; other fields are passed over. seen has the bits of those that were read, and
// those of required must be among them.
func (in *jsonValues) object(what string, fields []string, required int, read func(field int) *JSONError) (seen int, err *JSONError) {
	if err := in.open('{', what); err != nil {
		return 0, err
	}
	for !in.closes('}') {
		key, err := in.key()
		if err != nil {
			return seen, err
		}
		field := slices.Index(fields, key)
		if field < 0 {
			if err := in.dec.SkipValue(); err != nil {
				return seen, in.broken(err)
			}
			continue
		}
		if seen&(1<<field) != 0 {
			return seen, in.fail("duplicate field `%s`", key)
		}
		seen |= 1 << field
		if err := read(field); err != nil {
			return seen, err.in("%s", key)
		}
	}
	if err := in.close(); err != nil {
		return seen, err
	}
	for i, name := range fields {
		if required&^seen&(1<<i) != 0 {
			return seen, in.fail("missing field `%s`", name)
		}
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
	return in.close()
}

// value reads a text or a number: a part of the body.
func (in *jsonValues) value(kind jsontext.Kind, want string) ([]byte, *JSONError) {
	if in.dec.PeekKind() != kind {
		return nil, in.wrongType(want)
	}
	return in.next()
}

func (in *jsonValues) next() ([]byte, *JSONError) {
	v, err := in.dec.ReadValue()
	if err != nil {
		return nil, in.broken(err)
	}
	end := in.at()
	return in.input[end-len(v) : end], nil
}

// text reads a string: a view into the body when nothing is escaped.
func (in *jsonValues) text(want string) (string, *JSONError) {
	raw, err := in.value('"', want)
	if err != nil {
		return "", err
	}
	return unquoted(raw), nil
}

// key reads the key of an object, which the decoder makes sure is a string.
func (in *jsonValues) key() (string, *JSONError) {
	raw, err := in.next()
	if err != nil {
		return "", err
	}
	return unquoted(raw), nil
}

// unquoted is a string that was read without an error.
func unquoted(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return view(raw[1 : len(raw)-1])
	}
	text, _ := jsontext.AppendUnquote(nil, raw)
	return view(text)
}

// whole reads an integer of so many bits. A number with a fraction or an exponent is
// none, and neither is -0.
func (in *jsonValues) whole(want string, bits int) (int64, *JSONError) {
	raw, err := in.value('0', want)
	if err != nil {
		return 0, err
	}
	if isFloat(view(raw)) {
		return 0, in.failValue("invalid type: floating point `%s`, expected %s", excerpt(view(raw)), want)
	}
	v, bad := strconv.ParseInt(view(raw), 10, bits)
	if bad != nil {
		return 0, in.failValue("invalid value: integer `%s`, expected %s", excerpt(view(raw)), want)
	}
	return v, nil
}

func isFloat(number string) bool { return number == "-0" || strings.ContainsAny(number, ".eE") }

// null reads a null, where one comes next.
func (in *jsonValues) null() (bool, *JSONError) {
	if in.dec.PeekKind() != 'n' {
		return false, nil
	}
	return true, in.close()
}

// end checks that nothing follows.
func (in *jsonValues) end() *JSONError {
	if _, err := in.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return in.failAt(min(in.at()+1, len(in.input)), "trailing characters")
	}
	return nil
}

// wrongType says what came instead of what was wanted.
func (in *jsonValues) wrongType(want string) *JSONError {
	switch in.dec.PeekKind() {
	case '{':
		return in.fail("invalid type: map, expected %s", want)
	case '[':
		return in.fail("invalid type: sequence, expected %s", want)
	}
	v, err := in.dec.ReadValue()
	if err != nil {
		return in.broken(err)
	}
	switch v.Kind() {
	case '"':
		return in.fail("invalid type: string %q, expected %s", excerpt(unquoted(v)), want)
	case 'n':
		return in.fail("invalid type: null, expected %s", want)
	case 't', 'f':
		return in.fail("invalid type: boolean `%s`, expected %s", v, want)
	}
	if isFloat(string(v)) {
		return in.fail("invalid type: floating point `%s`, expected %s", excerpt(string(v)), want)
	}
	return in.fail("invalid type: integer `%s`, expected %s", excerpt(string(v)), want)
}
