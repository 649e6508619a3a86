package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
)

func TestReadme_HasTheTableOfSettings(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func TestReadme_NamesEveryTemplateFieldAndFunction(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range templateFunctions() {
		if !strings.Contains(string(text), "| `"+name+" ") && !strings.Contains(string(text), "`, `"+name+" ") {
			t.Errorf("README.md lacks the function %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`\{\{[^}]*\$?(\.[A-Z]\w+)`).FindAllStringSubmatch(page(t), -1) {
		if !strings.Contains(string(text), "`"+m[1]+"`") {
			t.Errorf("README.md lacks the field %s", m[1])
		}
	}
}

func page(t *testing.T) string {
	t.Helper()
	text, err := builtIn.ReadFile("templates/" + htmlTemplate)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConfigure_Example_IsTaken(t *testing.T) {
	text, err := os.ReadFile("../../../hcl/examples/aggregator-report.hcl")
	if err != nil {
		t.Fatal(err)
	}
	password := t.TempDir() + "/password"
	if err := os.WriteFile(password, []byte("a-pass=word"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)\n  config \{\n(.*?)\n  \}\n`).FindAllStringSubmatch(string(text), -1)
	if len(found) != 2 {
		t.Fatalf("%d config blocks", len(found))
	}
	for _, m := range found {
		if _, err := configureAll(t, strings.NewReplacer("/etc/bursar/mail.password", password, "/srv/www/reports", t.TempDir()).Replace(m[1])); err != nil {
			t.Error(err)
		}
	}
}

func TestConfigure_WhatIsWrong_IsSaidWithItsPlace(t *testing.T) {
	const to = "to = [\"a@example.org\"]\n"
	for text, want := range map[string]string{
		"":                                        "there are no recipients: set to, or each, or both",
		"to = [\"a@example.org\", \"b\"]":         `invalid address "b"`,
		to + "zone = \"Mars\"":                    "want one like",
		to + "period = [\"1\", \"2\", \"3\"]":     "at most two are shown side by side",
		to + "attach = [\"pdf\"]":                 `unknown "pdf": use csv, xlsx or html`,
		to + "query = { period = \"x\" }":         "period and zone are settings of their own",
		to + "each = \"site\"":                    "each",
		to + "recipient \"x\" { to = [\"a@b\"] }": "missing: it says of what the recipient blocks are",
		"each = \"group\"\nrecipient \"x\" { to = [\"nonsense\"] }": `invalid address "nonsense"`,
		to + "templates = \"/nowhere/at/all\"":                      "no such file or directory",
		to + "templates = \"relative\"":                             "is not an absolute path",
		to + "sender = \"x\"":                                       "sender",
	} {
		if _, err := configure(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for block, want := range map[string]string{
		"":                                     "mail",
		"host = \"localhost\"\ntls = \"none\"": "from",
		"from = \"x\"\nhost = \"h\"":           `invalid address "x"`,
		"from = \"a@b\"\nreply_to = \"y\"\nhost = \"h\"":                                    `invalid address "y"`,
		"from = \"a@b\"\nhost = \"h\"\ntls = \"none\"":                                      "everyone on the way can read the mails",
		"from = \"a@b\"\nhost = \"h\"\nuser = \"u\"":                                        "user and password_file are set together",
		"from = \"a@b\"\nhost = \"h\"\nuser = \"u\"\npassword_file = \"/nowhere/password\"": "no such file",
		"from = \"a@b\"\nhost = \"h\"\nca = \"/nowhere/ca.pem\"":                            "no such file",
	} {
		text := "report = \"usage\"\n" + to
		if block != "" {
			text += "mail {\n" + block + "\n}\n"
		}
		if _, err := configureAll(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", block, err, want)
		}
	}
	if _, err := configureAll(t, fmt.Sprintf("report = \"usage\"\n%smail {\n from = \"a@b\"\n host = \"h\"\n tls = \"none\"\n allow_plain = true\n}", to)); err != nil {
		t.Error(err)
	}
}
