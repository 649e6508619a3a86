package plugintest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
)

// codeParts are the parts of a text that are written in a configuration or a shell: what is
// marked already, settings, lists, objects and texts, names, addresses and paths.
var codeParts = regexp.MustCompile(strings.Join([]string{
	"`[^`]*`", `\{[^{}]*=[^{}]*\}`, `\w+ = (?:"[^"]*"|\[[^\]]*\]|true|false|\d+\w*)`, `\[[^\]]*"[^\]]*\]`, `"[^"]*"`,
	`\b[a-z]+(?:_[a-z0-9]+)+\b`, `\b[A-Z_]{4,}(?:, [A-Z_]{4,})+\b`, `\b[A-Z]+(?:_[A-Z0-9]+)+\b`,
	`\b[a-z0-9]+://[\w.:-]*`, `\B/(?:[\w.*-]+/)*[\w.*-]*[\w*]`,
}, "|"))

// markCode marks what codeParts match as code of Markdown.
func markCode(text string) string {
	text = codeParts.ReplaceAllStringFunc(text, func(s string) string {
		if s[0] == '`' {
			return s
		}
		if 'A' <= s[0] && s[0] <= 'Z' { // a list of names, or one
			s = strings.ReplaceAll(s, ", ", "`, `")
		}
		return "`" + s + "`"
	})
	return strings.ReplaceAll(text, "|", `\|`)
}

// Settings checks that README.md of the test's plugin has the table of settings that the
// tags of the struct describe. The struct is Description.Settings.
func Settings(t *testing.T, target any) {
	t.Helper()
	var table strings.Builder
	table.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, s := range hcl.SettingsOf(target) {
		def := markCode(s.Unset)
		switch {
		case s.Required:
			def = "required"
		case s.Default != "":
			def = "`" + s.Default + "`"
		}
		table.WriteString("| `" + s.Name + "` | " + def + " | " + markCode(s.Meaning(func(v string) string { return "`" + v + "`" })) + " |\n")
	}
	var readme []byte
	for _, dir := range []string{"", "../", "../../"} {
		if text, err := os.ReadFile(dir + "README.md"); err == nil {
			readme = text
			break
		}
	}
	if !strings.Contains(string(readme), table.String()) {
		t.Errorf("README.md lacks the table of settings:\n%s", table.String())
	}
}
