package sdk

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"text/tabwriter"

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
	c.Add(hcl.DecodeBody(hcl.BodyOf(c.node.Range.HCL(), itemsOf(c.node.Children)), target, nil))
	return c.Err()
}

// Add remembers problems that package hcl has found.
func (c *Config) Add(diags hcl.Diagnostics) {
	for _, d := range diags {
		at := Range{}
		if d.Subject != nil {
			at = Range{File: d.Subject.Filename, Start: Pos(d.Subject.Start), End: Pos(d.Subject.End)}
		}
		isError := hcl.Diagnostics{d}.HasErrors()
		c.addDiagnostic(Diagnostic{Warning: !isError, Summary: d.Summary, Detail: d.Detail, Subject: at, decoded: isError})
	}
}

func itemsOf(nodes []Node) []hcl.Item {
	out := make([]hcl.Item, len(nodes))
	for i, n := range nodes {
		out[i] = hcl.Item{
			Name: n.Name, Labels: n.Labels, Block: n.IsBlock, Value: n.Value.ctyValue(), Expression: n.Expression, Sensitive: n.Sensitive,
			Range: n.Range.HCL(), Children: itemsOf(n.Children),
		}
		for _, at := range n.Elements {
			out[i].Elements = append(out[i].Elements, at.HCL())
		}
	}
	return out
}

func (v Value) ctyValue() cty.Value {
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
			out = append(out, e.ctyValue())
		}
		return cty.TupleVal(out)
	case TypeMap:
		out := make(map[string]cty.Value, len(v.Map()))
		for key, e := range v.Map() {
			out[key] = e.ctyValue()
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
		fmt.Fprintf(t, "  %s\t%s\t%s\n", s.Name, def, s.Meaning(func(v string) string { return v }))
	}
	_ = t.Flush()
}
