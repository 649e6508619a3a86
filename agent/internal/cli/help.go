package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// help is the text of -h, with flags as HashiCorp's tools write them.
func help(c *cobra.Command) string {
	var b strings.Builder
	text := c.Long
	if text == "" {
		text = c.Short
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", strings.TrimSpace(text), usage(c))
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-12s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	flags(&b, "Flags", c.LocalFlags())
	flags(&b, "Flags of all commands", c.InheritedFlags())
	return b.String()
}

func usage(c *cobra.Command) string {
	line := c.UseLine()
	if !strings.HasSuffix(line, "[flags]") && c.HasAvailableFlags() {
		line += " [flags]"
	}
	if c.HasAvailableSubCommands() {
		line += "\n  " + c.CommandPath() + " COMMAND [flags]"
	}
	return line
}

func flags(b *strings.Builder, title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "-" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if f.Value.Type() != "bool" {
			name += " " + strings.ToUpper(kind(f))
		}
		def := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			def = fmt.Sprintf(" (default %s)", strings.Trim(f.DefValue, "[]"))
		}
		fmt.Fprintf(b, "  %-24s %s%s\n", name, f.Usage, def)
	})
}

func kind(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return "n"
	case "stringArray":
		return "path"
	case "string":
		return "text"
	}
	return f.Value.Type()
}
