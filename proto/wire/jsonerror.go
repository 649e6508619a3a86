package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// JSONError says what is wrong with a JSON body, and where. Its text is that of
// AUDITOR, with the path of the field behind the message.
type JSONError struct {
	Message string
	Path    string // such as [3].components[0].amount; empty at the top
	Line    int    // from 1
	Column  int    // bytes from the line's begin; that of the last byte read
}

// Error returns AUDITOR's text.
func (e *JSONError) Error() string {
	at := ""
	if e.Path != "" {
		at = " (" + e.Path + ")"
	}
	return fmt.Sprintf("Json deserialize error: %s%s at line %d column %d", e.Message, at, e.Line, e.Column)
}

// prependPath puts a part in front of the path.
func (e *JSONError) prependPath(part string, args ...any) *JSONError {
	part = fmt.Sprintf(part, args...)
	if e.Path != "" && !strings.HasPrefix(e.Path, "[") {
		part += "."
	}
	e.Path = part + e.Path
	return e
}

// failBehind is an error behind what was read last.
func (in *jsonValues) failBehind(format string, args ...any) *JSONError {
	return in.failAt(in.pos, format, args...)
}

// failValue is an error about the value that was read last. Its place is behind
// the value and, where that ends there, behind the object or list around it.
func (in *jsonValues) failValue(format string, args ...any) *JSONError {
	i := in.pos
	if c, at := in.peekValue(); c == '}' || c == ']' {
		i = at + 1
	}
	return in.failAt(i, format, args...)
}

func (in *jsonValues) failAt(i int, format string, args ...any) *JSONError {
	e := &JSONError{Message: fmt.Sprintf(format, args...), Line: 1}
	for _, c := range in.input[:i] {
		e.Column++
		if c == '\n' {
			e.Line, e.Column = e.Line+1, 0
		}
	}
	return e
}

// brokenSyntax says where the body ends to be JSON, and why: at the first byte that is not, or
// the end.
func (in *jsonValues) brokenSyntax() *JSONError {
	dec := jsontext.NewDecoder(bytes.NewBuffer(in.input[in.base:]), jsontext.AllowDuplicateNames(true))
	for {
		_, err := dec.ReadToken()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return in.failAt(len(in.input), "EOF while parsing a value")
		}
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			return in.failAt(min(in.base+int(syntax.ByteOffset)+1, len(in.input)), "%s", syntax.Err)
		}
		if err != nil {
			return in.failBehind("%s", err)
		}
	}
}

// excerptOf is the start of a text that is too long for a message.
func excerptOf(text string) string {
	const most = 512
	if len(text) <= most {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
