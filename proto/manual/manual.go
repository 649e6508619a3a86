// Package manual writes the manual pages of a program and what completes its
// command line in a shell, from the tree of its commands. The pages are markdown
// as go-md2man takes it.
package manual

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Page is a page of the manual.
type Page struct {
	Name    string // as man is asked for it
	Section int
	Short   string // what it is, in a line
	Body    string // markdown, with # before the titles of its sections
}

// Write writes the page to dir.
func (p Page) Write(dir string) error {
	text := fmt.Sprintf("%% %q %q %q %q %q\n\n# NAME\n\n%s - %s\n\n%s", strings.ToUpper(p.Name), fmt.Sprint(p.Section), "", "bursar", "bursar",
		escapeText(p.Name), escapeText(p.Short), strings.TrimSpace(p.Body)+"\n")
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.%d.md", p.Name, p.Section)), []byte(text), 0o644) //nolint:gosec // for everybody
}

// Commands is the page of a program with all its commands; more is appended.
func Commands(root *cobra.Command, section int, more string) Page {
	var b strings.Builder
	fmt.Fprintf(&b, "# SYNOPSIS\n\n%s", codeBlock(usageLine(root)))
	fmt.Fprintf(&b, "# DESCRIPTION\n\n%s\n\n", escapeProse(root.Long))
	writeOptions(&b, root.NonInheritedFlags())
	writeExample(&b, root)
	b.WriteString("# COMMANDS\n\n")
	walkCommands(root, func(c *cobra.Command) { writeCommand(&b, c) })
	return Page{Name: root.Name(), Section: section, Short: root.Short, Body: b.String() + more}
}

// walkCommands visits the commands below c that can be run.
func walkCommands(c *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if !sub.HasAvailableSubCommands() {
			visit(sub)
		}
		walkCommands(sub, visit)
	}
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	fmt.Fprintf(b, "## %s\n\n%s%s\n\n", escapeText(c.CommandPath()), codeBlock(usageLine(c)), escapeProse(text))
	writeOptions(b, c.NonInheritedFlags())
	writeExample(b, c)
}

// usageLine is the line of a command, without the commands of the library.
func usageLine(c *cobra.Command) string {
	line := strings.TrimSuffix(c.UseLine(), " [flags]")
	if c.HasAvailableSubCommands() {
		line += " [COMMAND]"
	}
	if c.HasAvailableFlags() {
		line += " [options]"
	}
	return line
}

func writeExample(b *strings.Builder, c *cobra.Command) {
	if c.Example != "" {
		fmt.Fprintf(b, "For example:\n\n%s", codeBlock(c.Example))
	}
}

// writeOptions writes the flags, each with what it means.
func writeOptions(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, text := pflag.UnquoteUsage(f)
		name := "**-" + escapeText(f.Name) + "**"
		if kind != "" {
			name += " *" + escapeText(strings.ToUpper(kind)) + "*"
		}
		switch f.DefValue {
		case "", "false", "[]", "0":
		default:
			text += " (default " + strings.Trim(f.DefValue, "[]") + ")"
		}
		fmt.Fprintf(b, "%s\n: %s\n\n", name, escapeText(text))
	})
}

// codeBlock is text that is shown as it stands.
func codeBlock(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		b.WriteString(strings.TrimRight("    "+strings.TrimPrefix(line, "  "), " \n") + "\n")
	}
	return b.String() + "\n"
}

// escapeProse keeps what was indented as it stands, and escapes the rest.
func escapeProse(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		if strings.HasPrefix(line, "  ") {
			b.WriteString("    " + strings.TrimLeft(line, " "))
			continue
		}
		b.WriteString(escapeText(line))
	}
	return strings.TrimSpace(b.String())
}

var escapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "#", `\#`)

func escapeText(text string) string { return escapes.Replace(text) }

// Settings is the page of a configuration file: an example with all its settings,
// and the language.
func Settings(name, short, path, example, language string) Page {
	_, language, _ = strings.Cut(language, "\n") // its title
	body := fmt.Sprintf("# DESCRIPTION\n\n%s; files of a folder that is named instead are read as one.\n\n# EXAMPLE\n\n%s# LANGUAGE\n%s", escapeText(path), codeBlock(example), language)
	return Page{Name: name, Section: 5, Short: short, Body: body}
}

// Readme is the page of a program from its README, whose first paragraph says what
// it is.
func Readme(name, readme string) Page {
	_, text, _ := strings.Cut(readme, "\n") // its title
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n\n")
	short := strings.Join(strings.Fields(strings.ReplaceAll(first, "`", "")), " ")
	for _, end := range []string{". ", ": "} {
		short, _, _ = strings.Cut(short, end)
	}
	short = strings.TrimSuffix(short, ".")
	body := "# DESCRIPTION\n\n" + strings.ReplaceAll("\n"+text, "\n## ", "\n# ")
	return Page{Name: name, Section: 8, Short: strings.ToLower(short[:1]) + short[1:], Body: body}
}

// Completion writes what completes the program's command line into the folders
// bash, zsh and fish below dir, under the names that the shells look for.
func Completion(root *cobra.Command, dir string) error {
	name := root.Name()
	var errs []error
	for path, generate := range map[string]func(string) error{
		"bash/" + name:           func(p string) error { return root.GenBashCompletionFileV2(p, true) },
		"zsh/_" + name:           root.GenZshCompletionFile,
		"fish/" + name + ".fish": func(p string) error { return root.GenFishCompletionFile(p, true) },
	} {
		path = filepath.Join(dir, path)
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), generate(path)) //nolint:gosec // for everybody
	}
	return errors.Join(errs...)
}
