package hcl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
)

func scope() *hcl.Scope {
	return hcl.NewScope("testdata", map[string]hcl.Object{
		"job": {
			"NCPUS": cty.Number, "User": cty.String, "Partition": cty.String, "Comment": cty.String,
			"ad": cty.DynamicPseudoType, "tres": cty.Map(cty.Number),
		},
		"source": {"label": cty.String},
	})
}

func TestMappingExpressionsAreCheckedBeforeTheyRun(t *testing.T) {
	t.Setenv("BURSAR_TEST", "v")
	for _, c := range []struct {
		expr string
		want cty.Type
		err  string
	}{
		{`job.NCPUS`, cty.Number, ""},
		{`job["NCPUS"]`, cty.Number, ""},
		{`"${source.label}-${job.User}"`, cty.String, ""},
		{`job.Partition == "gpu" ? 21.5 : 10.0`, cty.Number, ""},
		{`try(jsondecode(job.Comment).voms, null)`, cty.String, ""},
		{`job.ad["MachineAttrApelSpecs0"].HEPSPEC`, cty.Number, ""},
		{`job.tres["gres/gpu"] > 0`, cty.Bool, ""},
		{`[for k, v in job.tres : upper(k) if v > 0]`, cty.List(cty.String), ""},
		{`lookup({ a = "x" }, job.User, null)`, cty.String, ""},
		{`env("BURSAR_TEST")`, cty.String, ""},
		{`file(lower("SECRET.txt"))`, cty.String, ""},
		{`try(file("none"), job.User)`, cty.String, ""},
		{`1`, cty.String, ""},

		{`job.NCPU`, cty.Number, `unknown attribute "job.NCPU"; did you mean "NCPUS"?`},
		{`try(job.NCPU, 1)`, cty.Number, `did you mean "NCPUS"?`},
		{`job.walltime`, cty.Number, "expected one of Comment, NCPUS, Partition, User, ad, tres"},
		{`jobs.NCPUS`, cty.Number, `unknown variable "jobs"; did you mean "job"?`},
		{`"x"`, cty.Number, "expected a number, not a string"},
		{`job.tres`, cty.Number, "expected a number, not a map"},
		{`job.NCPUS && true`, cty.Bool, "bool required"},
		{`job.User.name`, cty.String, "attribute"},
		{`uper(job.User)`, cty.String, "upper"},
		{`regex("(", job.User)`, cty.String, "regex() failed"},
		{`length()`, cty.Number, "Not enough function arguments"},
		{`env("BURSAR_TEST_UNSET")`, cty.String, "BURSAR_TEST_UNSET is not set"},
		{`file(job.User)`, cty.String, "cannot depend on a variable"},
	} {
		diags := scope().Check(expression(t, c.expr), c.want)
		switch {
		case c.err == "" && diags.HasErrors():
			t.Errorf("%s: %v", c.expr, diags.Error())
		case c.err != "" && !strings.Contains(diags.Error(), c.err):
			t.Errorf("%s: %q, want %q", c.expr, diags.Error(), c.err)
		}
	}
}

func TestEnvInAMappingIsReadOnceWhenItIsChecked(t *testing.T) {
	t.Setenv("BURSAR_TEST", "before")
	s := scope()
	expr := expression(t, `"${env("BURSAR_TEST")}-${job.User}"`)
	if diags := s.Check(expr, cty.String); diags.HasErrors() {
		t.Fatal(diags)
	}
	t.Setenv("BURSAR_TEST", "after")
	job := cty.ObjectVal(map[string]cty.Value{"User": cty.StringVal("u")})
	v, diags := expr.Value(&hcl.EvalContext{Functions: s.Functions(), Variables: map[string]cty.Value{"job": job}})
	if diags.HasErrors() || v.AsString() != "before-u" {
		t.Errorf("%#v %v", v, diags)
	}
	_, diags = expression(t, `env("PATH")`).Value(&hcl.EvalContext{Functions: s.Functions()})
	if !diags.HasErrors() || !strings.Contains(diags.Error(), "was not read when the configuration was loaded") {
		t.Error(diags)
	}
}

