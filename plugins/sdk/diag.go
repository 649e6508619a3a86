package sdk

import (
	"fmt"
	"strings"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Range is a place in the user's configuration. The zero Range is unknown.
type Range struct {
	File       string
	Start, End Pos
}

// Pos is a position in a file: line and column count from 1, Byte from 0.
type Pos struct{ Line, Column, Byte int }

// String returns file:line,column.
func (r Range) String() string {
	if r.File == "" {
		return "configuration"
	}
	return fmt.Sprintf("%s:%d,%d", r.File, r.Start.Line, r.Start.Column)
}

// isWithin reports whether r is a part of what is written at o.
func (r Range) isWithin(o Range) bool {
	return r.File == o.File && r.Start.Byte >= o.Start.Byte && r.End.Byte <= o.End.Byte && o.End.Byte > 0
}

// Diagnostic is one problem of a configuration.
type Diagnostic struct {
	Warning bool // false: an error
	Summary string
	Detail  string
	Subject Range

	decoded bool // an error of Decode
}

// Error returns the place and the problem.
func (d Diagnostic) Error() string {
	text := d.Subject.String() + ": " + d.Summary
	if d.Detail != "" {
		text += "; " + d.Detail
	}
	return text
}

// Diagnostics are all problems of a configuration. As an error of Configure they
// are printed by the daemon with the lines of the user's file.
type Diagnostics []Diagnostic

// Error returns all problems, one a line.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// HasErrors reports whether any of ds is more than a warning.
func (ds Diagnostics) HasErrors() bool {
	for _, d := range ds {
		if !d.Warning {
			return true
		}
	}
	return false
}

func (d Diagnostic) encodeDiagnostic() *bursarv1.Diagnostic {
	p := &bursarv1.Diagnostic{Summary: validText(d.Summary), Detail: validText(d.Detail), Subject: d.Subject.encodeRange()}
	if d.Warning {
		p.Severity = bursarv1.Diagnostic_SEVERITY_WARNING
	}
	return p
}

func (r Range) encodeRange() *bursarv1.Range {
	if r == (Range{}) {
		return nil
	}
	return &bursarv1.Range{
		File:      validText(r.File),
		StartLine: int32(r.Start.Line), StartColumn: int32(r.Start.Column), StartByte: int32(r.Start.Byte),
		EndLine: int32(r.End.Line), EndColumn: int32(r.End.Column), EndByte: int32(r.End.Byte),
	}
}

func decodeRange(p *bursarv1.Range) Range {
	return Range{
		File:  p.GetFile(),
		Start: Pos{int(p.GetStartLine()), int(p.GetStartColumn()), int(p.GetStartByte())},
		End:   Pos{int(p.GetEndLine()), int(p.GetEndColumn()), int(p.GetEndByte())},
	}
}

// validText replaces what is not valid UTF-8, which protobuf refuses in text.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
