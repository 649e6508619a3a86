package convert

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
)

// body is HCL that is being written.
type body struct{ strings.Builder }

// open begins a block, of a type and labels.
func (b *body) open(typ string, labels ...string) {
	b.WriteString("\n" + typ)
	for _, l := range labels {
		b.WriteString(" " + quote(l))
	}
	b.WriteString(" {\n")
}

func (b *body) close() { b.WriteString("}\n") }

// attr writes an attribute; an empty expression is none.
func (b *body) attr(name, expression string) {
	if expression != "" {
		fmt.Fprintf(b, "%s = %s\n", name, expression)
	}
}

// text writes an attribute with a text; an empty one is none.
func (b *body) text(name, value string) {
	if value != "" {
		b.attr(name, quote(value))
	}
}

// texts writes an attribute with a list of texts; an empty one is none.
func (b *body) texts(name string, values []string) {
	if len(values) > 0 {
		b.attr(name, list(values))
	}
}

// recordOf begins a record block that makes the keys and components that follow and no
// others, of runs with these attributes for start, stop and submit.
func (b *body) recordOf(id, start, stop, submit string) {
	b.open("record")
	b.comment("AUDITOR's keys and components alone, without those of the default mapping.")
	b.attr("defaults", "false")
	b.attr("id", id)
	b.attr("start", start)
	b.attr("stop", stop)
	b.attr("submit", submit)
	b.attr("state", "job.state")
	b.attr("exit_code", "job.exit_code")
	b.attr("exit_signal", "job.exit_signal")
}

// widest is how long a line of a comment is.
const widest = 88

// comment writes a comment.
func (b *body) comment(format string, args ...any) {
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

func quote(s string) string { return hcl.Quote(s) }

func list(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// key writes a key of an object.
func key(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return quote(name)
}

// member writes a step of a path.
func member(name string) string {
	if identifier.MatchString(name) {
		return "." + name
	}
	return "[" + quote(name) + "]"
}

// index is a place in a list.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// leftOver writes comments about settings that became nothing: why says it by the
// beginning of their path. What it does not say is a problem.
func (c *conversion) leftOver(b *body, t tree, why map[string]string) {
	for _, left := range t.unread() {
		reason := ""
		for path := index.ReplaceAllString(left.path, ""); path != "" && reason == ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
			reason = why[path]
		}
		if reason == "" {
			reason = fmt.Sprintf("line %d of %s: unknown to AUDITOR too, which ignores it or refuses it", left.line, c.file)
			c.missed(left.line, "unknown setting %q", left.path)
		}
		b.comment("%s: %s: %s", left.path, left.show(), reason)
	}
}
