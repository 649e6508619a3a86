package hcl

import (
	"bytes"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// EvaluateLater is Evaluate of a body in which an attribute may name one of the
// variables, which have no value yet: its Node has the expression's text, taken from
// sources, and no value. Who has a value for the variable reads the text with
// ParseExpression.
func EvaluateLater(body Body, ctx *EvalContext, sources Sources, variables ...string) (Tree, Diagnostics) {
	e := evaluator{ctx: ctx, later: variables, sources: sources}
	nodes := e.bodyNodes(body)
	return Tree{Nodes: nodes, Range: body.SrcRange}, e.diags
}

// evaluateAttribute evaluates an attribute, or keeps its text.
func (e *evaluator) evaluateAttribute(a *hclsyntax.Attribute) Node {
	n := Node{Name: a.Name, Range: a.SrcRange}
	if !slices.ContainsFunc(Refs(a.Expr), func(r Ref) bool { return slices.Contains(e.later, r.Root) }) {
		n.Value = e.evaluateValue(a.Expr)
		return n
	}
	r := a.Expr.Range()
	src := e.sources[r.Filename]
	if !r.CanSliceBytes(src) {
		e.diags.Add(Errorf(r, "cannot keep the expression", "its text is not known"))
		return n
	}
	n.Value.Range, n.Expression = r, string(r.SliceBytes(src))
	return n
}

// ParseExpression reads an expression that was written at that place.
func ParseExpression(text string, at Range) (expr Expression, diags Diagnostics) {
	src := []byte(text)
	if bytes.HasPrefix(src, []byte("<<")) {
		src = append(src, '\n') // which ends a heredoc
	}
	defer func() {
		if p := recover(); p != nil {
			expr, diags = nil, Diagnostics{Errorf(at, "cannot parse", "the parser gave up: %v", p)}
		}
	}()
	e, more := hclsyntax.ParseExpression(src, at.Filename, at.Start)
	if diags = Diagnostics(firstOfUnclosed(more)); diags.HasErrors() {
		return nil, diags
	}
	if e == nil {
		return nil, Diagnostics{Errorf(at, "cannot parse", "%q is no expression", text)}
	}
	return e, diags
}
