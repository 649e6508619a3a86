package sdk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
)

// Body is what stands in a block of the configuration. The getters of a nil *Body, which an
// absent block is, return the defaults.
type Body struct {
	node     *Node
	blocks   []*Body // those that were handed out
	asked    map[string]bool
	problems *Diagnostics
}

// Labels returns the labels of the block.
func (b *Body) Labels() []string {
	if b == nil {
		return nil
	}
	return b.node.Labels
}

// Range returns where the block is written.
func (b *Body) Range() Range {
	if b == nil {
		return Range{}
	}
	return b.node.Range
}

// Require reports each of the attributes that is absent or null, at the block.
func (b *Body) Require(names ...string) {
	for _, name := range names {
		if b != nil && b.attribute(name) == nil {
			b.add(Diagnostic{Summary: "missing attribute", Detail: fmt.Sprintf("%q must be set", name), Subject: b.node.Range})
		}
	}
}

// Has reports whether the attribute is there and not null.
func (b *Body) Has(name string) bool { return b.attribute(name) != nil }

// RangeOf returns where the attribute is written, and the block's range when it
// is not.
func (b *Body) RangeOf(name string) Range {
	if n := b.attribute(name); n != nil {
		return n.Range
	}
	return b.Range()
}

// Errorf reports a problem with the attribute's value, at its place. The detail is left
// out where the value comes from file() or env(), since it may quote it.
func (b *Body) Errorf(name, format string, args ...any) {
	b.add(Diagnostic{Summary: "invalid " + name, Detail: b.detail(name, format, args), Subject: b.RangeOf(name)})
}

// detail words a problem with an attribute without showing a secret.
func (b *Body) detail(name, format string, args []any) string {
	if n := b.find(name); n != nil && n.Sensitive {
		return "the value comes from file() or env(), so it is not shown; check what they return"
	}
	return fmt.Sprintf(format, args...)
}

// ElementErrorf reports a problem with the i-th element of a list.
func (b *Body) ElementErrorf(name string, i int, format string, args ...any) {
	at := b.RangeOf(name)
	if n := b.attribute(name); n != nil && i < len(n.Elements) {
		at = n.Elements[i]
	}
	b.add(Diagnostic{Summary: "invalid " + name, Detail: b.detail(name, format, args), Subject: at})
}

// Warnf reports something with the attribute's value that is not wrong enough to
// refuse it.
func (b *Body) Warnf(name, format string, args ...any) {
	b.add(Diagnostic{Warning: true, Summary: name, Detail: b.detail(name, format, args), Subject: b.RangeOf(name)})
}

// String returns the attribute's text. A number or a truth value is written out.
func (b *Body) String(name, def string) string {
	n := b.attribute(name)
	if n == nil {
		return def
	}
	if s, ok := text(n.Value); ok {
		return s
	}
	b.wrong(name, "a string")
	return def
}

// Secret returns the attribute's text in a wrapper that never prints it.
func (b *Body) Secret(name string) Secret { return Secret{b.String(name, "")} }

// Enum returns the attribute's text, which must be one of the allowed ones.
func (b *Body) Enum(name, def string, allowed ...string) string {
	s := b.String(name, def)
	if s == def || slices.Contains(allowed, s) {
		return s
	}
	hint := "expected one of " + strings.Join(allowed, ", ")
	if near := hcl.Suggest(s, allowed); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	b.Errorf(name, "%q is not allowed here; %s", s, hint)
	return def
}

// Strings returns the attribute's list of texts. One text alone is a list of one.
func (b *Body) Strings(name string, def []string) []string {
	n := b.attribute(name)
	if n == nil {
		return def
	}
	if s, ok := text(n.Value); ok {
		return []string{s}
	}
	if n.Value.Type() != TypeList {
		b.wrong(name, "a list of strings")
		return def
	}
	out := []string{}
	for i, v := range n.Value.List() {
		s, ok := text(v)
		if !ok {
			b.ElementErrorf(name, i, "expected a string, found %s", kindOf(v))
			continue
		}
		out = append(out, s)
	}
	return out
}

// StringMap returns the attribute's texts by name.
func (b *Body) StringMap(name string, def map[string]string) map[string]string {
	n := b.attribute(name)
	if n == nil {
		return def
	}
	if n.Value.Type() != TypeMap {
		b.wrong(name, "a map of strings")
		return def
	}
	out := map[string]string{}
	for k, v := range n.Value.Map() {
		s, ok := text(v)
		if !ok {
			b.Errorf(name, "%s: expected a string, found %s", k, kindOf(v))
			continue
		}
		out[k] = s
	}
	return out
}

// Bool returns the attribute's truth value.
func (b *Body) Bool(name string, def bool) bool {
	n := b.attribute(name)
	switch {
	case n == nil:
		return def
	case n.Value.Type() == TypeBool:
		return n.Value.Bool()
	case n.Value.Str() == "true" || n.Value.Str() == "false":
		return n.Value.Str() == "true"
	}
	b.wrong(name, "true or false")
	return def
}

// Int returns the attribute's integer.
func (b *Body) Int(name string, def int64) int64 {
	n := b.attribute(name)
	switch {
	case n == nil:
		return def
	case n.Value.Type() == TypeInt:
		return n.Value.Int()
	case n.Value.Type() == TypeFloat && float64(n.Value.Int()) == n.Value.Float():
		return n.Value.Int()
	}
	b.wrong(name, "a whole number")
	return def
}

