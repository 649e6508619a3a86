package host

import (
	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/text"
)

// maxDiagnostic bounds the texts of a diagnostic, in bytes.
const maxDiagnostic = 4 << 10

// Diagnostics are those of a plugin about its configuration, with the places of the
// user's files.
func Diagnostics(in []*bursarv1.Diagnostic) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, d := range in {
		problem := hcl.Errorf
		if d.GetSeverity() == bursarv1.Diagnostic_SEVERITY_WARNING {
			problem = hcl.Warnf
		}
		out.Add(problem(rangeOf(d.GetSubject()), text.Clip(d.GetSummary(), maxDiagnostic), "%s", text.Clip(d.GetDetail(), maxDiagnostic)))
	}
	return out
}

func rangeOf(r *bursarv1.Range) hcl.Range {
	var out hcl.Range
	out.Filename = r.GetFile()
	out.Start.Line, out.Start.Column, out.Start.Byte = int(r.GetStartLine()), int(r.GetStartColumn()), int(r.GetStartByte())
	out.End.Line, out.End.Column, out.End.Byte = int(r.GetEndLine()), int(r.GetEndColumn()), int(r.GetEndByte())
	return out
}
