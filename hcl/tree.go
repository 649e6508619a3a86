package hcl

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Kind is the kind of a Value.
type Kind int

// The kinds of values. Their numbers are stable.
const (
	KindNull Kind = iota
	KindString
	KindInt
	KindFloat
	KindBool
	KindList
	KindMap
)

// String names the kind in lower case.
func (k Kind) String() string {
	names := []string{"null", "string", "int", "float", "bool", "list", "map"}
	if k < 0 || int(k) >= len(names) {
		return "kind " + strconv.Itoa(int(k))
	}
	return names[k]
}

// Tree is an evaluated body: what a plugin gets of its config block.
type Tree struct {
	// Nodes are the attributes and blocks in the order of the source.
	Nodes []Node
	// Range is the body with its braces.
	Range Range
}

// Node is an attribute or a block.
type Node struct {
	// Name is the attribute's name or the block's type.
	Name string
	// Labels of a block; they may repeat, as whole blocks may.
	Labels []string
	// Block tells a block, which has Children, from an attribute, which has a Value.
	Block bool
	// Value of an attribute.
	Value Value
	// Expression is the text of an attribute that EvaluateLater did not evaluate; its
	// place is Value.Range. Empty: it has a value.
	Expression string
	// Children of a block, in the order of the source.
	Children []Node
	// Range is the whole attribute, or the header of the block.
	Range Range
}

// Value is a plain value with the place it is written at.
type Value struct {
	// Kind says which of the fields below holds the value.
	Kind Kind
	// Str is valid UTF-8.
	Str string
	// Int holds whole numbers within 64 bits, exactly.
	Int int64
	// Float holds all other numbers; it is finite.
	Float float64
	// Bool is the truth value.
	Bool bool
	// List holds the elements of lists, tuples and sets.
	List []Value
	// Map holds the elements of maps and objects in the order of their keys.
	Map []Entry
	// Sensitive is set when the value came, even in part, from file() or env().
	Sensitive bool
	// Range is where the value is written; an element that is not written out
	// has the range of the expression that made it.
	Range Range
}

// Entry is one element of a map.
type Entry struct {
	// Key is unique within its map.
	Key string
	// Value is the element.
	Value Value
}

// Evaluate reads a body without a schema: every attribute is evaluated, every
// block is kept, in the order of the source. All problems are reported; the
// tree then lacks what could not be evaluated.
func Evaluate(body Body, ctx *EvalContext) (Tree, Diagnostics) {
	return EvaluateLater(body, ctx, nil)
}

type evaluator struct {
	ctx     *EvalContext
	diags   Diagnostics
	later   []string // variables that have no value yet
	sources Sources  // where later is set
}

func (e *evaluator) bodyNodes(b *hclsyntax.Body) []Node {
	var nodes []Node
	for _, a := range inOrder(b.Attributes) {
		nodes = append(nodes, e.evaluateAttribute(a))
	}
	for _, x := range b.Blocks {
		nodes = append(nodes, Node{Name: x.Type, Labels: x.Labels, Block: true, Children: e.bodyNodes(x.Body), Range: x.DefRange()})
	}
	slices.SortStableFunc(nodes, func(a, b Node) int { return inSource(a.Range, b.Range) })
	return nodes
}

// evaluateValue evaluates an expression; lists and maps that are written out give each
// element its own range.
func (e *evaluator) evaluateValue(expr Expression) Value {
	switch x := expr.(type) {
	case *hclsyntax.TupleConsExpr:
		out := Value{Kind: KindList, Range: x.Range()}
		for _, elem := range x.Exprs {
			out.List = append(out.List, e.evaluateValue(elem))
		}
		return out.sealValue()
	case *hclsyntax.ObjectConsExpr:
		return e.evaluateObject(x)
	}
	v, diags := evaluateExpression(expr, e.ctx)
	e.diags.Extend(diags)
	if diags.HasErrors() {
		return Value{Range: expr.Range()}
	}
	return e.plainValue(v, expr.Range())
}

