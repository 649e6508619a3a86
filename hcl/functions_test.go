package hcl_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
)

// slurm writes a duration as sacct does.
func slurm(d time.Duration) string {
	days, d := d/(24*time.Hour), d%(24*time.Hour)
	out := fmt.Sprintf("%02d:%02d:%02d.%03d", d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second, d%time.Second/time.Millisecond)
	if days > 0 {
		out = fmt.Sprintf("%d-%s", days, out)
	}
	return out
}

func expression(t testing.TB, src string) hcl.Expression {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(src), "test.hcl", hcl.Pos{Line: 1, Column: 1})
	if diags.HasErrors() {
		t.Fatalf("%s: %v", src, diags)
	}
	return expr
}

func TestFunctionsGiveWhatTheirNamesPromise(t *testing.T) {
	t.Setenv("BURSAR_TEST", "v")
	ctx := &hcl.EvalContext{Functions: hcl.Functions("testdata")}
	for _, c := range []struct{ expr, want string }{
		{`abs(-2)`, `2`},
		{`base64decode(base64encode("hé"))`, `"hé"`},
		{`bytes("16G")`, `17179869184`},
		{`bytes(512)`, `512`},
		{`can(tonumber("x"))`, `false`},
		{`ceil(1.2)`, `2`},
		{`ceil(-1.2)`, `-1`},
		{`chomp("a\n")`, `"a"`},
		{`coalesce(null, "a")`, `"a"`},
		{`concat([1], [2])`, `[1,2]`},
		{`contains(["a"], "a")`, `true`},
		{`distinct(["a", "a"])`, `["a"]`},
		{`element(["a", "b"], 1)`, `"b"`},
		{`endswith("abc", "bc")`, `true`},
		{`env("BURSAR_TEST")`, `"v"`},
		{`env("BURSAR_TEST_UNSET", "d")`, `"d"`},
		{`file("secret.txt")`, `"s3cret"`},
		{`flatten([[1], [2]])`, `[1,2]`},
		{`floor(-1.2)`, `-2`},
		{`format("%s-%03d", "a", 7)`, `"a-007"`},
		{`formatdate("YYYY-MM-DD", "2024-02-03T04:05:06Z")`, `"2024-02-03"`},
		{`join("-", ["a", "b"])`, `"a-b"`},
		{`jsondecode("{\"a\":[1,2]}").a[1]`, `2`},
		{`jsonencode({ a = 1 })`, `"{\"a\":1}"`},
		{`keys({ b = 1, a = 2 })`, `["a","b"]`},
		{`length("héllo")`, `5`},
		{`length([1, 2])`, `2`},
		{`length({ a = 1 })`, `1`},
		{`lookup({ a = 1 }, "b", 9)`, `9`},
		{`lookup({ a = 1 }, "a")`, `1`},
		{`lookup({ a = 1 }, "a", "x")`, `1`},
		{`lookup(tomap({ a = 1 }), "b", null)`, `null`},
		{`lookup({ a = 1 }, "b", null)`, `null`},
		{`lower("AB")`, `"ab"`},
		{`max(1, 3, 2)`, `3`},
		{`merge({ a = 1 }, { b = 2 })`, `{"a":1,"b":2}`},
		{`min(1, 3, 2)`, `1`},
		{`parseint("ff", 16)`, `255`},
		{`pow(2, 10)`, `1024`},
		{`range(3)`, `[0,1,2]`},
		{`regex("[0-9]+", "ab12cd")`, `"12"`},
		{`regex("([a-z]+)([0-9]+)", "ab12cd")`, `["ab","12"]`},
		{`regex("(?P<n>[0-9]+)", "ab12cd").n`, `"12"`},
		{`regexall("[0-9]", "a1b2")`, `["1","2"]`},
		{`length(regexall("x", "a1b2"))`, `0`},
		{`regex_replace("a1b2", "([0-9])", "($1)")`, `"a(1)b(2)"`},
		{`replace("a.b.c", ".", "-")`, `"a-b-c"`},
		{`reverse([1, 2])`, `[2,1]`},
		{`round(2.5)`, `2`},
		{`round(3.5)`, `4`},
		{`round(-2.5)`, `-2`},
		{`round(1e300) == 1e300`, `true`},
		{`round(1e-300)`, `0`},
		{`seconds("1-02:03:04")`, `93784`},
		{`seconds("00:00.5")`, `0.5`},
		{`seconds("00:00.1") == 0.1`, `true`},
		{`seconds(7)`, `7`},
		{`sha256("")`, `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`},
		{`slice([1, 2, 3], 1, 2)`, `[2]`},
		{`sort(["b", "a"])`, `["a","b"]`},
		{`split(",", "a,b")`, `["a","b"]`},
		{`startswith("abc", "ab")`, `true`},
		{`strcontains("abc", "b")`, `true`},
		{`substr("hello", 1, 3)`, `"ell"`},
		{`sum([1, 2.5])`, `3.5`},
		{`sum([])`, `0`},
		{`time(0)`, `"1970-01-01T00:00:00Z"`},
		{`time(1.5)`, `"1970-01-01T00:00:01.5Z"`},
		{`time("2024-01-01T10:00:00+01:00")`, `"2024-01-01T09:00:00Z"`},
		{`time("2024-01-01T10:00:00", "UTC")`, `"2024-01-01T10:00:00Z"`},
		{`timeadd("2024-01-01T00:00:00Z", "1h")`, `"2024-01-01T01:00:00Z"`},
		{`title("ab cd")`, `"Ab Cd"`},
		{`tobool("true")`, `true`},
		{`tonumber("12.5")`, `12.5`},
		{`tonumber(null)`, `null`},
		{`tostring(12)`, `"12"`},
		{`trim("xax", "x")`, `"a"`},
		{`trimprefix("xax", "x")`, `"ax"`},
		{`trimsuffix("xax", "x")`, `"xa"`},
		{`trimspace(" a ")`, `"a"`},
		{`try(jsondecode("no").a, "d")`, `"d"`},
		{`unix("1970-01-02T00:00:00Z")`, `86400`},
		{`unix("1970-01-01T00:00:00.25Z")`, `0.25`},
		{`upper("ab")`, `"AB"`},
		{`values({ b = 1, a = 2 })`, `[2,1]`},
		{`zipmap(["a"], [1])`, `{"a":1}`},
	} {
		v, diags := expression(t, c.expr).Value(ctx)
		if diags.HasErrors() {
			t.Errorf("%s: %v", c.expr, diags)
			continue
		}
		v, _ = v.UnmarkDeep()
		j, _ := expression(t, "jsonencode(x)").Value(&hcl.EvalContext{Functions: ctx.Functions, Variables: map[string]cty.Value{"x": v}})
		if j.AsString() != c.want {
			t.Errorf("%s = %s, want %s", c.expr, j.AsString(), c.want)
		}
	}
}

