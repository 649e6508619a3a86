package hcl

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

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

// unseen is the detail of a problem that would show a part of a secret.
const unseen = "the reason is not shown, since it holds a part of what file() or env() returned"

// hideSecrets replaces what env() and file() return, and what functions make of it, in
// the details of problems with an expression that calls them. A detail that still has a
// part of it, such as a line of a file, is left out.
func hideSecrets(diags Diagnostics, expr Expression, ctx *EvalContext) Diagnostics {
	node, ok := expr.(hclsyntax.Node)
	if len(diags) == 0 || !ok {
		return diags
	}
	secrets := secretsOf(node, ctx)
	for _, text := range secrets {
		diags = replaceIn(diags, text)
	}
	out := make(Diagnostics, len(diags))
	for i, d := range diags {
		copied := *d
		if slices.ContainsFunc(secrets, func(text string) bool { return shares(d.Detail, text) }) {
			copied.Detail = unseen
		}
		out[i] = &copied
	}
	return out
}

// secretsOf are the texts in the values of all parts of an expression that env() or
// file() had a share in, the longest first.
func secretsOf(node hclsyntax.Node, ctx *EvalContext) []string {
	var texts []string
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl2.Diagnostics {
		part, ok := n.(hclsyntax.Expression)
		if !ok {
			return nil
		}
		v, failed := guarded(part, ctx)
		if failed.HasErrors() || !v.IsWhollyKnown() || !marked(v) {
			return nil
		}
		plain, _ := v.UnmarkDeep()
		_ = cty.Walk(plain, func(_ cty.Path, leaf cty.Value) (bool, error) {
			if leaf.Type() == cty.String && !leaf.IsNull() && leaf.AsString() != "" {
				texts = append(texts, leaf.AsString())
			}
			return true, nil
		})
		return nil
	})
	slices.SortStableFunc(texts, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(texts)
}

// marked reports whether a value, or one in it, is from env() or file().
func marked(v cty.Value) bool {
	_, marks := v.UnmarkDeep()
	_, ok := marks[sensitive{}]
	return ok
}

// shares reports whether a detail has a part of a secret: four bytes in a row, in
// capitals or not, or a shorter word in quotes.
func shares(detail, secret string) bool {
	const part = 4
	detail, secret = strings.ToLower(detail), strings.ToLower(secret)
	for i := 0; i+part <= len(detail); i++ {
		if piece := detail[i : i+part]; strings.TrimSpace(piece) == piece && strings.Contains(secret, piece) {
			return true
		}
	}
	for word := range strings.FieldsFuncSeq(secret, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		if len(word) < part && strings.Contains(detail, `"`+word+`"`) {
			return true
		}
	}
	return false
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
