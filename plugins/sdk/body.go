package sdk

import (
	"fmt"
	"slices"
)

// Body is what stands in a block of the configuration, for what is checked behind
// [Config.Decode]. A nil *Body, which an absent block is, has nothing.
type Body struct {
	node     *Node
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
		if b != nil && b.findAttribute(name) == nil {
			b.addDiagnostic(Diagnostic{Summary: "missing attribute", Detail: fmt.Sprintf("%q must be set", name), Subject: b.node.Range})
		}
	}
}

// Has reports whether the attribute is there and not null.
func (b *Body) Has(name string) bool { return b.findAttribute(name) != nil }

// RangeOf returns where the attribute is written, and the block's range when it
// is not.
func (b *Body) RangeOf(name string) Range {
	if n := b.findAttribute(name); n != nil {
		return n.Range
	}
	return b.Range()
}

// Errorf reports a problem with the attribute's value, at its place. The detail is left
// out where the value comes from file() or env(), since it may quote it. What Decode has
// said of the attribute is enough.
func (b *Body) Errorf(name, format string, args ...any) {
	if n := b.findNode(name); n != nil && slices.ContainsFunc(*b.problems, func(d Diagnostic) bool { return d.decoded && d.Subject.isWithin(n.Range) }) {
		return
	}
	b.addDiagnostic(Diagnostic{Summary: "invalid " + name, Detail: b.wordProblem(name, format, args), Subject: b.RangeOf(name)})
}

// wordProblem words a problem with an attribute without showing a secret.
func (b *Body) wordProblem(name, format string, args []any) string {
	if n := b.findNode(name); n != nil && n.Sensitive {
		return "the value comes from file() or env(), so it is not shown; check what they return"
	}
	return fmt.Sprintf(format, args...)
}

// ElementErrorf reports a problem with the i-th element of a list.
func (b *Body) ElementErrorf(name string, i int, format string, args ...any) {
	at := b.RangeOf(name)
	if n := b.findAttribute(name); n != nil && i < len(n.Elements) {
		at = n.Elements[i]
	}
	b.addDiagnostic(Diagnostic{Summary: "invalid " + name, Detail: b.wordProblem(name, format, args), Subject: at})
}

// Warnf reports something with the attribute's value that is not wrong enough to
// refuse it.
func (b *Body) Warnf(name, format string, args ...any) {
	b.addDiagnostic(Diagnostic{Warning: true, Summary: name, Detail: b.wordProblem(name, format, args), Subject: b.RangeOf(name)})
}

// Value returns the attribute's value as it is; Null when it is absent.
func (b *Body) Value(name string) Value {
	if n := b.findAttribute(name); n != nil {
		return n.Value
	}
	return Null()
}

// Block returns the first block of that name, and nil when there is none.
func (b *Body) Block(name string) *Body {
	if all := b.Blocks(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Blocks returns all blocks of that name, in the order of the file.
func (b *Body) Blocks(name string) (out []*Body) {
	if b == nil {
		return nil
	}
	for i := range b.node.Children {
		if n := &b.node.Children[i]; n.IsBlock && n.Name == name {
			out = append(out, &Body{node: n, problems: b.problems})
		}
	}
	return out
}

// Expression returns the text of an attribute that depends on what only the plugin
// knows and where it is written, for example over record in an action; false when
// the attribute is absent or has a value, which Value returns.
func (b *Body) Expression(name string) (text string, at Range, ok bool) {
	n := b.findNode(name)
	if n == nil || n.Expression == "" {
		return "", Range{}, false
	}
	return n.Expression, n.Range, true
}

// Attributes returns the names of all attributes, in the order of the file.
func (b *Body) Attributes() []string {
	if b == nil {
		return nil
	}
	var names []string
	for _, n := range b.node.Children {
		if !n.IsBlock {
			names = append(names, n.Name)
		}
	}
	return names
}

// findAttribute finds an attribute that is not null.
func (b *Body) findAttribute(name string) *Node {
	if n := b.findNode(name); n != nil && (n.Expression != "" || !n.Value.IsNull()) {
		return n
	}
	return nil
}

// findNode finds an attribute.
func (b *Body) findNode(name string) *Node {
	if b == nil {
		return nil
	}
	for i := range b.node.Children {
		if n := &b.node.Children[i]; !n.IsBlock && n.Name == name {
			return n
		}
	}
	return nil
}

func (b *Body) addDiagnostic(d Diagnostic) {
	if b != nil && !slices.Contains(*b.problems, d) {
		*b.problems = append(*b.problems, d)
	}
}
