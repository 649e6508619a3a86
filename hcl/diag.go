package hcl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/bursar-accounting/bursar/proto/text"
)

// Aliases of the types of hashicorp/hcl/v2 that a daemon's configuration uses.
type (
	// Body is a parsed block or file whose content is not decoded yet; nil is an empty one.
	Body = *hclsyntax.Body
	// Range is a place in a source file.
	Range = hcl2.Range
	// Pos is a position in a source file: line and column from 1, byte from 0.
	Pos = hcl2.Pos
	// Expression is a parsed expression that is not evaluated yet.
	Expression = hcl2.Expression
	// EvalContext holds the variables and functions that expressions may use.
	EvalContext = hcl2.EvalContext
	// Diagnostic is one problem with its place.
	Diagnostic = hcl2.Diagnostic
)

// Diagnostics are the problems found in a configuration. It is an error value
// only through Err: a non-empty list may hold warnings alone.
type Diagnostics []*Diagnostic

// Errorf makes an error at r. The summary is a short phrase; format and args
// make the detail, which may be empty. A zero r is a problem without a place.
func Errorf(r Range, summary, format string, args ...any) *Diagnostic {
	return newDiagnostic(hcl2.DiagError, r, summary, fmt.Sprintf(format, args...))
}

// Warnf makes a warning, otherwise like Errorf.
func Warnf(r Range, summary, format string, args ...any) *Diagnostic {
	return newDiagnostic(hcl2.DiagWarning, r, summary, fmt.Sprintf(format, args...))
}

func newDiagnostic(s hcl2.DiagnosticSeverity, r Range, summary, detail string) *Diagnostic {
	d := &Diagnostic{Severity: s, Summary: summary, Detail: detail}
	if r != (Range{}) {
		d.Subject = &r
	}
	return d
}

// Suggest returns the candidate that is closest to name, see [text.Suggest].
func Suggest(name string, candidates []string) string { return text.Suggest(name, candidates) }

// DidYouMean is the sentence that suggests a name, see [text.DidYouMean].
func DidYouMean(name string, candidates []string) string { return text.DidYouMean(name, candidates) }

// Extend appends more problems; it takes Diagnostics and hcl.Diagnostics alike.
func (d *Diagnostics) Extend(more []*Diagnostic) { *d = append(*d, more...) }

// Add appends problems; nil ones are left out.
func (d *Diagnostics) Add(more ...*Diagnostic) {
	for _, m := range more {
		if m != nil {
			*d = append(*d, m)
		}
	}
}

// HasErrors says whether any problem is an error and not only a warning.
func (d Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(d, func(x *Diagnostic) bool { return x.Severity == hcl2.DiagError })
}

// Err returns the errors, without warnings, as one error; nil when there are none.
func (d Diagnostics) Err() error {
	var out Diagnostics
	for _, x := range d {
		if x.Severity == hcl2.DiagError {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Warnings returns the problems that are no errors.
func (d Diagnostics) Warnings() Diagnostics {
	return slices.DeleteFunc(slices.Clone(d), func(x *Diagnostic) bool { return x.Severity == hcl2.DiagError })
}

// Sorted returns the problems, errors before warnings and then by file and place, each
// once. Those without a place come first.
func (d Diagnostics) Sorted() Diagnostics {
	out := slices.Clone(d)
	slices.SortStableFunc(out, compareDiagnostics)
	return slices.CompactFunc(out, func(a, b *Diagnostic) bool {
		return compareDiagnostics(a, b) == 0
	})
}

func compareDiagnostics(a, b *Diagnostic) int {
	ra, rb := subjectOf(a), subjectOf(b)
	return cmp.Or(
		cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(ra.Filename, rb.Filename),
		cmp.Compare(ra.Start.Byte, rb.Start.Byte),
		cmp.Compare(a.Summary, b.Summary),
		cmp.Compare(a.Detail, b.Detail),
	)
}

func subjectOf(d *Diagnostic) Range {
	if d.Subject == nil {
		return Range{}
	}
	return *d.Subject
}

// Error lists the problems as Sorted orders them, one a line:
// "file:line:column: summary; detail".
func (d Diagnostics) Error() string {
	lines := make([]string, 0, len(d))
	for _, x := range d.Sorted() {
		lines = append(lines, diagnosticLine(x))
	}
	return strings.Join(lines, "\n")
}

func diagnosticLine(d *Diagnostic) string {
	var b strings.Builder
	if d.Subject != nil {
		fmt.Fprintf(&b, "%s: ", placeOf(*d.Subject))
	}
	if d.Severity == hcl2.DiagWarning {
		b.WriteString("warning: ")
	}
	b.WriteString(oneLine(d.Summary))
	if d.Detail != "" {
		b.WriteString("; " + oneLine(d.Detail))
	}
	return b.String()
}

// placeOf is file:line:column; a place that has no line is only named.
func placeOf(r Range) string {
	if r.Start.Line == 0 {
		return r.Filename
	}
	return fmt.Sprintf("%s:%d:%d", r.Filename, r.Start.Line, r.Start.Column)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// snippetLines is how many lines of source one problem shows at most.
const snippetLines = 4

// Write prints the problems as Sorted orders them for a person, each with the lines of
// source that it is about. Colour is used only when color is set. Sources may be nil.
func (d Diagnostics) Write(w io.Writer, sources Sources, color bool) error {
	files := map[string]*hcl2.File{}
	for name, src := range sources {
		files[name] = fileForPrinting(name, src)
	}
	out := hcl2.NewDiagnosticTextWriter(w, files, 0, color)
	for _, x := range d.Sorted() {
		bare := *x
		bare.Expression, bare.EvalContext, bare.Context = nil, nil, nil // the writer would print values and more lines
		if r := subjectOf(x); r.End.Line-r.Start.Line >= snippetLines {
			r.End = r.Start
			bare.Subject = &r
		}
		if err := out.WriteDiagnostic(&bare); err != nil {
			return err
		}
	}
	return nil
}

// fileForPrinting is a file as the writer shows its lines. Control characters, which could drive
// the terminal, and what is not UTF-8 become spaces; places stay.
func fileForPrinting(name string, src []byte) *hcl2.File {
	clean := bytes.Clone(src)
	for i := 0; i < len(clean); {
		c, n := utf8.DecodeRune(clean[i:])
		if c == utf8.RuneError && n == 1 || c != '\t' && c != '\n' && unicode.IsControl(c) {
			copy(clean[i:i+n], "    ")
		}
		i += n
	}
	file, _ := hclsyntax.ParseConfig(clean, name, hcl2.InitialPos) // for the names of blocks; what is wrong is known
	return file
}

type jsonDiagnostic struct {
	Severity  string `json:"severity"`
	Summary   string `json:"summary"`
	Detail    string `json:"detail,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	EndLine   int    `json:"end_line,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
}

// MarshalJSON gives a list of objects with severity ("error" or "warning"),
// summary, detail, file, line, column, end_line and end_column. No problems
// give an empty list.
func (d Diagnostics) MarshalJSON() ([]byte, error) {
	out := make([]jsonDiagnostic, 0, len(d))
	for _, x := range d.Sorted() {
		r := subjectOf(x)
		out = append(out, jsonDiagnostic{
			Severity: severityWord(x), Summary: x.Summary, Detail: x.Detail, File: r.Filename,
			Line: r.Start.Line, Column: r.Start.Column, EndLine: r.End.Line, EndColumn: r.End.Column,
		})
	}
	return json.Marshal(out)
}

func severityWord(d *Diagnostic) string {
	if d.Severity == hcl2.DiagWarning {
		return "warning"
	}
	return "error"
}
