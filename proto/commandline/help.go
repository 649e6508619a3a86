// Package commandline is what the command lines of both programs have in common: the help
// and options with one dash.
package commandline

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Help writes what -h shows of a command.
func Help(w io.Writer, cmd *cobra.Command) {
	var b strings.Builder
	about := cmd.Long
	if about == "" {
		about = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", about, useLine(cmd))
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-12s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	options(&b, "Options", cmd.LocalFlags())
	options(&b, "Options of all commands", cmd.InheritedFlags())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun \"%s COMMAND -h\" for help on a command.\n", cmd.CommandPath())
	}
	_, _ = io.WriteString(w, b.String()) // a terminal that is gone
}

func useLine(cmd *cobra.Command) string {
	line := strings.ReplaceAll(cmd.UseLine(), "[flags]", "[options]")
	switch commands := cmd.CommandPath() + " COMMAND"; {
	case !cmd.HasAvailableSubCommands():
		return line
	case cmd.Runnable():
		return line + "\n  " + commands
	default:
		return commands
	}
}

// options lists options with one dash.
func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	first := true
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if first {
			fmt.Fprintf(b, "\n%s:\n", title)
			first = false
		}
		kind, text := pflag.UnquoteUsage(f)
		name := "-" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + strings.ToUpper(kind)
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			text += " (default " + strings.Trim(f.DefValue, "[]") + ")"
		}
		fmt.Fprintf(b, "  %-24s %s\n", name, text)
	})
}

// UsageError is an error about how a command was called.
func UsageError(cmd *cobra.Command, err error) error {
	text := strings.ReplaceAll(err.Error(), "--", "-")
	return fmt.Errorf("%s; see %s -h", text, cmd.CommandPath())
}
