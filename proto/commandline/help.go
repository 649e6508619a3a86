// Package commandline is what the command lines of both programs have in common: the help
// and options with one dash.
package commandline

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bursar-accounting/bursar/proto/text"
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
	for _, g := range cmd.Groups() {
		writeCommands(&b, g.Title, cmd, g.ID)
	}
	writeCommands(&b, "Commands", cmd, "")
	writeOptions(&b, "Options", cmd.LocalFlags())
	writeOptions(&b, "Options of all commands", cmd.InheritedFlags())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun \"%s COMMAND -h\" for help on a command.\n", cmd.CommandPath())
	}
	_, _ = io.WriteString(w, b.String()) // a terminal that is gone
}

// writeCommands lists the commands of a group; "" is those without one.
func writeCommands(b *strings.Builder, title string, cmd *cobra.Command, group string) {
	first := true
	for _, sub := range cmd.Commands() {
		if sub.GroupID != group || !sub.IsAvailableCommand() {
			continue
		}
		if first {
			fmt.Fprintf(b, "\n%s:\n", title)
			first = false
		}
		fmt.Fprintf(b, "  %-12s %s\n", sub.Name(), sub.Short)
	}
}

// AddHelp gives a program the command "help", which shows what -h does, and the option
// -version, which prints the text.
func AddHelp(root *cobra.Command, version string) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { Help(cmd.OutOrStdout(), cmd) })
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Show help on a command", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 && cmd.HasSubCommands() {
				err = fmt.Errorf("there is no command %q", rest[0])
			}
			if err != nil {
				return UsageError(root, err)
			}
			Help(root.OutOrStdout(), cmd)
			return nil
		},
	})
	root.Version = version
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version")
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

// writeOptions lists options with one dash.
func writeOptions(b *strings.Builder, title string, flags *pflag.FlagSet) {
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

// UsageError is an error about how a command was called. Of an unknown option it says which
// may be meant, of a value what is wrong with it.
func UsageError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		return usageError(cmd, fmt.Sprintf("unknown flag: -%s%s", unknown.GetSpecifiedName(), suggestOption(cmd, unknown.GetSpecifiedName())))
	case errors.As(err, &invalid) && errors.Is(err, strconv.ErrSyntax) && strings.Contains(invalid.GetFlag().Value.Type(), "int"):
		return usageError(cmd, fmt.Sprintf("invalid value %q for -%s: use a whole number", invalid.GetValue(), invalid.GetFlag().Name))
	case errors.As(err, &invalid):
		return usageError(cmd, fmt.Sprintf("invalid value %q for -%s: %v", invalid.GetValue(), invalid.GetFlag().Name, invalid.Unwrap()))
	}
	return usageError(cmd, strings.ReplaceAll(err.Error(), "--", "-"))
}

func usageError(cmd *cobra.Command, message string) error {
	return fmt.Errorf("%s; see %s -h", message, cmd.CommandPath())
}

// suggestOption asks for the option of the command that is nearest to a name; "" where none is
// near.
func suggestOption(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := text.Suggest(name, names)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean -%s?", near)
}
