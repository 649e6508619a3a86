package classad

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReadJSON calls yield with each ad of an array, as the commands print it with -json, and
// the ad's own text. The ad is lent until yield returns. An answer without an end is an
// error; an empty one has no ads.
func ReadJSON(r io.Reader, yield func(a *Ad, raw []byte, err error) error) error {
	in := json.NewDecoder(r)
	t, err := in.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil || t != json.Delim('[') {
		return fmt.Errorf("the answer is not a JSON array: %w", errors.Join(err, fmt.Errorf("it begins with %v", t)))
	}
	var ad Ad
	for in.More() {
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return fmt.Errorf("the answer cannot be read as JSON: %w", err)
		}
		err := ad.readJSON(raw)
		if err := yield(&ad, raw, err); err != nil {
			return err
		}
	}
	if _, err := in.Token(); err != nil {
		return fmt.Errorf("the answer has no end: %w", err)
	}
	return nil
}

// readJSON reads an ad that is a JSON object.
func (a *Ad) readJSON(raw []byte) error {
	a.Attributes, a.Cut = a.Attributes[:0], ""
	members, err := readObject(raw)
	for _, m := range members {
		a.Attributes = append(a.Attributes, Attribute{Name: m.name, Text: m.value.longForm()})
	}
	if err == nil && len(a.Attributes) == 0 {
		err = ErrEmpty
	}
	return err
}

type member struct {
	name  string
	value plain
}

// plain is a JSON value.
type plain json.RawMessage

// readObject reads the members of an object in their order.
func readObject(raw []byte) (out []member, err error) {
	in := json.NewDecoder(bytes.NewReader(raw))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("it is not a JSON object"), err)
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return nil, err
		}
		out = append(out, member{fmt.Sprint(name), plain(value)})
	}
	return out, nil
}

// longForm is the value as the long form has it, where strings have the old syntax.
func (p plain) longForm() string {
	s, ok := p.stringValue()
	if !ok {
		return p.nestedForm()
	}
	if e, ok := cutExpression(s); ok {
		return e
	}
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}

// nestedForm is the value within a list or an ad, which have the new syntax.
func (p plain) nestedForm() string {
	switch s, ok := p.stringValue(); {
	case ok:
		if e, ok := cutExpression(s); ok {
			return e
		}
		return quoteString(s)
	case p[0] == '[':
		var parts []json.RawMessage
		if json.Unmarshal(p, &parts) != nil {
			return "error"
		}
		texts := make([]string, len(parts))
		for i := range parts {
			texts[i] = plain(parts[i]).nestedForm()
		}
		return "{ " + strings.Join(texts, ", ") + " }"
	case p[0] == '{':
		members, err := readObject(p)
		if err != nil {
			return "error"
		}
		texts := make([]string, len(members))
		for i, m := range members {
			texts[i] = m.name + " = " + m.value.nestedForm()
		}
		return "[ " + strings.Join(texts, "; ") + " ]"
	case string(p) == "null":
		return "undefined"
	}
	return string(p) // a number or a truth value
}

func (p plain) stringValue() (s string, ok bool) {
	return s, len(p) > 0 && p[0] == '"' && json.Unmarshal(p, &s) == nil
}

// cutExpression is the text of an expression, which JSON has as "/Expr(text)/".
func cutExpression(s string) (string, bool) {
	inner, ok := strings.CutPrefix(s, "/Expr(")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, ")/")
}

// quoteString writes a string in the new syntax.
func quoteString(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ':
			out.WriteString(`\` + leftPad(strconv.FormatUint(uint64(c), 8)))
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

func leftPad(octal string) string { return strings.Repeat("0", 3-len(octal)) + octal }
