package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/proto/programtest"
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

// TestCheckPrograms_SaysWhatARunWouldRefuse draws modes of programs, scripts and folders.
func TestCheckPrograms_SaysWhatARunWouldRefuse(t *testing.T) {
	rng := rand.New(rand.NewPCG(26, 0))
	refused := 0
	for range 60 {
		dir := filepath.Join(t.TempDir(), "bin")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		program, script := filepath.Join(dir, "program"), filepath.Join(dir, "script.py")
		if err := errors.Join(programtest.WriteProgram(program, "#!/bin/true\n"), programtest.WriteProgram(script, "#!/bin/true\n")); err != nil {
			t.Fatal(err)
		}
		for path, modes := range map[string][]os.FileMode{program: {0o755, 0o700, 0o775, 0o777, 0o644}, script: {0o644, 0o666, 0o755}, dir: {0o755, 0o755, 0o775, 0o777}} {
			if err := os.Chmod(path, modes[rng.IntN(len(modes))]); err != nil {
				t.Fatal(err)
			}
		}
		words := [][]string{{program, "name=*", "..."}, {"/usr/bin/env", script}, {"/usr/bin/env", "*"}, {program, script}}[rng.IntN(4)]
		arguments := slices.Clone(words)
		arguments[1] = strings.Replace(arguments[1], "*", "x", 1)
		if words[1] == "*" {
			arguments = words[:1] // the script is known only then
		}
		_, err := host.CheckCommand(arguments, true)
		quoted, _ := json.Marshal([][]string{words})
		c, diags := config.Parse("a.hcl", []byte(fmt.Sprintf("agent { name = \"a\" }\nallow_action \"exec\" \"a\" { commands = %s }\n", quoted)))
		if len(c.Allow) != 1 {
			t.Fatal(diags)
		}
		if diags.HasErrors() {
			continue // the command itself is refused
		}
		found := c.Allow[0].CheckPrograms(true)
		if found.HasErrors() != (err != nil) {
			t.Errorf("%q: the check says %v, and a run %v", words, found, err)
		}
		if err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no run is refused")
	}
}

func TestNothingIsAllowedUnlessItIsWritten(t *testing.T) {
	c, diags := config.Parse("a.hcl", []byte("agent { name = \"a\" }\n"))
	if diags.HasErrors() || len(c.Rules()) != 0 {
		t.Error(c.Rules(), diags)
	}
}
