package action

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/action/apel/gridtest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/fields"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
)

const minimal = `from = "2026-08"
site "UNI" {}
fields {
  VO         = "atlas"
  SubmitHost = record.meta.headnode[0]
}
directory {
  path = "/var/spool/apel/outgoing"
}
`

func TestAllProblemsAreReportedWithTheirPlaces(t *testing.T) {
	for what, c := range map[string]struct{ from, to, want string }{
		"nothing is wrong":         {"", "", ""},
		"no month to begin with":   {`from = "2026-08"`, ``, `from must be set here`},
		"a month that is none":     {`"2026-08"`, `"August"`, `test.hcl:1,1: invalid from`},
		"no site":                  {`site "UNI" {}`, ``, `at least one block site`},
		"a site twice":             {`site "UNI" {}`, "site \"UNI\" {}\nsite \"UNI\" {}", `test.hcl:3,1: duplicate block`},
		"a site without a name":    {`site "UNI" {}`, `site {}`, `test.hcl:2,1: wrong number of labels on "site"`},
		"an empty list of ids":     {`site "UNI" {}`, `site "UNI" { ids = [] }`, `the list is empty`},
		"a block of fields":        {`VO `, "job {}\n  VO ", `it has attributes alone`},
		"an unknown key":           {`site "UNI" {}`, "site \"UNI\" {}\nrechek = 2", `did you mean "recheck"?`},
		"a field of another name":  {`VO `, `Vo `, `did you mean VO?`},
		"no VO":                    {`VO         = "atlas"`, ``, `fields { VO = … } is needed`},
		"an unknown attribute":     {`record.meta`, `record.mata`, `test.hcl:5,16: unknown attribute "record.mata"; did you mean "meta"?`},
		"an unknown variable":      {`record.meta.headnode[0]`, `"${record.id}${job.id}"`, `test.hcl:5,31: unknown variable "job"`},
		"a record where it is not": {`"/var/spool/apel/outgoing"`, `record.id`, `Variables not allowed`},
		"a path that is relative":  {`"/var/spool`, `"var/spool`, `is not an absolute path`},
		"no target":                {"directory {\n  path = \"/var/spool/apel/outgoing\"\n}", ``, `one of the blocks ams { } and directory { } is needed`},
		"two targets":              {`directory {`, "ams {\n  host = \"h\"\n}\ndirectory {", `and not both`},
		"no signature":             {"directory {\n  path = \"/var/spool/apel/outgoing\"\n}", "ams {\n  host = \"h\"\n}", `a block sign`},
		"a key that is not there":  {`site "UNI" {}`, "site \"UNI\" {}\nsign {\n  cert = \"/none\"\n  key = \"/none\"\n}", `invalid cert`},
		"another benchmark":        {`site "UNI" {}`, "site \"UNI\" {}\nbenchmark \"HS06\" {}", `HEPscore23, hepspec or si2k`},
		"a site in two cases":      {`site "UNI" {}`, "site \"UNI\" {}\nsite \"uni\" {}", `sites UNI and uni differ only in case`},
		"a benchmark twice":        {`site "UNI" {}`, "site \"UNI\" {}\nbenchmark \"hepspec\" {}\nbenchmark \"HEPSPEC\" {}", `each name once`},
		"a list for a field":       {`"atlas"`, `["atlas"]`, `expected a text, a number or an expression`},
		"a text for a number":      {`VO `, "Processors = \"many\"\n  VO ", `test.hcl:4,3: invalid value; a number is required`},
		"a version without jobs":   {`site "UNI" {}`, "site \"UNI\" {}\njobs_version = \"0.3\"", `they are sent with send`},
		"another thing to send":    {`site "UNI" {}`, "site \"UNI\" {}\nsend = \"cloud\"", `jobs, summaries`},
		"a message that is small":  {`site "UNI" {}`, "site \"UNI\" {}\nmax_message = \"1kB\"", `between 10kB and 4MiB`},
		"too many months":          {`site "UNI" {}`, "site \"UNI\" {}\nrecheck = 25", `between 0 and 24`},
	} {
		text := strings.Replace(minimal, c.from, c.to, 1)
		if c.from != "" && text == minimal {
			t.Fatalf("%s: nothing was replaced", what)
		}
		_, err := configure(t, text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
	_, err := configure(t, "recheck = -1\nfields {\n  A = 1\n}\n")
	if n := strings.Count(fmt.Sprint(err), "\n"); n < 5 {
		t.Errorf("not all problems are there:\n%v", err)
	}
}

func TestAMSTakesTheSignersCertificateUnlessItHasItsOwn(t *testing.T) {
	a := gridtest.New(t)
	cert, key := a.Host(t, "ce1.example.org", gridtest.Curve(t))
	other, otherKey := a.Host(t, "ce2.example.org", gridtest.Curve(t))
	base := minimal[:strings.Index(minimal, "directory")]
	signed := base + fmt.Sprintf("sign {\n  cert = %q\n  key = %q\n}\n", cert, key)
	one, err := configure(t, signed+"ams {\n  host = \"msg.example.org\"\n}\n")
	if err != nil || one.config.ams.Cert != cert || one.config.ams.AuthnPort != 8443 || one.config.ams.Topic != "gLite-APEL" || one.config.jobs != "" {
		t.Errorf("%+v, %v", one.config.ams, err)
	}
	two, err := configure(t, signed+fmt.Sprintf("send = \"jobs\"\nams {\n  host = \"h\"\n  cert = %q\n  key = %q\n}\n", other, otherKey))
	if err != nil || two.config.ams.Cert != other || two.config.jobs != message.Jobs04 {
		t.Errorf("%+v, %v", two.config, err)
	}
	if _, err := configure(t, signed+fmt.Sprintf("ams {\n  host = \"h\"\n  cert = %q\n}\n", other)); err == nil {
		t.Error("a certificate with another's key is accepted")
	}
}

// The README shows every key and field, and its examples can be loaded.
func TestTheREADMEIsComplete(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	plugintest.Settings(t, new(settings))
	for _, name := range fields.Names() {
		if !strings.Contains(readme, "`"+name+"`") {
			t.Errorf("README.md does not say what %s is", name)
		}
	}
	for _, m := range regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(readme, -1) {
		if _, diags := hcl.Parse("README.md", []byte(m[1])); diags.HasErrors() {
			t.Error(diags)
		}
	}
}

// Each line of the README's table for AUDITOR's fields has an expression that is one.
func TestTheExpressionsOfTheREADMECanBeUsed(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^\\| `!.*\\| `([^`]+)` \\|$").FindAllStringSubmatch(string(b), -1)
	if len(lines) < 8 {
		t.Fatalf("%d lines of the table were found", len(lines))
	}
	for _, m := range lines {
		text := strings.Replace(minimal, "record.meta.headnode[0]", strings.ReplaceAll(m[1], "\\|", "|"), 1)
		if _, err := configure(t, text); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}
