package hcl

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// Object is a variable of a scope: its attributes and their types. The type of
// an attribute whose type is not known before it is there is
// cty.DynamicPseudoType.
type Object map[string]cty.Type

// Scope is what expressions that are evaluated later may use: variables,
// functions, and env() and file() with constant arguments, whose results are
// read when an expression is checked and stay as they are. They are not
// sensitive there.
type Scope struct {
	objects   map[string]Object
	functions map[string]function.Function
	constants *constants
}

// NewScope makes a scope; relative names in file() count from dir. The scope
// keeps the map, which must not change any more.
func NewScope(dir string, objects map[string]Object) *Scope {
	s := &Scope{objects: objects, functions: ExpressionFunctions(), constants: &constants{dir: dir, known: map[string]constant{}}}
	for _, name := range []string{"env", "file"} {
		s.functions[name] = textFunction(cty.String, func(args []string) (cty.Value, error) {
			text, err := s.constants.getConstant(name, args)
			return cty.StringVal(text), err
		})
	}
	return s
}

// Functions are the functions that checked expressions are evaluated with. They
// may be called concurrently. The map must not be changed.
func (s *Scope) Functions() map[string]function.Function { return s.functions }

// Check reports what is wrong with an expression before it is ever evaluated:
// variables and attributes that are not there, with a suggestion; functions,
// operators and results of the wrong type; env() and file() that fail or depend
// on a variable. want is the type that the result is converted to;
// cty.DynamicPseudoType allows any. Check every expression of a scope before
// the first is evaluated.
func (s *Scope) Check(expr Expression, want cty.Type) Diagnostics {
	diags := s.checkRefs(expr)
	diags.Extend(s.readConstants(expr))
	if diags.HasErrors() {
		return diags
	}
	v, more := evaluateExpression(expr, &EvalContext{Variables: s.unknownVariables(), Functions: s.functions})
	diags.Extend(more)
	if more.HasErrors() || want == cty.DynamicPseudoType {
		return diags
	}
	v, _ = v.UnmarkDeep()
	if _, err := convert.Convert(v, want); err != nil {
		problem := fmt.Sprintf("expected %s, not %s", friendlyName(want), friendlyName(v.Type()))
		if friendlyName(want) == friendlyName(v.Type()) { // what is in it is wrong
			problem = convert.MismatchMessage(v.Type(), want)
		}
		diags.Add(Errorf(expr.Range(), "invalid value", "%s", problem))
	}
	return diags
}

// checkRefs reports references to what is not in the scope.
func (s *Scope) checkRefs(expr Expression) Diagnostics {
	var diags Diagnostics
	for _, r := range Refs(expr) {
		object, ok := s.objects[r.Root]
		switch {
		case !ok:
			diags.Add(Errorf(r.Range, fmt.Sprintf("unknown variable %q", r.Root), "%s", DidYouMean(r.Root, sortedNames(s.objects))))
		case len(r.Path) > 0 && object[r.Path[0]] == cty.NilType:
			diags.Add(Errorf(r.Range, fmt.Sprintf("unknown attribute %q", r.Root+"."+r.Path[0]), "%s", DidYouMean(r.Path[0], sortedNames(object))))
		}
	}
	return diags
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// unknownVariables are the variables with values that have a type only.
func (s *Scope) unknownVariables() map[string]cty.Value {
	out := map[string]cty.Value{}
	for name, object := range s.objects {
		attrs := map[string]cty.Value{}
		for a, t := range object {
			attrs[a] = cty.UnknownVal(t)
		}
		out[name] = cty.ObjectVal(attrs)
	}
	return out
}

// readConstants calls each env() and file() of an expression, the inner ones
// first, so that their results are there when it is evaluated.
func (s *Scope) readConstants(expr Expression) Diagnostics {
	node, ok := expr.(hclsyntax.Node)
	if !ok {
		return nil
	}
	var diags Diagnostics
	for _, call := range slices.Backward(outsideCalls(node)) {
		diags.Extend(s.readConstant(call))
	}
	return diags
}

func (s *Scope) readConstant(call *hclsyntax.FunctionCallExpr) Diagnostics {
	args := make([]string, 0, len(call.Args))
	for _, a := range call.Args {
		if len(a.Variables()) > 0 {
			return Diagnostics{Errorf(a.Range(), "not a constant", "%s() is read when the configuration is loaded, so its arguments cannot depend on a variable", call.Name)}
		}
		v, diags := evaluateExpression(a, &EvalContext{Functions: s.functions})
		if diags.HasErrors() || v.IsNull() || !v.IsKnown() {
			return nil
		}
		text, err := stringOf(v)
		if err != nil {
			return nil //nolint:nilerr // the call itself reports it when it is evaluated
		}
		args = append(args, text)
	}
	s.constants.readConstant(call.Name, args)
	return nil
}

// constants are the results of env() and file(), errors included, as they were
// when they were first read.
type constants struct {
	dir   string
	mu    sync.RWMutex
	known map[string]constant
}

type constant struct {
	value string
	err   error
}

func constantKey(name string, args []string) string {
	return name + "\x00" + strings.Join(args, "\x00")
}

func (c *constants) readConstant(name string, args []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := constantKey(name, args)
	if _, ok := c.known[key]; ok {
		return
	}
	var r constant
	if name == "env" {
		r.value, r.err = readEnv(args)
	} else {
		r.value, r.err = readValue(c.dir, args)
	}
	c.known[key] = r
}

func (c *constants) getConstant(name string, args []string) (string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.known[constantKey(name, args)]
	if !ok {
		return "", fmt.Errorf("%s() was not read when the configuration was loaded", name)
	}
	return r.value, r.err
}
