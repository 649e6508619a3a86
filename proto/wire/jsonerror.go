package wire

import (
	"fmt"
	"strings"
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

// in puts a part in front of the path.
func (e *JSONError) in(part string, args ...any) *JSONError {
	part = fmt.Sprintf(part, args...)
	if e.Path != "" && !strings.HasPrefix(e.Path, "[") {
		part += "."
	}
	e.Path = part + e.Path
	return e
}

// fail is an error at the last byte that was read.
func (s *scanner) fail(format string, args ...any) *JSONError {
	return s.failAt(s.i, format, args...)
}

// failNext is an error at the byte to be read next.
func (s *scanner) failNext(message string) *JSONError {
	return s.failAt(min(s.i+1, len(s.b)), "%s", message)
}

// failValue is an error about the value that was read last. Its place is behind
// the value and, where that ends there, behind the object or list around it.
func (s *scanner) failValue(format string, args ...any) *JSONError {
	if c := s.space(); c == '}' || c == ']' {
		s.i++
	}
	return s.fail(format, args...)
}

func (s *scanner) failAt(i int, format string, args ...any) *JSONError {
	e := &JSONError{Message: fmt.Sprintf(format, args...), Line: 1}
	for _, c := range s.b[:i] {
		e.Column++
		if c == '\n' {
			e.Line, e.Column = e.Line+1, 0
		}
	}
	return e
}

// excerpt is the start of a text that is too long for a message.
func excerpt(text string) string {
	const most = 512
	if len(text) <= most {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