func (e *evaluator) evaluateObject(x *hclsyntax.ObjectConsExpr) Value {
	out := Value{Kind: KindMap, Range: x.Range()}
	first := map[string]Range{}
	for _, item := range x.Items {
		key, diags := objectKey(item.KeyExpr, e.ctx, first)
		e.diags.Extend(diags)
		elem := e.evaluateValue(item.ValueExpr)
		if !diags.HasErrors() {
			out.Map = append(out.Map, Entry{key, elem})
		}
	}
	return out.sealValue()
}

// sealValue orders a map and passes sensitivity upwards.
func (v Value) sealValue() Value {
	slices.SortFunc(v.Map, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	for _, x := range v.List {
		v.Sensitive = v.Sensitive || x.Sensitive
	}
	for _, x := range v.Map {
		v.Sensitive = v.Sensitive || x.Value.Sensitive
	}
	return v
}

func (e *evaluator) plainValue(marked cty.Value, r Range) Value {
	v, marks := marked.Unmark()
	out := Value{Range: r}
	_, out.Sensitive = marks[sensitive{}]
	switch t := v.Type(); {
	case !v.IsKnown():
		e.diags.Add(Errorf(r, "invalid value", "the value is not known here"))
	case v.IsNull():
	case t == cty.String:
		out.Kind, out.Str = KindString, v.AsString()
	case t == cty.Bool:
		out.Kind, out.Bool = KindBool, v.True()
	case t == cty.Number:
		e.setNumber(&out, v.AsBigFloat())
	case t.IsMapType() || t.IsObjectType():
		out.Kind = KindMap
		for it := v.ElementIterator(); it.Next(); {
			k, x := it.Element()
			k, _ = k.Unmark()
			out.Map = append(out.Map, Entry{k.AsString(), e.plainValue(x.WithMarks(marks), r)})
		}
	case t.IsListType() || t.IsSetType() || t.IsTupleType():
		out.Kind = KindList
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			out.List = append(out.List, e.plainValue(x.WithMarks(marks), r))
		}
	default:
		e.diags.Add(Errorf(r, "invalid value", "%s cannot be used here", friendlyName(t)))
	}
	return out.sealValue()
}

func (e *evaluator) setNumber(out *Value, f *big.Float) {
	if n, accuracy := f.Int64(); accuracy == big.Exact {
		out.Kind, out.Int = KindInt, n
		return
	}
	x, _ := f.Float64()
	if x-x != 0 {
		e.diags.Add(Errorf(out.Range, "invalid value", "the number is too large"))
		return
	}
	out.Kind, out.Float = KindFloat, x
}

// Interface is the value as nil, string, int64, float64, bool, []any or
// map[string]any, secrets included.
func (v Value) Interface() any {
	switch v.Kind {
	case KindString:
		return v.Str
	case KindInt:
		return v.Int
	case KindFloat:
		return v.Float
	case KindBool:
		return v.Bool
	case KindList:
		out := make([]any, len(v.List))
		for i, x := range v.List {
			out[i] = x.Interface()
		}
		return out
	case KindMap:
		out := make(map[string]any, len(v.Map))
		for _, x := range v.Map {
			out[x.Key] = x.Value.Interface()
		}
		return out
	}
	return nil
}

// String shows the value on one line, what is sensitive as "***".
func (v Value) String() string {
	switch {
	case v.Kind == KindList:
		parts := make([]string, len(v.List))
		for i, x := range v.List {
			parts[i] = x.String()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case v.Kind == KindMap:
		parts := make([]string, len(v.Map))
		for i, x := range v.Map {
			parts[i] = strconv.Quote(x.Key) + " = " + x.Value.String()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case v.Sensitive:
		return masked
	case v.Kind == KindNull:
		return "null"
	case v.Kind == KindString:
		return strconv.Quote(v.Str)
	}
	return fmt.Sprint(v.Interface())
}

// GoString is String, so that no verb of fmt shows a secret.
func (v Value) GoString() string { return v.String() }

// MarshalText is String, so that no encoding shows a secret.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