func TestFunctionsSayWhatIsWrong(t *testing.T) {
	ctx := &hcl.EvalContext{Functions: hcl.Functions("testdata")}
	for _, c := range []struct{ expr, err string }{
		{`env("BURSAR_TEST_UNSET")`, "BURSAR_TEST_UNSET is not set"},
		{`env()`, "expected env(name)"},
		{`file("none")`, "testdata/none does not exist"},
		{`file(".")`, "testdata is a folder, not a file"},
		{`file("/dev/zero")`, "not a regular file"},
		{`bytes("16X")`, "16X"},
		{`bytes(-1)`, "negative"},
		{`bytes([])`, "not a list"},
		{`seconds("x")`, "not a duration"},
		{`lookup({ a = 1 }, "b")`, `no key "b"`},
		{`lookup([1], "b", 1)`, "expected a map, not a list"},
		{`regex("(", "a")`, "missing closing"},
		{`regex("(a)(?P<n>b)", "ab")`, "all groups have a name"},
		{`regex("(?P<n>a)(?P<n>b)", "ab")`, "pattern"},
		{`regex("x", "a")`, "did not match"},
		{`tonumber("1e999999999")`, "too large"},
		{`jsondecode("{\"a\": 1e999999999}")`, "too large"},
		{`pow(10, 1000)`, "not a number"},
		{`time("2024-01-01T00:00:00")`, "without a zone"},
		{`time("2024-01-01T00:00:00", "Mars/Base")`, "unknown time zone"},
		{`time("soon", "UTC")`, "not a time"},
		{`time(1e30)`, "out of range"},
		{`unix("soon")`, "RFC 3339"},
		{`sum([1, null])`, "null"},
		{`base64decode("%")`, "not base64"},
		{`base64decode("/w==")`, "UTF-8"},
		{`length(1)`, "expected a string, a list or a map"},
	} {
		_, diags := expression(t, c.expr).Value(ctx)
		if !diags.HasErrors() || !strings.Contains(diags.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.expr, diags, c.err)
		}
	}
}

func TestExpressionFunctionsArePure(t *testing.T) {
	t.Setenv("BURSAR_TEST", "v")
	functions := hcl.ExpressionFunctions()
	for _, name := range []string{"timestamp", "uuid", "now", "random"} {
		if _, ok := functions[name]; ok {
			t.Errorf("%s() is there", name)
		}
	}
	for _, src := range []string{`env("BURSAR_TEST")`, `file("secret.txt")`, `hostname()`} {
		_, diags := expression(t, src).Value(&hcl.EvalContext{Functions: functions})
		if !diags.HasErrors() || !strings.Contains(diags.Error(), "cannot be used here") {
			t.Errorf("%s: %v", src, diags)
		}
	}
}

func TestBothSetsHaveTheSameFunctions(t *testing.T) {
	a, b := hcl.Functions("."), hcl.ExpressionFunctions()
	if len(a) != len(b) {
		t.Errorf("%d and %d", len(a), len(b))
	}
}

func TestHostname_IsTheMachinesNameUpToTheFirstDot(t *testing.T) {
	full, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := strings.Cut(full, ".")
	var s hcl.String
	diags := hcl.DecodeExpression(expression(t, `"${hostname()}.pem"`), &s, &hcl.EvalContext{Functions: hcl.Functions(".")})
	check(t, "hostname()", s.Value, want+".pem", diags.Err(), "")
}

func TestOfflineFunctionsReadNothing(t *testing.T) {
	t.Setenv("BURSAR_TEST", "v")
	ctx := &hcl.EvalContext{Functions: hcl.OfflineFunctions()}
	for _, c := range []struct{ expr, want string }{
		{`env("BURSAR_TEST")`, "***"}, {`env("BURSAR_TEST_UNSET")`, "***"}, {`env("BURSAR_TEST", "d")`, "d"}, {`file("/etc/hostname")`, "***"},
		{`"${hostname()}.pem"`, "hostname.pem"},
	} {
		var s hcl.String
		diags := hcl.DecodeExpression(expression(t, c.expr), &s, ctx)
		check(t, c.expr, s.Value, c.want, diags.Err(), "")
	}
}

func TestReadmeListsEveryFunction(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range hcl.ExpressionFunctions() {
		if text := string(readme); !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "`"+name+"(") {
			t.Errorf("%s() is not listed", name)
		}
	}
}
