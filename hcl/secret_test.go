package hcl_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
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
