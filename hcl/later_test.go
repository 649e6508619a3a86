package hcl_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
)

const laterConfig = `from = "2026-11"
fields {
  VO   = lookupprefix({ "/atlas" = "atlas" },
    record.meta.voms[0])
  Host = "${record.site}-1"
  Cost = 2 * 3
}
`

func TestWhatDependsOnALaterVariableIsKeptAsText(t *testing.T) {
	file, _ := hcl.Parse("a.hcl", []byte(laterConfig))
	tree, diags := hcl.EvaluateLater(file.Body, file.Context(), file.Sources, "record")
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	in := tree.Nodes[1].Children
	if in[0].Expression != "lookupprefix({ \"/atlas\" = \"atlas\" },\n    record.meta.voms[0])" || in[1].Expression != `"${record.site}-1"` ||
		in[2].Expression != "" || in[2].Value.Int != 6 || tree.Nodes[0].Value.Str != "2026-11" {
		t.Fatalf("%+v", tree)
	}
	if at := in[1].Value.Range; at.Start.Line != 5 || at.Start.Column != 10 || at.Filename != "a.hcl" {
		t.Error(at)
	}
	if _, diags := hcl.Evaluate(file.Body, file.Context()); !diags.HasErrors() {
		t.Error("without the variable it was evaluated")
	}
	if _, diags := hcl.EvaluateLater(file.Body, file.Context(), nil, "record"); !diags.HasErrors() {
		t.Error("text was taken from nowhere")
	}
}

func TestAKeptExpressionIsReadAtItsPlace(t *testing.T) {
	at := hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: 5, Column: 10, Byte: 90}}
	expr, diags := hcl.ParseExpression(`"${record.site}-1"`, at)
	if diags.HasErrors() || expr.Range().Start != at.Start {
		t.Fatal(diags, expr)
	}
	v, more := expr.Value(&hcl.EvalContext{Variables: map[string]cty.Value{"record": cty.ObjectVal(map[string]cty.Value{"site": cty.StringVal("UNI")})}})
	if more.HasErrors() || v.AsString() != "UNI-1" {
		t.Error(v, more)
	}
	for _, bad := range []string{"", "a +", "a b", `"${`, strings.Repeat("(", 300), "<<E\nx"} {
		if _, diags := hcl.ParseExpression(bad, at); !diags.HasErrors() || diags[0].Subject == nil || diags[0].Subject.Filename != "a.hcl" {
			t.Errorf("%q: %v", bad, diags)
		}
	}
}

func TestLookupPrefixTakesTheLongestKey(t *testing.T) {
	for text, want := range map[string]string{
		`lookupprefix({ "/a" = "x", "/a/b" = "y" }, "/a/b/c")`:    "y",
		`lookupprefix({ "/a" = "x", "/a/b" = "y" }, "/a/c")`:      "x",
		`lookupprefix({ "/a" = "x" }, "/b", "none")`:              "none",
		`lookupprefix({ "" = "all", "/a" = "x" }, "/b")`:          "all",
		`lookupprefix(tomap({ "/a" = "x" }), "/a")`:               "x",
		`tostring(lookupprefix({ "/a" = 1 }, "/a"))`:              "1",
		`coalesce(lookupprefix({ "/a" = "x" }, "/b", null), "n")`: "n",
	} {
		expr, diags := hcl.ParseExpression(text, hcl.Range{Filename: "a.hcl"})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		v, more := expr.Value(&hcl.EvalContext{Functions: hcl.ExpressionFunctions()})
		if more.HasErrors() || v.AsString() != want {
			t.Errorf("%s = %v (%v), want %s", text, v, more, want)
		}
	}
	for _, bad := range []string{`lookupprefix({ "/a" = "x" }, "/b")`, `lookupprefix("a", "b")`, `lookupprefix({}, "b")`, `lookupprefix({ a = 1, b = [] }, "a")`, `lookupprefix({}, "a", 1, 2)`} {
		expr, _ := hcl.ParseExpression(bad, hcl.Range{Filename: "a.hcl"})
		if _, diags := expr.Value(&hcl.EvalContext{Functions: hcl.ExpressionFunctions()}); !diags.HasErrors() {
			t.Errorf("%s is accepted", bad)
		}
	}
}
