package hcl

import (
	"bytes"
	"fmt"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
)

// snippetLines is how many lines of source one problem shows at most.
const snippetLines = 4

type printer struct {
	sources Sources
	color   bool
}

func (p printer) text(d *Diagnostic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", p.head(d), p.paint("1", d.Summary))
	if d.Subject != nil {
		fmt.Fprintf(&b, "  at %s\n", place(*d.Subject))
		b.WriteString(p.snippet(*d.Subject))
	}
	for l := range strings.SplitSeq(strings.TrimSpace(d.Detail), "\n") {
		if l != "" {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	b.WriteString("\n")
	return b.String()
}

func (p printer) head(d *Diagnostic) string {
	if d.Severity == hcl2.DiagWarning {
		return p.paint("33", "Warning:")
	}
	return p.paint("31", "Error:")
}

func (p printer) paint(code, s string) string {
	if !p.color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// snippet shows the lines of r with their numbers, and carets below a range
// that lies within one line.
func (p printer) snippet(r Range) string {
	lines := bytes.Split(p.sources[r.Filename], []byte("\n"))
	var b strings.Builder
	for n := r.Start.Line; n <= max(r.End.Line, r.Start.Line) && n < r.Start.Line+snippetLines; n++ {
		if n < 1 || n > len(lines) {
			break
		}
		text := printable(string(lines[n-1]))
		fmt.Fprintf(&b, "  %4d | %s\n", n, text)
		if r.Start.Line == r.End.Line {
			b.WriteString(p.carets(r, text))
		}
	}
	return b.String()
}

func (p printer) carets(r Range, text string) string {
	width := max(1, r.End.Column-r.Start.Column)
	indent := []rune(text)
	indent = indent[:min(len(indent), max(0, r.Start.Column-1))]
	for i, c := range indent {
		if c != '\t' {
			indent[i] = ' '
		}
	}
	return fmt.Sprintf("       | %s%s\n", string(indent), p.paint("31", strings.Repeat("^", min(width, 200))))
}

// printable replaces control characters, so that a hostile file cannot drive
// the terminal.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c != '\t' && (c < ' ' || c == 0x7f || (c >= 0x80 && c < 0xa0)) {
			return '\uFFFD'
		}
		return c
	}, s)
}
