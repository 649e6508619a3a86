package hcl

import (
	"strconv"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// evaluate gives the value of an expression. A panic of the evaluator becomes
// a diagnostic, and no diagnostic shows what file() or env() returned.
func evaluate(expr Expression, ctx *EvalContext) (cty.Value, Diagnostics) {
	v, diags := guarded(expr, ctx)
	for i, d := range diags {
		diags[i] = plainer(d)
	}
	return v, hideSecrets(diags, expr, ctx)
}

func guarded(expr Expression, ctx *EvalContext) (v cty.Value, diags Diagnostics) {
	defer func() {
		if p := recover(); p != nil {
			v, diags = cty.DynamicVal, Diagnostics{Errorf(expr.Range(), "cannot evaluate", "the evaluator gave up: %v", p)}
		}
	}()
	v, more := expr.Value(ctx)
	return v, Diagnostics(more)
}

// plainer words the failure of a function shortly.
func plainer(d *Diagnostic) *Diagnostic {
	call, ok := hcl2.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	if !ok || call.FunctionCallError() == nil {
		return d
	}
	out := *d
	out.Summary = call.CalledFunctionName() + "() failed"
	out.Detail = call.FunctionCallError().Error()
	return &out
}

// hideSecrets replaces what env() and file() return in the details of problems
// with an expression that calls them.
func hideSecrets(diags Diagnostics, expr Expression, ctx *EvalContext) Diagnostics {
	node, ok := expr.(hclsyntax.Node)
	if len(diags) == 0 || !ok {
		return diags
	}
	for _, call := range outsideCalls(node) {
		v, failed := guarded(call, ctx)
		if failed.HasErrors() || !v.HasMark(sensitive{}) {
			continue
		}
		if text, err := stringOf(v); err == nil && text != "" {
			diags = replaceIn(diags, text)
		}
	}
	return diags
}

func replaceIn(diags Diagnostics, secret string) Diagnostics {
	quoted := strconv.Quote(secret)
	short := strings.TrimSuffix(clip(secret), "...")
	hide := strings.NewReplacer(secret, masked, quoted[1:len(quoted)-1], masked, short, masked)
	out := make(Diagnostics, len(diags))
	for i, d := range diags {
		copied := *d
		copied.Detail = hide.Replace(d.Detail)
		out[i] = &copied
	}
	return out
}

// outsideCalls lists the calls of env() and file(), outer ones before those in
// their arguments.
func outsideCalls(node hclsyntax.Node) []*hclsyntax.FunctionCallExpr {
	var calls []*hclsyntax.FunctionCallExpr
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl2.Diagnostics {
		if c, ok := n.(*hclsyntax.FunctionCallExpr); ok && (c.Name == "env" || c.Name == "file") {
			calls = append(calls, c)
		}
		return nil
	})
	return calls
}
