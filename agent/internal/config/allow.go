package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/bursar-accounting/bursar/agent/internal/programs"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
)

// AllowAction is a block allow_action "<type>" "<label>" { … }: what an action of the
// aggregator may run on this machine, as the agent's user.
type AllowAction struct {
	Type  hcl.String `hcl:"type,label" match:"[a-z0-9][a-z0-9_-]{0,63}" want:"a-z, 0-9, '-' and '_', at most 64"`
	Label hcl.String `hcl:"label,label"`
	// Commands are lists of a program's absolute path and its arguments. In an argument
	// a * stands for a value: a letter, digit or _, and then up to 63 of these and of
	// . @ + -. The last element may be "...": any further values.
	Commands [][]hcl.String `hcl:"commands"`
	// Environment are names of variables that the action may set for its programs, beside
	// those that begin with BURSAR_.
	Environment []hcl.String `hcl:"environment,optional"`
	// Stdin says that the action may send its programs standard input.
	Stdin bool `hcl:"stdin,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`

	rule programs.Rule
}

// compileRule compiles the commands and checks the names of variables.
func (a *AllowAction) compileRule() hcl.Diagnostics {
	var diags hcl.Diagnostics
	a.rule = programs.Rule{Stdin: a.Stdin, Place: fmt.Sprintf("%s:%d", a.Range.Filename, a.Range.Start.Line)}
	if len(a.Commands) == 0 && a.Range != (hcl.Range{}) {
		diags.Add(hcl.Warnf(a.Range, "nothing is allowed", `the block has no command; expected commands = [["/usr/bin/program", "argument", "name=*"]]`))
	}
	for _, words := range a.Commands {
		diags.Extend(a.compileCommand(words))
	}
	for _, name := range a.Environment {
		if name.Value == "" || strings.ContainsAny(name.Value, "=\x00") || strings.HasPrefix(name.Value, "LD_") {
			diags.Add(invalidValue(name.Range, "environment", "%q cannot be allowed as the name of a variable", name))
			continue
		}
		a.rule.Environment = append(a.rule.Environment, name.Value)
	}
	return diags
}

func (a *AllowAction) compileCommand(words []hcl.String) hcl.Diagnostics {
	texts, at := make([]string, len(words)), a.Range
	for i, w := range words {
		texts[i] = w.Value
	}
	c, err := host.Compile(texts)
	if err == nil {
		a.rule.Commands = append(a.rule.Commands, c)
		return nil
	}
	if len(words) > 0 {
		at = words[host.Place(err)].Range
	}
	return hcl.Diagnostics{invalidValue(at, "commands", "%v", err)}
}

// CheckPrograms says which programs of the block could not be run, as others could change
// them. dev is that of [host.CheckCommand].
func (a *AllowAction) CheckPrograms(dev bool) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, words := range a.Commands {
		texts := make([]string, len(words))
		for i, w := range words {
			texts[i] = w.Value
		}
		if _, err := host.Compile(texts); err != nil {
			continue // as has been said
		}
		switch err := host.CheckAllowed(texts, dev); {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist):
			diags.Add(hcl.Warnf(words[0].Range, "missing program", "actions cannot run it: %v", err))
		default:
			diags.Add(hcl.Errorf(words[0].Range, "unusable program", "actions cannot run it: %v", err))
		}
	}
	return diags
}

// Rules are what actions may run here.
func (c *Config) Rules() programs.Rules {
	rules := programs.Rules{}
	for i := range c.Allow {
		a := &c.Allow[i]
		rules[a.Type.Value+"/"+a.Label.Value] = &a.rule
	}
	return rules
}

// FencesPath is the file of the fences of actions.
func (c *Config) FencesPath() string { return filepath.Join(c.Agent.DataDir.Path, "fences") }
