package convert

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
)

// body is HCL that is being written.
type body struct {
	strings.Builder

	labelled []string // the sources and actions in it
}

// openBlock begins a block, of a type and labels.
func (b *body) openBlock(typ string, labels ...string) {
	words := []string{typ}
	for _, l := range labels {
		words = append(words, quoteText(l))
	}
	head := strings.Join(words, " ")
	if typ == "source" || typ == "action" {
		b.labelled = append(b.labelled, head)
	}
	b.WriteString("\n" + head + " {\n")
}

func (b *body) closeBlock() { b.WriteString("}\n") }

// writeAttribute writes an attribute; an empty expression is none.
func (b *body) writeAttribute(name, expression string) {
	if expression != "" {
		fmt.Fprintf(b, "%s = %s\n", name, expression)
	}
}

// writeText writes an attribute with a text; an empty one is none.
func (b *body) writeText(name, value string) {
	if value != "" {
		b.writeAttribute(name, quoteText(value))
	}
}

// writeTexts writes an attribute with a list of texts; an empty one is none.
func (b *body) writeTexts(name string, values []string) {
	if len(values) > 0 {
		b.writeAttribute(name, listExpression(values))
	}
}

// recordOf begins a record block that makes the keys and components that follow and no
// others, of runs with these attributes for start, stop and submit.
func (b *body) recordOf(id, start, stop, submit string) {
	b.openBlock("record")
	b.writeComment("AUDITOR's keys and components alone, without those of the default mapping.")
	b.writeAttribute("defaults", "false")
	b.writeAttribute("id", id)
	b.writeAttribute("start", start)
	b.writeAttribute("stop", stop)
	b.writeAttribute("submit", submit)
	b.writeAttribute("state", "job.state")
	b.writeAttribute("exit_code", "job.exit_code")
	b.writeAttribute("exit_signal", "job.exit_signal")
}

// widest is how long a line of a comment is.
const widest = 88

// writeComment writes a comment.
func (b *body) writeComment(format string, args ...any) {
	line := "#"
	for w := range strings.FieldsSeq(fmt.Sprintf(format, args...)) {
		if len(line)+1+len(w) > widest && line != "#" {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + w
	}
	b.WriteString(line + "\n")
}

func quoteText(s string) string { return hcl.Quote(s) }

func listExpression(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = quoteText(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// keyExpression writes a key of an object.
func keyExpression(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return quoteText(name)
}

// memberExpression writes a step of a path.
func memberExpression(name string) string {
	if identifier.MatchString(name) {
		return "." + name
	}
	return "[" + quoteText(name) + "]"
}

// index is a place in a list.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// leftOver writes comments about settings that became nothing: why says it by the
// beginning of their path. What it does not say is a problem.
func (c *conversion) leftOver(b *body, t tree, why map[string]string) {
	for _, left := range t.listUnread() {
		reason := ""
		for path := index.ReplaceAllString(left.path, ""); path != "" && reason == ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
			reason = why[path]
		}
		if reason == "" { // its value may be a secret
			b.writeComment("%s: line %d of %s: unknown to AUDITOR too, which ignores it or refuses it", left.path, left.line, filepath.Base(left.file))
			c.problems = append(c.problems, Problem{left.file, left.line, fmt.Sprintf("unknown setting %q", left.path)})
			continue
		}
		b.writeComment("%s: %s: %s", left.path, left.showValue(), reason)
	}
}