func TestRefsListWhatAnExpressionUses(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{`job.NCPUS`, "[job.NCPUS]"},
		{`job.ad["a"].b[0].c`, "[job.ad.a.b]"},
		{`"${source.label}-${job.id}"`, "[source.label job.id]"},
		{`[for job in job.list : job.x]`, "[job.list]"},
		{`job.tres[job.key]`, "[job.tres job.key]"},
		{`try(jsondecode(job.Comment).voms, null)`, "[job.Comment]"},
		{`job`, "[job]"},
		{`1 + 2`, "[]"},
		{`job.list[*].a`, "[job.list]"},
	} {
		if got := fmt.Sprint(hcl.Refs(expression(t, c.expr))); got != c.want {
			t.Errorf("%s: %s, want %s", c.expr, got, c.want)
		}
	}
}

func TestSimpleExpressionsAreRecognised(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{`"nemo"`, `literal "nemo"`},
		{`12`, `literal 12`},
		{`job.User`, "attribute [job User]"},
		{`(job.User)`, "attribute [job User]"},
		{`"${job.User}"`, "attribute [job User]"},
		{`job["a-b"]`, "attribute [job a-b]"},
		{`agent.nemo-head1`, "attribute [agent nemo-head1]"},
		{`job.list[0]`, ""},
		{`job.list[*]`, ""},
		{`"${source.label}-${job.id}"`, "template [{ [source label]} {- []} { [job id]}]"},
		{`"${upper(job.id)}-x"`, ""},
		{`upper("x")`, ""},
		{`1 + job.x`, ""},
	} {
		if got := kind(expression(t, c.expr)); got != c.want {
			t.Errorf("%s: %q, want %q", c.expr, got, c.want)
		}
	}
}

func kind(e hcl.Expression) string {
	if v, ok := hcl.Literal(e); ok {
		if v.Type() == cty.String {
			return fmt.Sprintf("literal %q", v.AsString())
		}
		return "literal " + v.AsBigFloat().String()
	}
	if p, ok := hcl.Attribute(e); ok {
		return fmt.Sprintf("attribute %v", p)
	}
	if p, ok := hcl.Template(e); ok {
		return fmt.Sprintf("template %v", p)
	}
	return ""
}

func TestRefKnowsItsPlace(t *testing.T) {
	r := hcl.Refs(expression(t, `1 + job.NCPUS`))[0]
	if d := cmp.Diff([]int{5, 14}, []int{r.Range.Start.Column, r.Range.End.Column}); d != "" {
		t.Error(d)
	}
}

func TestSameExpression_WrittenOtherwise_IsAnother(t *testing.T) {
	texts := []string{
		`1`, `"1"`, `true`, `null`, `job.a`, `job.b`, `job["a"]`, `job[0]`, `job.a[*].x`, `job.b[*].x`, `job.a[*].y`, `f(1)`, `f(1, 2)`, `f(job.a...)`, `f(job.a)`, `g(1)`,
		`1 + 2`, `1 - 2`, `2 + 1`, `1 == 2`, `1 != 2`, `!job.a`, `-job.a`, `(1)`, `job.a ? 1 : 2`, `job.a ? 2 : 1`, `[]`, `[1]`, `[1, 2]`, `{}`, `{ a = 1 }`, `{ (a) = 1 }`,
		`[for x in job.a : x]`, `[for y in job.a : x]`, `[for x in job.a : x if x]`, `{ for k, v in job.a : k => v }`, `{ for k, v in job.a : k => v... }`,
		`"${job.a}"`, `"${job.a}-x"`, `"${job.a}-y"`, "\"%{ if job.a }x%{ endif }\"", "<<E\n${job.a}\nE\n",
	}
	for i, one := range texts {
		for j, other := range texts {
			if got := hcl.SameExpression(expression(t, one), expression(t, other)); got != (i == j) {
				t.Errorf("%s and %s: %t", one, other, got)
			}
		}
		if hcl.SameExpression(expression(t, one), nil) || hcl.SameExpression(nil, expression(t, one)) {
			t.Errorf("%s is as nothing", one)
		}
	}
	if !hcl.SameExpression(nil, nil) || !hcl.SameExpression(expression(t, `f( 1,[ 2,3 ], {a=job.x[*].y} )`), expression(t, "f(1, [\n  2, # two\n  3,\n], { a = job.x[*].y })")) {
		t.Error("white space and comments count")
	}
}
