package classad

import (
	"strconv"
	"strings"
)

// Kind is the type of a value.
type Kind uint8

// The kinds. A value that must be evaluated is an Expression.
const (
	Undefined Kind = iota
	Error
	Bool
	Int
	Real
	String
	List
	Nested
	Expression
)

// Value is a value.
type Value struct {
	Kind Kind
	Text string // of a String, or of an Expression as it is written
	Int  int64  // of an Int, and 1 for true
	Real float64
	List []Value
	Ad   []Member // of a Nested
}

// Member is an attribute of a nested ad.
type Member struct {
	Name  string
	Value Value
}

// maxDepth bounds lists and ads within each other.
const maxDepth = 32

// Parse reads a value as it stands in the long form, where a string is written in the
// old syntax: its only escape is \" and a backslash is a backslash.
func Parse(text string) Value {
	if text != "" && text[0] == '"' {
		if s, ok := oldString(text); ok {
			return Value{Kind: String, Text: s}
		}
		return Value{Kind: Expression, Text: text}
	}
	return parseValue(text, maxDepth)
}

// parseValue reads a value in the new syntax, which is that of lists and nested ads.
func parseValue(text string, depth int) Value {
	if text == "" || depth == 0 {
		return Value{Kind: Expression, Text: text}
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		if v, ok := parseNumber(text); ok {
			return v
		}
	case c == '"':
		if s, ok := newString(text); ok {
			return Value{Kind: String, Text: s}
		}
	case c == '{' && text[len(text)-1] == '}':
		if parts, ok := splitParts(text[1:len(text)-1], ','); ok {
			return parseList(parts, depth)
		}
	case c == '[' && text[len(text)-1] == ']':
		if parts, ok := splitParts(text[1:len(text)-1], ';'); ok {
			if v, ok := parseNested(parts, depth); ok {
				return v
			}
		}
	default:
		if v, ok := parseWord(text); ok {
			return v
		}
	}
	return Value{Kind: Expression, Text: text}
}

func parseWord(text string) (Value, bool) {
	switch {
	case len(text) > len("undefined"):
	case strings.EqualFold(text, "true"):
		return Value{Kind: Bool, Int: 1}, true
	case strings.EqualFold(text, "false"):
		return Value{Kind: Bool}, true
	case strings.EqualFold(text, "undefined"):
		return Value{Kind: Undefined}, true
	case strings.EqualFold(text, "error"):
		return Value{Kind: Error}, true
	}
	return Value{}, false
}

func parseNumber(text string) (Value, bool) {
	if strings.IndexByte(text, '.') < 0 { // of a real, the error would cost more than the number
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return Value{Kind: Int, Int: n}, true
		}
	}
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return Value{}, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return Value{Kind: Real, Real: f}, err == nil
}

func parseList(parts []string, depth int) Value {
	v := Value{Kind: List}
	for _, part := range parts {
		v.List = append(v.List, parseValue(part, depth-1))
	}
	return v
}

func parseNested(parts []string, depth int) (Value, bool) {
	v := Value{Kind: Nested}
	for _, part := range parts {
		name, text, ok := strings.Cut(part, "=")
		if name = strings.Trim(strings.TrimSpace(name), "'"); !ok || name == "" {
			return Value{}, false
		}
		v.Ad = append(v.Ad, Member{Name: name, Value: parseValue(strings.TrimSpace(text), depth-1)})
	}
	return v, true
}

// splitParts splits at a separator that is in no string, list, ad or parentheses. An empty
// last part is left out.
func splitParts(text string, at byte) (parts []string, ok bool) {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			if i = closingQuote(text, i, c); i < 0 {
				return nil, false
			}
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case at:
			if depth == 0 {
				parts, from = append(parts, strings.TrimSpace(text[from:i])), i+1
			}
		}
	}
	if last := strings.TrimSpace(text[from:]); last != "" {
		parts = append(parts, last)
	}
	return parts, depth == 0
}

// closingQuote is where the quote at i is closed; -1 where it is not.
func closingQuote(text string, i int, quote byte) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i
		}
	}
	return -1
}

// oldString reads a string that is all of text.
func oldString(text string) (string, bool) {
	if len(text) < 2 || text[len(text)-1] != '"' {
		return "", false
	}
	inner := text[1 : len(text)-1]
	if strings.IndexByte(inner, '"') < 0 {
		return inner, true
	}
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == '"':
			return "", false // another string follows: it is an expression
		case inner[i] == '\\' && i+1 < len(inner) && inner[i+1] == '"':
			i++
		}
		out = append(out, inner[i])
	}
	return string(out), true
}

// newString reads a string with escapes that is all of text.
func newString(text string) (string, bool) {
	if closingQuote(text, 0, '"') != len(text)-1 {
		return "", false
	}
	inner := text[1 : len(text)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		if c == '\\' && i+1 < len(inner) {
			i++
			var n int
			if c, n = unescapeByte(inner[i:]); n > 1 {
				i += n - 1
			}
		}
		out = append(out, c)
	}
	return string(out), true
}

// unescapeByte returns the byte that stands behind a backslash, and how many bytes it takes.
func unescapeByte(text string) (byte, int) {
	if i := strings.IndexByte("abfnrtv", text[0]); i >= 0 {
		return "\a\b\f\n\r\t\v"[i], 1
	}
	n := 0
	for n < min(3, len(text)) && text[n] >= '0' && text[n] <= '7' {
		n++
	}
	if code, err := strconv.ParseUint(text[:n], 8, 8); err == nil {
		return byte(code), n
	}
	return text[0], 1
}
