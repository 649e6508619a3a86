package hcl

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// CompilePattern compiles a regular expression. The error says what is wrong with it and,
// where other languages know what is not known here, how to write the pattern without.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return nil, fmt.Errorf("invalid pattern %q: %w", pattern, err)
	}
	text, remedy := fmt.Sprintf("%s: `%s`", bad.Code, bad.Expr), supportedForm(bad)
	if remedy != "" {
		text = remedy
	}
	return nil, fmt.Errorf("invalid pattern %q: %s", pattern, text)
}

// supportedForm says how to write a pattern without what RE2 does not have; "": it is something
// else.
func supportedForm(bad *syntax.Error) string {
	const no = "%s is not supported (RE2): "
	begins := func(list ...string) bool {
		for _, s := range list {
			if strings.HasPrefix(bad.Expr, s) {
				return true
			}
		}
		return false
	}
	switch {
	case bad.Code == syntax.ErrInvalidPerlOp && begins("(?=", "(?<="), bad.Code == syntax.ErrInvalidNamedCapture && begins("(?<="):
		return fmt.Sprintf(no, "lookaround, (?=…) or (?<=…),") + `match the text around too and put a group around what you want, for example regex("/([^/]*)", text)[0] for (?<=/)[^/]*(?=/|$)`
	case bad.Code == syntax.ErrInvalidPerlOp && begins("(?!", "(?<!"), bad.Code == syntax.ErrInvalidNamedCapture && begins("(?<!"):
		return fmt.Sprintf(no, "negative lookaround, (?!…) or (?<!…),") + `test what must not be there by a pattern of its own, for example can(regex("no", text)) ? null : regex("yes", text)`
	case bad.Code == syntax.ErrInvalidPerlOp && begins("(?>"):
		return fmt.Sprintf(no, "an atomic group, (?>…),") + "write (?:…), which never takes long here"
	case bad.Code == syntax.ErrInvalidEscape && len(bad.Expr) == 2 && bad.Expr[1] >= '1' && bad.Expr[1] <= '9':
		return fmt.Sprintf(no, "a backreference, "+bad.Expr+",") + "match each part by a group of its own and compare the groups"
	}
	return ""
}

// badPatterns reports the patterns of a file that are written out and cannot be compiled.
// It does not wait until they are evaluated: try would hide them.
func badPatterns(body *hclsyntax.Body) (diags Diagnostics) {
	_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl2.Diagnostics { // what is called reports nothing
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok {
			return nil
		}
		at := map[string]int{"regex": 0, "regexall": 0, "regex_replace": 1}
		i, ok := at[call.Name]
		if !ok || i >= len(call.Args) {
			return nil
		}
		if v, ok := Literal(call.Args[i]); ok && v.Type() == cty.String && !v.IsNull() {
			if _, err := CompilePattern(v.AsString()); err != nil {
				diags = append(diags, Errorf(call.Args[i].Range(), "invalid pattern", "%s", strings.TrimPrefix(err.Error(), "invalid pattern ")))
			}
		}
		return nil
	})
	return diags
}
