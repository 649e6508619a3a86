package hcl_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
)

func TestStringFromTheEnvironmentIsMasked(t *testing.T) {
	t.Setenv("BURSAR_TEST", "from-env")
	var s, plain hcl.String
	ctx := &hcl.EvalContext{Functions: hcl.Functions(".")}
	diags := hcl.DecodeExpression(expression(t, `"a${env("BURSAR_TEST")}"`), &s, ctx)
	diags.Extend(hcl.DecodeExpression(expression(t, `"plain"`), &plain, ctx))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if got := fmt.Sprintf("%v %#v %s %v", s, s, s, plain); got != `*** "***" *** plain` {
		t.Error(got)
	}
	if s.Value != "afrom-env" || !s.Sensitive || plain.Sensitive {
		t.Errorf("%q %v", s.Value, s.Sensitive)
	}
}

// TestDiagnostics_ShowNoPartOfASecret takes files of random lines through functions that
// fail on a part of what they are given.
func TestDiagnostics_ShowNoPartOfASecret(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		dir, lines := t.TempDir(), []string{}
		for range 1 + r.IntN(4) {
			line := []byte{}
			for range 5 + r.IntN(60) {
				line = append(line, "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789+/-_"[r.IntN(38)])
			}
			lines = append(lines, string(line))
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, expr := range []string{
			`tonumber(split("\n", file("f"))[0])`, `[for l in split("\n", file("f")) : seconds(l)]`, `bytes(split("\n", file("f"))[0])`,
			`jsondecode(file("f"))`, `jsondecode("{${file("f")}")`, `{ a = 1 }[split("\n", file("f"))[0]]`, `lookup({ a = 1 }, upper(file("f")))`,
			`file(split("\n", file("f"))[0])`, `env(split("\n", file("f"))[0])`, `regex("(", file("f"))`, `regex(file("f"), "x")`, `time(file("f"), file("f"))`,
			`lower(file("f")) + 1`, `split("\n", file("f"))[0] ? 1 : 2`, `substr(file("f"), "x", file("f"))`, `{ (file("f")) = 1, (file("f")) = file("f") + 1 }`,
			`seconds("${split("\n", file("f"))[0]}x")`, `tonumber(replace(file("f"), "A", "B"))`, `file(file("f"))`, `file(upper(file("f")))`,
		} {
			var n hcl.Duration
			ctx := &hcl.EvalContext{Functions: hcl.Functions(dir)}
			diags := hcl.DecodeExpression(expression(t, expr), &n, ctx)
			text := strings.ToLower(diags.Error())
			for _, line := range lines {
				line = strings.ToLower(line)
				for i := 0; i+5 <= len(line); i++ {
					if strings.Contains(text, line[i:i+5]) {
						t.Fatalf("%s shows %q of %q:\n%s", expr, line[i:i+5], line, text)
					}
				}
			}
		}
	}
}

// TestDiagnostics_AreTheSameForEverySecret takes two secrets through every
// transformation, inside a for and outside, into every way to fail: the problems must
// not differ, so they hold nothing that was made of either.
func TestDiagnostics_AreTheSameForEverySecret(t *testing.T) {
	made := []string{"%s", "upper(%s)", "base64encode(%s)", "sha256(%s)", "jsonencode(%s)", `join("-", [%[1]s, %[1]s])`, "substr(%s, 1, 3)", `replace(%s, "7", "!")`,
		`trimprefix(%s, "Q")`, `format("%%q", %s)`, `"<${%s}>"`, "[for c in [%s] : substr(c, 2, 2)][0]", "{ k = %s }.k"}
	fail := []string{"tonumber(%s)", "seconds(%s)", "bytes(%s)", "jsondecode(%s)", `regex(%s, "(")`, `regex("(", %s)`, "file(%s)", "env(%s)", "{ a = 1 }[%s]", "%s + 1", "%s ? 1 : 2", "!%s",
		"time(%[1]s, %[1]s)", "parseint(%s, 10)", "formatdate(%[1]s, %[1]s)", "substr(%[1]s, %[1]s, 1)", "%s", "{ (%[1]s) = 1, (%[1]s) = 2 }", "[%s]", "%s.x", "%s[0]", `base64decode("!${%s}")`}
	around := []string{"%[1]s", "[for x in [%[2]s] : %[1]s]", `[for x in split("\n", %[2]s) : %[1]s]`, "{ for i, x in [%[2]s] : i => %[1]s }", "{ for x in [%[2]s, %[2]s] : %[1]s => 1 }", "[for x in [%[2]s] : 1 if %[1]s]"}
	var said [2]map[string]string
	for n, secret := range []string{"Qx7Zr9Kw2Lp5\nAbRc", "Mn3Vt4Jd8Hs6\nYeTu"} {
		said[n] = problems(t, secret, made, fail, around)
	}
	failed := 0
	for text, one := range said[0] {
		if one != "" {
			failed++
		}
		if diff := cmp.Diff(one, said[1][text]); diff != "" {
			t.Errorf("%s depends on the secret: %s", text, diff)
		}
	}
	if failed < 3000 {
		t.Errorf("only %d expressions failed", failed)
	}
}

// problems are what is said of expressions over a secret, decoded in several ways.
func problems(t *testing.T, secret string, made, fail, around []string) map[string]string {
	t.Helper()
	dir, said := t.TempDir(), map[string]string{}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BURSAR_TEST", secret)
	ctx := &hcl.EvalContext{Functions: hcl.Functions(dir)}
	var local cty.Value
	if diags := hcl.DecodeExpression(expression(t, `file("f")`), &local, ctx); diags.HasErrors() {
		t.Fatal(diags)
	}
	ctx.Variables = map[string]cty.Value{"local": local}
	for _, source := range []string{`file("f")`, `env("BURSAR_TEST")`, `split("\n", file("f"))[1]`, "local"} {
		for _, m := range made {
			for _, f := range fail {
				for _, a := range around {
					in := "x"
					if a == "%[1]s" {
						in = source
					}
					text := fmt.Sprintf(a+"%.0[2]s", fmt.Sprintf(f, fmt.Sprintf(m, in)), source)
					expr := expression(t, text)
					targets := []any{new(hcl.Duration), new([]hcl.Address), new(map[string]hcl.Size), new(int), new([]bool), new(map[string]hcl.Time), new(hcl.Path)}
					target := targets[len(said)%len(targets)]
					said[fmt.Sprintf("%s into %T", text, target)] = hcl.DecodeExpression(expr, target, ctx).Error()
				}
			}
		}
	}
	return said
}
