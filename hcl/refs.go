package hcl

import (
	"reflect"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Ref is one use of a variable in an expression.
type Ref struct {
	// Root is the variable, such as "job" in job.ad["Cores"].
	Root string
	// Path are the names that follow, such as "ad", "Cores"; it ends before the
	// first step that is no name. Empty means that the whole variable is used.
	Path []string
	// Range is where it is written.
	Range Range
}

// String is the reference with dots: job.ad.Cores.
func (r Ref) String() string { return strings.Join(append([]string{r.Root}, r.Path...), ".") }

// Refs lists the variables that an expression uses, in the order of the
// source; one that is used twice is listed twice. Variables that the expression
// itself declares, with for, are left out.
func Refs(expr Expression) []Ref {
	var refs []Ref
	for _, t := range expr.Variables() {
		if t.IsRelative() {
			continue
		}
		path, _ := stepNames(t[1:])
		refs = append(refs, Ref{Root: t.RootName(), Path: path, Range: t.SourceRange()})
	}
	return refs
}

// stepNames gives the names of a traversal, and whether all its steps are names.
func stepNames(t hcl2.Traversal) ([]string, bool) {
	var path []string
	for _, step := range t {
		switch s := step.(type) {
		case hcl2.TraverseAttr:
			path = append(path, s.Name)
		case hcl2.TraverseIndex:
			if s.Key.Type() != cty.String || s.Key.IsNull() {
				return path, false
			}
			path = append(path, s.Key.AsString())
		default:
			return path, false
		}
	}
	return path, true
}

// SameExpression reports whether two expressions are written alike, whatever their places,
// white space and comments; nil is like nil alone.
func SameExpression(a, b Expression) bool {
	return sameSyntax(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem())
}

// sameSyntax compares parts of expressions.
func sameSyntax(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Type() {
	case reflect.TypeFor[hcl2.Range](), reflect.TypeFor[hclsyntax.AnonSymbolExpr](): // a place; the element of a splat
		return true
	case reflect.TypeFor[*hclsyntax.Operation](): // of which there is one for each operator
		return a.Pointer() == b.Pointer()
	case reflect.TypeFor[cty.Value]():
		return a.CanInterface() && b.CanInterface() && a.Interface().(cty.Value).RawEquals(b.Interface().(cty.Value)) //nolint:forcetypeassert // by its type
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return sameSyntax(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameSyntax(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if !sameSyntax(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return a.Len() == b.Len()
	default:
		return a.Comparable() && b.Comparable() && a.Equal(b)
	}
}

// Literal gives the value of an expression without variables and functions.
func Literal(expr Expression) (cty.Value, bool) {
	if len(expr.Variables()) > 0 {
		return cty.NilVal, false
	}
	v, diags := evaluateExpression(expr, nil)
	return v, !diags.HasErrors()
}

// Attribute gives the path of an expression that only names an attribute, its
// root first: job.User is "job", "User"; so is "${job.User}". Evaluating it is
// a lookup; note that HCL fails on a path through null.
func Attribute(expr Expression) ([]string, bool) {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return Attribute(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return Attribute(e.Wrapped)
	case *hclsyntax.ScopeTraversalExpr:
		path, ok := stepNames(e.Traversal[1:])
		return append([]string{e.Traversal.RootName()}, path...), ok
	}
	return nil, false
}

// Part is a piece of a template: a text, or the path of an attribute.
type Part struct {
	// Text is literal when Path is nil.
	Text string
	// Path is an attribute as Attribute gives it; its value goes in here as
	// tostring() writes it, and null is an error.
	Path []string
}

// Template gives the pieces of a string such as "${source.label}-${job.id}"
// that holds only text and attributes.
func Template(expr Expression) ([]Part, bool) {
	t, ok := expr.(*hclsyntax.TemplateExpr)
	if !ok {
		return nil, false
	}
	parts := make([]Part, 0, len(t.Parts))
	for _, p := range t.Parts {
		if path, ok := Attribute(p); ok {
			parts = append(parts, Part{Path: path})
			continue
		}
		l, ok := p.(*hclsyntax.LiteralValueExpr)
		if !ok || l.Val.Type() != cty.String || l.Val.IsNull() {
			return nil, false
		}
		parts = append(parts, Part{Text: l.Val.AsString()})
	}
	return parts, true
}
