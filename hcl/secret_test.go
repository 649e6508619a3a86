package hcl_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
)

func TestSecretIsNeverShown(t *testing.T) {
	secret := hcl.NewSecret("s3cret")
	holder := struct {
		S hcl.Secret
		P *hcl.Secret
		L []hcl.Secret
	}{secret, &secret, []hcl.Secret{secret}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %[1]v", "%10.2s"} {
		fmt.Fprintf(&out, verb+"\n", secret)
		fmt.Fprintf(&out, verb+"\n", holder)
		fmt.Fprintf(&out, verb+"\n", &holder)
	}
	fmt.Fprintln(&out, secret, holder, secret.String(), secret.GoString())
	for _, v := range []any{secret, holder, map[string]any{"k": secret}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "secret", secret, "pointer", &secret, "holder", holder)
	}
	out.WriteString(cmp.Diff(secret, hcl.NewSecret("other")))
	for _, leak := range []string{"s3cret", "733363726574", "733363"} {
		if strings.Contains(strings.ToLower(out.String()), leak) {
			t.Errorf("%q leaks:\n%s", leak, out.String())
		}
	}
	if secret.Reveal() != "s3cret" {
		t.Errorf("Reveal gives %q", secret.Reveal())
	}
}

func TestSecretComesFromFileOrEnvironment(t *testing.T) {
	t.Setenv("BURSAR_TEST", "from-env")
	for _, c := range []struct{ expr, want, err string }{
		{`file("secret.txt")`, "s3cret", ""},
		{`env("BURSAR_TEST")`, "from-env", ""},
		{`"x-${env("BURSAR_TEST")}"`, "x-from-env", ""},
		{`upper(env("BURSAR_TEST"))`, "FROM-ENV", ""},
		{`try(env("BURSAR_TEST_UNSET"), env("BURSAR_TEST"))`, "from-env", ""},
		{`jsondecode(jsonencode({ a = env("BURSAR_TEST") })).a`, "from-env", ""},
		{`"plain"`, "", "not written into the configuration"},
		{`env("BURSAR_TEST_UNSET", "")`, "", "empty"},
		{`null`, "", "null"},
	} {
		var s hcl.Secret
		diags := hcl.DecodeExpression(expression(t, c.expr), &s, &hcl.EvalContext{Functions: hcl.Functions("testdata")})
		check(t, c.expr, s.Reveal(), c.want, diags.Err(), c.err)
	}
}

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
			`seconds("${split("\n", file("f"))[0]}x")`, `tonumber(replace(file("f"), "A", "B"))`,
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
