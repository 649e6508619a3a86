package plugintest

import (
	"os"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
)

// Settings checks that README.md of the test's plugin has the table of settings that the
// tags of the struct describe. The struct is Description.Settings.
func Settings(t *testing.T, target any) {
	t.Helper()
	var table strings.Builder
	table.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, s := range hcl.SettingsOf(target) {
		def := s.Unset
		switch {
		case s.Required:
			def = "required"
		case s.Default != "":
			def = "`" + s.Default + "`"
		}
		table.WriteString("| `" + s.Name + "` | " + def + " | " + strings.ReplaceAll(s.Doc, "|", `\\|`) + " |\n")
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
