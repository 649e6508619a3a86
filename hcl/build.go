package hcl

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Item is an attribute or a block that a body is built of, elsewhere than where it is
// written.
type Item struct {
	// Name is the attribute's name or the block's type.
	Name string
	// Labels and Children of a block.
	Labels   []string
	Block    bool
	Children []Item
	// Value of an attribute. Elements are where those of a list are written.
	Value    cty.Value
	Elements []Range
	// Expression is the text of an attribute that has no value yet.
	Expression string
	// Sensitive says that the value came from env() or file().
	Sensitive bool
	// Range is the whole attribute, or the header of the block.
	Range Range
}

// BodyOf makes a body of items. The first of several attributes of a name counts.
func BodyOf(at Range, items []Item) Body { return bodyOf(at, items) }

func bodyOf(at Range, items []Item) *hclsyntax.Body {
	b := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: at, EndRange: at}
	for i := range items {
		x := &items[i]
		if _, again := b.Attributes[x.Name]; !x.Block && !again {
			b.Attributes[x.Name] = &hclsyntax.Attribute{Name: x.Name, Expr: x.itemExpression(), SrcRange: x.Range, NameRange: x.Range}
		}
		if x.Block {
			block := &hclsyntax.Block{Type: x.Name, Labels: x.Labels, TypeRange: x.Range, Body: bodyOf(x.Range, x.Children)}
			for range x.Labels {
				block.LabelRanges = append(block.LabelRanges, x.Range)
			}
			b.Blocks = append(b.Blocks, block)
		}
	}
	return b
}

// itemExpression is the value of an attribute, or what it will be made from.
func (x *Item) itemExpression() hclsyntax.Expression {
	if x.Expression != "" {
		expr, diags := ParseExpression(x.Expression, x.Range)
		if e, ok := expr.(hclsyntax.Expression); ok && !diags.HasErrors() {
			return e
		}
	}
	if n := len(x.Elements); n > 0 && x.Value.Type().IsTupleType() && x.Value.LengthInt() == n {
		out := &hclsyntax.TupleConsExpr{SrcRange: x.Range, OpenRange: x.Range}
		for i, v := range x.Value.AsValueSlice() {
			out.Exprs = append(out.Exprs, x.literalExpression(v, x.Elements[i]))
		}
		return out
	}
	return x.literalExpression(x.Value, x.Range)
}

func (x *Item) literalExpression(v cty.Value, at Range) hclsyntax.Expression {
	if x.Sensitive {
		v = v.Mark(sensitive{})
	}
	return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: at}
}
