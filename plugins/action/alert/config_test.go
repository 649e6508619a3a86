package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestReadme_HasTheTableOfSettings(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func TestReadme_HasTheMetricsOfAPlan(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, backup)
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	for _, g := range c.run().Gauges {
		labels := slices.Sorted(maps.Keys(g.Labels))
		at, _ := slices.BinarySearch(labels, "action")
		labels = slices.Insert(labels, at, "action")
		if line := fmt.Sprintf("| `bursar_action_alert_%s{%s}` |", g.Name, strings.Join(labels, ",")); !strings.Contains(string(text), line) {
			t.Errorf("README.md lacks %s", line)
		}
	}
}

func TestReadme_HasTheTableOfDefaultRules(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	runbooks, err := os.ReadFile("../../../aggregator/RUNBOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(runbooks), -1) {
		plain := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	for _, r := range defaultRules() {
		when := ""
		switch {
		case r.Budget != "":
			when = fmt.Sprintf("%g %% of any budget are used", *r.Used)
		case r.Conflicts:
			when = "origins disagree about the start of a run"
		case r.Usage != nil && r.Usage.Below != nil:
			when = fmt.Sprintf("a cluster's utilization in %s is below %g %%", r.Usage.Window, 100**r.Usage.Below)
		case r.Usage != nil:
			when = fmt.Sprintf("a cluster's utilization in %s is above %g %%", r.Usage.Window, 100**r.Usage.Above)
		default:
			when = "`" + strings.Join(r.Findings, "`, `") + "`"
		}
		wait, severity := "at once", "that of the finding"
		if r.For > 0 {
			wait = strings.TrimSuffix(strings.TrimSuffix(r.For.String(), "0s"), "0m")
		}
		if r.Severity != "" || len(r.Findings) == 0 {
			severity = r.Severity
			if severity == "" {
				severity = "warning"
			}
		}
		row := fmt.Sprintf("| `%s` | %s | %s | %s |", r.Name, when, wait, severity)
		if !strings.Contains(string(text), row) {
			t.Errorf("README.md lacks\n%s", row)
		}
		if _, anchor, _ := strings.Cut(r.Runbook, "#"); !anchors[anchor] {
			t.Errorf("rule %s: RUNBOOKS.md has no heading for %q", r.Name, anchor)
		}
	}
}

// TestFindings_OfTheDaemon_AreThoseThatRulesCanName reads the source of the daemon: a kind that
// is new there must be known here.
func TestFindings_OfTheDaemon_AreThoseThatRulesCanName(t *testing.T) {
	kind := regexp.MustCompile(`(?:ID: |f\.ID, f\.What = |ID = |fails\(|add\(health\.\w+, |f\.ID, f\.What = Notice, )"([a-z]+(?:-[a-z]+)*)"`)
	found := []string{"disk-warn", "disk-low", "disk-readonly", "backup-none"} // which are put together there
	for _, pattern := range []string{"health/*.go", "daemon/*.go"} {
		files, err := filepath.Glob("../../../aggregator/internal/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || !strings.Contains(string(text), "Finding{") {
				continue
			}
			for _, m := range kind.FindAllStringSubmatch(string(text), -1) {
				found = append(found, m[1])
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if want := findingKinds(); !slices.Equal(found, want) {
		t.Errorf("the daemon has\n%q, rules can name\n%q", found, want)
	}
}

func TestConfigure_Example_IsTaken(t *testing.T) {
	text, err := os.ReadFile("../../../hcl/examples/aggregator-alert.hcl")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)\n  config \{\n(.*?)\n  \}\n`).FindAllStringSubmatch(string(text), -1)
	if len(found) != 2 {
		t.Fatalf("%d config blocks", len(found))
	}
	for _, m := range found {
		if _, err := configure(t, m[1]); err != nil {
			t.Error(err)
		}
	}
}

func TestConfigure_WhatIsWrong_IsSaidWithItsPlace(t *testing.T) {
	const good = "defaults = true\n"
	mail := "mail {\n from = \"a@b\"\n host = \"localhost\"\n tls = \"none\"\n }\n"
	for text, want := range map[string]string{
		"":                               "there are no rules: set defaults = true",
		good + "zone = \"Mars\"":         "want one like",
		good + "url = \"bursar\"":        "is not a URL",
		good + "without = [\"nothing\"]": `test.hcl:2,12: invalid without; unknown rule "nothing": use silent-source`,
		"without = [\"backup\"]\nrule \"x\" {\nconflicts=true\n}": "set defaults = true",
		"rule \"x\" {\n}": `rule "x" has 0 conditions`,
		"rule \"x\" {\n conflicts = true\n budget = \"*\"\n used = 1\n}":                                              `rule "x" has 2 conditions`,
		"rule \"x\" {\n findings = [\n  \"source-silent\",\n  \"backups\"\n ]\n}":                                     `test.hcl:4,3: invalid findings; unknown finding "backups": use`,
		"rule \"x\" {\n budget = \"*\"\n}":                                                                            "set either used or forecast",
		"rule \"x\" {\n conflicts = true\n used = 75\n}":                                                              "used and forecast are of a budget",
		"rule \"x\" {\n conflicts = true\n severity = \"bad\"\n}":                                                     "severity",
		"rule \"x\" {\n conflicts = true\n to = [\"ops\"]\n}":                                                         `test.hcl:3,8: invalid to; unknown receiver "ops": use none`,
		"rule \"x\" {\n conflicts = true\n}\nrule \"x\" {\n conflicts = true\n}":                                      `rule "x" given more than once`,
		"rule \"x\" {\n share {\n }\n}":                                                                               "set above, below or both",
		"rule \"x\" {\n share {\n above = 0.5\n below = 2\n }\n}":                                                     "must not be less than below",
		"rule \"x\" {\n usage {\n measure = \"Cores\"\n }\n}":                                                         "set either above or below",
		"rule \"x\" {\n usage {\n measure = \"Cores,GPUs\"\n above = 1\n }\n}":                                        "one measure and one key",
		good + "receiver \"a b\" {\n to = [\"a@b\"]\n" + mail + "}":                                                   `invalid name "a b"`,
		good + "receiver \"a\" {\n}":                                                                                  `receiver "a" has 0 blocks`,
		good + "receiver \"a\" {\n" + mail + "}":                                                                      "to and a mail block are set together",
		good + "receiver \"a\" {\n to = [\"x\"]\n" + mail + "}":                                                       `invalid address "x"`,
		good + "receiver \"a\" {\n severity = [\"bad\"]\n to = [\"a@b\"]\n" + mail + "}":                              `unknown severity "bad": use notice`,
		good + "receiver \"a\" {\n webhook {\n url = \"https://example.org\"\n }\n}":                                  `with which posts are signed`,
		good + "receiver \"a\" {\n alertmanager {\n url = \"http://example.org\"\n }\n}":                              "allow_plain = true",
		good + "receiver \"a\" {\n alertmanager {\n url = \"http://localhost\"\n labels = { \"a-b\" = \"x\" }\n }\n}": `"a-b" is not the name of a label`,
		good + "receiver \"a\" {\n alertmanager {\n url = \"http://localhost\"\n resend = \"1s\"\n }\n}":              "must be between 1m and 1h",
		good + "templates = \"/nowhere/at/all\"":                                                                      "no such file or directory",
		good + "receivers = 1":                                                                                        "receivers",
	} {
		if _, err := configure(t, text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "test.hcl:") && text != "" {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestTemplates_AFolder_ReplacesAndIsChecked(t *testing.T) {
	dir := t.TempDir()
	set := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("subject.txt", "Alarm\r\nBcc: x@example.org {{.Firing}}")
	a, err := configure(t, fmt.Sprintf("defaults = true\ntemplates = %q", dir))
	if err != nil {
		t.Fatal(err)
	}
	if w, err := a.config.templates.renderLetter(sampleLetter()); err != nil || w.subject != "Alarm Bcc: x@example.org 1" || !strings.Contains(w.text, "RECOVERED") {
		t.Errorf("%v %+v", err, w)
	}
	for text, want := range map[string]string{
		"\n\n{{.Titel}}":                  "mail.txt:3:",
		"\n{{if}}":                        "mail.txt:2:",
		"{{range .Changes}}{{.X}}{{end}}": "mail.txt:1:",
		"{{nothing}}":                     "mail.txt:1:",
		"{{when .URL .Zone}}":             "mail.txt:1:",
	} {
		set("mail.txt", text)
		_, err := configure(t, fmt.Sprintf("defaults = true\ntemplates = %q", dir))
		if err == nil || !strings.Contains(err.Error(), dir+"/"+want) || !strings.Contains(err.Error(), "test.hcl:2") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := os.Rename(filepath.Join(dir, "mail.txt"), filepath.Join(dir, "mails.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := configure(t, fmt.Sprintf("defaults = true\ntemplates = %q", dir)); err == nil || !strings.Contains(err.Error(), "mails.txt: unknown template: use mail.txt, subject.txt") {
		t.Error(err)
	}
}
