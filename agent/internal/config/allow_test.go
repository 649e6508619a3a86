package config_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/config"
)

func TestWhatIsWrongWithAllowActionIsSaidWithItsPlace(t *testing.T) {
	for block, want := range map[string]string{
		`allow_action "exec" "a" { commands = [["/bin/x", "a=*"]] }`:                                                        "",
		`allow_action "exec" "a" { commands = [["/bin/x", "..."], ["/bin/y"]] }`:                                            "",
		`allow_action "exec" "a" {}`:                                                                                        "missing attribute; commands must be set here",
		`allow_action "exec" "a" { commands = [] }`:                                                                         "a.hcl:2:1: warning: nothing is allowed",
		`allow_action "exec" "a" { commands = [[]] }`:                                                                       `a.hcl:2:1: invalid value for "commands"; empty command`,
		`allow_action "exec" "a" { commands = [["x"]] }`:                                                                    `a.hcl:2:40: invalid value for "commands"; "x" is not the absolute path`,
		`allow_action "exec" "a" { commands = [["/bin/x"], ["/bin/y", "/bin/sh"]] }`:                                        `a.hcl:2:62: invalid value for "commands"; "/bin/sh" is a shell`,
		`allow_action "Exec" "a" { commands = [["/bin/x"]] }`:                                                               "invalid type",
		`allow_action "exec" "a" { command = ["/bin/x"] }`:                                                                  `did you mean "commands"?`,
		`allow_action "exec" "a" {` + "\n" + `commands = [["/bin/x"]]` + "\n" + `environment = ["LD_PRELOAD"]` + "\n" + `}`: `a.hcl:4:16: invalid value for "environment"`,
	} {
		_, diags := config.Parse("a.hcl", []byte("agent { name = \"a\" }\n"+block+"\n"))
		text := diags.Error()
		if want == "" && strings.Contains(text, "allow_action") || !strings.Contains(text, want) {
			t.Errorf("%s:\n%s", block, text)
		}
	}
}

func TestNothingIsAllowedUnlessItIsWritten(t *testing.T) {
	c, diags := config.Parse("a.hcl", []byte("agent { name = \"a\" }\n"))
	if diags.HasErrors() || len(c.Rules()) != 0 {
		t.Error(c.Rules(), diags)
	}
}
