package hcl

import (
	"fmt"
	"slices"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// evaluateExpression gives the value of an expression. A panic of the evaluator becomes
// a diagnostic, and no diagnostic shows what file() or env() returned.
func evaluateExpression(expr Expression, ctx *EvalContext) (cty.Value, Diagnostics) {
	v, diags := evaluateGuarded(expr, ctx)
	for i, d := range diags {
		diags[i] = shortenDiagnostic(d, ctx)
	}
	return v, HideSecrets(diags, expr, ctx)
}

func evaluateGuarded(expr Expression, ctx *EvalContext) (v cty.Value, diags Diagnostics) {
	defer func() {
		if p := recover(); p != nil {
			v, diags = cty.DynamicVal, Diagnostics{Errorf(expr.Range(), "cannot evaluate", "the evaluator gave up: %v", p)}
		}
	}()
	v, more := expr.Value(ctx)
	return v, Diagnostics(more)
}

// shortenDiagnostic words the failure of a function shortly.
func shortenDiagnostic(d *Diagnostic, ctx *EvalContext) *Diagnostic {
	if unknown, ok := hcl2.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d); ok && ctx != nil {
		out := *d
		out.Summary = fmt.Sprintf("unknown function %s()", unknown.CalledFunctionName())
		out.Detail = DidYouMean(unknown.CalledFunctionName(), sortedNames(ctx.Functions))
		return &out
	}
	call, ok := hcl2.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	if !ok || call.FunctionCallError() == nil {
		return d
	}
	out := *d
	out.Summary = call.CalledFunctionName() + "() failed"
	out.Detail = call.FunctionCallError().Error()
	return &out
}

// unseen is the detail of a problem that could show a part of a secret.
const unseen = "the value comes from file() or env(), so it is not shown; check what they return"

// HideSecrets takes the details out of problems with the value of an expression that
// calls env() or file(), or that has a value from them in a variable. What is made of a
// secret cannot be told from other text, so no detail stays that can depend on one: only
// those do whose part of the expression neither calls env() or file() nor uses a variable.
func HideSecrets(diags Diagnostics, expr Expression, ctx *EvalContext) Diagnostics {
	if len(diags) == 0 || !mayHoldSecret(expr, ctx) {
		return diags
	}
	out := make(Diagnostics, len(diags))
	for i, d := range diags {
		copied := *d
		if !isApartFromSecret(d) {
			copied.Detail = unseen
			copied.Expression, copied.EvalContext = nil, nil // of which writers show variables
		}
		out[i] = &copied
	}
	return out
}

// mayHoldSecret reports whether env() or file() may have a share in an expression's value.
func mayHoldSecret(expr Expression, ctx *EvalContext) bool {
	if node, ok := expr.(hclsyntax.Node); ok && touchesSecret(node) {
		return true
	}
	for _, v := range expr.Variables() {
		for at := ctx; at != nil; at = at.Parent() {
			if value, there := at.Variables[v.RootName()]; there {
				if isMarked(value) {
					return true
				}
				break
			}
		}
	}
	return false
}

// isApartFromSecret reports whether a problem is with a part of the expression that has no share in
// a secret. That of env() or file() is with the arguments: the name of a file that cannot
// be read is shown.
func isApartFromSecret(d *Diagnostic) bool {
	if d.Expression == nil {
		return false
	}
	parts := []hcl2.Expression{d.Expression}
	called, ok := hcl2.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	call, is := d.Expression.(*hclsyntax.FunctionCallExpr)
	if ok && is && called.FunctionCallError() != nil && readsOutside(call.Name) && called.CalledFunctionName() == call.Name {
		parts = parts[:0]
		for _, arg := range call.Args {
			parts = append(parts, arg)
		}
	}
	return !slices.ContainsFunc(parts, func(part hcl2.Expression) bool {
		node, ok := part.(hclsyntax.Node)
		return !ok || touchesSecret(node) || len(part.Variables()) > 0
	})
}

// touchesSecret reports whether an expression calls env() or file(), or holds a value that they
// returned to another process.
func touchesSecret(node hclsyntax.Node) bool {
	found := false
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl2.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.FunctionCallExpr:
			found = found || readsOutside(n.Name)
		case *hclsyntax.LiteralValueExpr:
			found = found || isMarked(n.Val)
		}
		return nil
	})
	return found
}

// isMarked reports whether a value, or one in it, is from env() or file().
func isMarked(v cty.Value) bool {
	_, marks := v.UnmarkDeep()
	_, ok := marks[sensitive{}]
	return ok
}

// readsOutside reports whether a function reads what is not in the configuration.
func readsOutside(name string) bool { return name == "env" || name == "file" }

// outsideCalls lists the calls of env() and file(), outer ones before those in
// their arguments.
func outsideCalls(node hclsyntax.Node) []*hclsyntax.FunctionCallExpr {
	var calls []*hclsyntax.FunctionCallExpr
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl2.Diagnostics {
		if c, ok := n.(*hclsyntax.FunctionCallExpr); ok && readsOutside(c.Name) {
			calls = append(calls, c)
		}
		return nil
	})
	return calls
}
