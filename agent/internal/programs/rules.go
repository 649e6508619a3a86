package programs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/proto/text"
)

// Rules are what actions may run, by their names.
type Rules map[string]*Rule

// Rule is what one action may run.
type Rule struct {
	Commands []*host.Command
	// Environment are names of variables that the action may set, beside those that
	// begin with BURSAR_.
	Environment []string
	// Stdin says that the action may send standard input.
	Stdin bool
	// Place is where it is written.
	Place string
}

const ours = "BURSAR_"

// permitProgram says why an action may not run a program; nil: it may. file is the
// configuration in which it could be allowed.
func (r Rules) permitProgram(action string, arguments []string, environment map[string]string, input bool, file string) error {
	rule := r[action]
	if rule == nil {
		return fmt.Errorf("the agent allows the action %s to run nothing. If it is to, add to %s, with * for what changes in an argument, and reload the agent:\n%s", action, file, allowingBlock(action, arguments, input))
	}
	if err := rule.checkCommand(action, arguments); err != nil {
		return err
	}
	if input && !rule.Stdin {
		return fmt.Errorf("the block allow_action of %s at %s does not allow standard input: %s gets some; if the program may read what the action sends, add stdin = true there and reload the agent", action, rule.Place, quoteText(arguments[0]))
	}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if !strings.HasPrefix(name, ours) && !slices.Contains(rule.Environment, name) {
			return fmt.Errorf("the block allow_action of %s at %s does not allow it to set the variable %s; if it is to, add environment = [%q] there and reload the agent", action, rule.Place, quoteText(name), shortText(name))
		}
	}
	return nil
}

// checkCommand says which argument keeps the program from being allowed.
func (r *Rule) checkCommand(action string, arguments []string) error {
	nearest, why, which := -1, "", 0
	for i, c := range r.Commands {
		at, differs := c.Difference(arguments)
		if at < 0 {
			return nil
		}
		if at > nearest {
			nearest, why, which = at, differs, i
		}
	}
	return fmt.Errorf("the block allow_action of %s at %s does not allow %s: nearest is command %d of it, where %s", action, r.Place, listExpression(arguments), which+1, why)
}

// allowingBlock is what would allow the program.
func allowingBlock(action string, arguments []string, input bool) string {
	typ, label, _ := strings.Cut(action, "/")
	more := ""
	if input {
		more = "\n  stdin    = true"
	}
	return fmt.Sprintf("allow_action %s %s {\n  commands = [%s]%s\n}", quoteText(typ), quoteText(label), listExpression(arguments), more)
}

// listExpression is a list of HCL, or its beginning.
func listExpression(arguments []string) string {
	const most = 20
	var out []string
	for i, a := range arguments {
		if i == most {
			out = append(out, "…")
			break
		}
		out = append(out, quoteText(a))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// quoteText is a string as HCL has it.
func quoteText(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(fmt.Sprintf("%q", shortText(s)))
}

func shortText(s string) string { return text.Clip(s, 200) }
