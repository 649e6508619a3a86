package sdk

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"text/tabwriter"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
)

// Decode reads the whole config block into the struct that target points to, by its
// tags: names, defaults, bounds, allowed values and blocks, as the documentation of
// package hcl lists them. The struct is emptied first. What is wrong, missing or unknown
// is remembered with its place, as by Errorf, and returned, as by Err.
func (c *Config) Decode(target any) error {
	c.decoded = true
	reflect.ValueOf(target).Elem().SetZero()
	c.Add(hcl.DecodeBody(bodyOf(c.node), target, nil))
	return c.Err()
}

// Add remembers problems that package hcl has found.
func (c *Config) Add(diags hcl.Diagnostics) {
	for _, d := range diags {
		at := Range{}
		if d.Subject != nil {
			at = Range{File: d.Subject.Filename, Start: Pos(d.Subject.Start), End: Pos(d.Subject.End)}
		}
		c.add(Diagnostic{Warning: d.Severity == hcl2.DiagWarning, Summary: d.Summary, Detail: d.Detail, Subject: at})
	}
}

// bodyOf makes a body of a block, with its places.
func bodyOf(n *Node) *hclsyntax.Body {
	at := n.Range.HCL()
	b := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: at, EndRange: at}
	for i := range n.Children {
		c := &n.Children[i]
		at := c.Range.HCL()
		if _, again := b.Attributes[c.Name]; !c.IsBlock && again {
			continue
		}
		if !c.IsBlock {
			b.Attributes[c.Name] = &hclsyntax.Attribute{Name: c.Name, Expr: c.expression(), SrcRange: at, NameRange: at}
			continue
		}
		block := &hclsyntax.Block{Type: c.Name, Labels: c.Labels, TypeRange: at, Body: bodyOf(c)}
		for range c.Labels {
			block.LabelRanges = append(block.LabelRanges, at)
		}
		b.Blocks = append(b.Blocks, block)
	}
	return b
}

// expression is the value of an attribute, or what it will be made from.
func (n *Node) expression() hclsyntax.Expression {
	at := n.Range.HCL()
	if n.Expression != "" {
		if expr, diags := hcl.ParseExpression(n.Expression, at); !diags.HasErrors() {
			if e, ok := expr.(hclsyntax.Expression); ok {
				return e
			}
		}
	}
	if list := n.Value.List(); len(list) > 0 && len(list) == len(n.Elements) {
		out := &hclsyntax.TupleConsExpr{SrcRange: at, OpenRange: at}
		for i, v := range list {
			out.Exprs = append(out.Exprs, n.literal(v, n.Elements[i].HCL()))
		}
		return out
	}
	return n.literal(n.Value, at)
}

func (n *Node) literal(v Value, at hcl.Range) hclsyntax.Expression {
	value := v.cty()
	if n.Sensitive {
		value = hcl.Sensitive(value)
	}
	return &hclsyntax.LiteralValueExpr{Val: value, SrcRange: at}
}

func (v Value) cty() cty.Value {
	switch v.Type() {
	case TypeString:
		return cty.StringVal(v.Str())
	case TypeInt, TypeTime:
		return cty.NumberIntVal(v.Int())
	case TypeFloat:
		return cty.NumberFloatVal(v.Float())
	case TypeBool:
		return cty.BoolVal(v.Bool())
	case TypeList:
		out := make([]cty.Value, 0, len(v.List()))
		for _, e := range v.List() {
			out = append(out, e.cty())
		}
		return cty.TupleVal(out)
	case TypeMap:
		out := make(map[string]cty.Value, len(v.Map()))
		for key, e := range v.Map() {
			out[key] = e.cty()
		}
		return cty.ObjectVal(out)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// HCL is the range as package hcl has it.
func (r Range) HCL() hcl.Range {
	return hcl.Range{Filename: r.File, Start: hcl.Pos(r.Start), End: hcl.Pos(r.End)}
}

// printSettings lists the settings that the tags of a struct describe.
func printSettings(w io.Writer, target any) {
	if target == nil {
		return
	}
	fmt.Fprintln(w, "\nSettings, in config { … }:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range hcl.SettingsOf(target) {
		def := cmp.Or(s.Default, s.Unset)
		if s.Required {
			def = "required"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", s.Name, def, s.Doc)
	}
	_ = t.Flush()
}