// Float returns the attribute's number.
func (b *Body) Float(name string, def float64) float64 {
	n := b.attribute(name)
	switch {
	case n == nil:
		return def
	case n.Value.Type() == TypeInt || n.Value.Type() == TypeFloat:
		return n.Value.Float()
	}
	b.wrong(name, "a number")
	return def
}

// Duration returns the attribute's duration, for example "90s", "1h30m" or "30d".
func (b *Body) Duration(name string, def time.Duration) time.Duration {
	return parsed(b, name, def, hcl.ParseDuration)
}

// Size returns the attribute's number of bytes, for example "64MiB".
func (b *Body) Size(name string, def int64) int64 { return parsed(b, name, def, hcl.ParseSize) }

// Time returns the attribute's time in UTC: RFC 3339, or a date alone, which is
// its first moment in UTC.
func (b *Body) Time(name string, def time.Time) time.Time { return parsed(b, name, def, parseTime) }

// Value returns the attribute's value as it is; Null when it is absent.
func (b *Body) Value(name string) Value {
	if n := b.attribute(name); n != nil {
		return n.Value
	}
	return Null()
}

// Block returns the block of that name, and nil when there is none. A second one
// is reported.
func (b *Body) Block(name string) *Body {
	all := b.Blocks(name)
	if len(all) == 0 {
		return nil
	}
	for _, extra := range all[1:] {
		b.add(Diagnostic{Summary: "duplicate block", Detail: fmt.Sprintf("%q may stand here once", name), Subject: extra.node.Range})
	}
	return all[0]
}

// Blocks returns all blocks of that name, in the order of the file.
func (b *Body) Blocks(name string) []*Body {
	if b == nil {
		return nil
	}
	again := b.asked[key(name, true)]
	b.asked[key(name, true)] = true
	var out []*Body
	if again {
		for _, sub := range b.blocks {
			if sub.node.Name == name {
				out = append(out, sub)
			}
		}
		return out
	}
	for i := range b.node.Children {
		if n := &b.node.Children[i]; n.IsBlock && n.Name == name {
			out = append(out, &Body{node: n, asked: map[string]bool{}, problems: b.problems})
		}
	}
	b.blocks = append(b.blocks, out...)
	return out
}

// Expression returns the text of an attribute that depends on what only the plugin
// knows and where it is written, for example over record in an action; false when
// the attribute is absent or has a value, which Value returns.
func (b *Body) Expression(name string) (text string, at Range, ok bool) {
	n := b.find(name)
	if n == nil || n.Expression == "" {
		return "", Range{}, false
	}
	return n.Expression, n.Range, true
}

// Attributes returns the names of all attributes, in the order of the file, and notes
// that they are known.
func (b *Body) Attributes() []string {
	if b == nil {
		return nil
	}
	var names []string
	for _, n := range b.node.Children {
		if !n.IsBlock {
			b.asked[n.Name] = true
			names = append(names, n.Name)
		}
	}
	return names
}

// attribute finds an attribute that is not null and notes that it is known.
func (b *Body) attribute(name string) *Node {
	n := b.find(name)
	if n != nil && n.Expression != "" {
		b.add(Diagnostic{Summary: "invalid " + name, Detail: "it cannot depend on " + n.Expression + " here", Subject: n.Range})
		return nil
	}
	if n == nil || n.Value.IsNull() {
		return nil
	}
	return n
}

// find finds an attribute and notes that it is known.
func (b *Body) find(name string) *Node {
	if b == nil {
		return nil
	}
	b.asked[name] = true
	for i := range b.node.Children {
		if n := &b.node.Children[i]; !n.IsBlock && n.Name == name {
			return n
		}
	}
	return nil
}

func (b *Body) add(d Diagnostic) {
	if b != nil && !slices.Contains(*b.problems, d) {
		*b.problems = append(*b.problems, d)
	}
}

func (b *Body) wrong(name, want string) {
	b.Errorf(name, "expected %s, found %s", want, kindOf(b.Value(name)))
}

// parsed reads an attribute that is written as text with a parser of its own.
func parsed[T any](b *Body, name string, def T, parse func(string) (T, error)) T {
	n := b.attribute(name)
	if n == nil {
		return def
	}
	s, ok := text(n.Value)
	if !ok {
		b.wrong(name, "a string")
		return def
	}
	v, err := parse(s)
	if err == nil {
		return v
	}
	b.Errorf(name, "%s", err)
	return def
}

func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; expected something like \"2024-01-01T00:00:00Z\" or \"2024-01-01\"", s)
}

func text(v Value) (string, bool) {
	switch v.Type() {
	case TypeString:
		return v.Str(), true
	case TypeInt:
		return fmt.Sprint(v.Int()), true
	case TypeFloat:
		return fmt.Sprint(v.Float()), true
	case TypeBool:
		return fmt.Sprint(v.Bool()), true
	}
	return "", false
}

func kindOf(v Value) string {
	switch v.Type() {
	case 0:
		return "null"
	case TypeInt, TypeFloat:
		return "a number"
	default:
		return "a " + v.Type().String()
	}
}

// Secret is a text that is never printed.
type Secret struct{ text string }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// String returns "***", and "" of an empty secret.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return "***"
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the text from encoders and loggers.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
