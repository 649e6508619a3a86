package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/durable"
)

func (p *Program) configCommand() *cobra.Command {
	return groupCommand("config", "Check, format, compare, commit and convert configuration files", "  bursar config validate aggregator.hcl\n  bursar config fmt -check /etc/bursar\n  bursar config diff", p.validateCommand(), p.fmtCommand(), p.diffCommand(), p.commitCommand(), p.convertCommand())
}

func (p *Program) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE…", Short: "Check an aggregator's configuration",
		Long: `Check an aggregator's configuration, all files and directories together.

Only the text is checked, so this works on any machine;
"bursar aggregator -check" also looks for the files that it names, and
"bursar-agent -check" checks the configuration of an agent.`,
		Example: "  bursar config validate aggregator.hcl\n  bursar config validate /etc/bursar/aggregator.d",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, file, diags := config.LoadOffline(args...)
			if forAgent(file) {
				return errors.New("this is the configuration of an agent: bursar-agent -config FILE -check checks it")
			}
			return p.writeDiagnostics(diags, file.Sources, "Configuration is valid.")
		},
	}
}

// forAgent reports whether the files are an agent's: they have its block, which has
// no label, and no aggregator's.
func forAgent(file *hcl.File) bool {
	heads := file.Headers()
	return slices.ContainsFunc(heads, func(b hcl.Header) bool { return b.Type == "agent" && len(b.Labels) == 0 }) &&
		!slices.ContainsFunc(heads, func(b hcl.Header) bool { return b.Type == "aggregator" })
}

func (p *Program) fmtCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "fmt FILE…", Short: "Format configuration files",
		Long: `Format configuration files: indentation and aligned equals signs. Files are
rewritten; "-" reads stdin and writes stdout. A directory stands for its *.hcl files.
The names of files that change are printed.`,
		Example: "  bursar config fmt /etc/bursar\n  bursar config fmt -check aggregator.hcl\n  bursar config fmt - < aggregator.hcl",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			changed, err := p.layOut(args, check)
			if err == nil && check && changed > 0 {
				err = newFinding("not in layout: %d", changed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing, and end with 2 if a file is not in layout")
	return cmd
}

// layOut formats all files and counts those that change.
func (p *Program) layOut(paths []string, check bool) (changed int, err error) {
	for _, path := range paths {
		if path == "-" {
			return changed, p.formatStdin()
		}
		files, err := filesOf(path)
		if err != nil {
			return changed, err
		}
		for _, name := range files {
			differs, err := layOutFile(name, check)
			if err != nil {
				return changed, err
			}
			if differs {
				changed++
				if _, err := fmt.Fprintln(p.Stdout, name); err != nil {
					return changed, err
				}
			}
		}
	}
	return changed, nil
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	files, err := filepath.Glob(filepath.Join(path, "*.hcl"))
	slices.Sort(files)
	return files, err
}

func layOutFile(name string, check bool) (differs bool, err error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return false, err
	}
	out, diags := hcl.FormatFile(name, src)
	if diags.HasErrors() {
		return false, troubled{diags, hcl.Sources{name: src}}
	}
	if bytes.Equal(src, out) || check {
		return !bytes.Equal(src, out), nil
	}
	return true, replaceContent(name, out)
}

// replaceContent gives a file new content, whole or not at all, with its old mode.
func replaceContent(name string, content []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return durable.ReplaceWith(name, info.Mode().Perm(), func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// formatStdin formats stdin to stdout.
func (p *Program) formatStdin() error {
	src, err := io.ReadAll(p.Stdin)
	if err != nil {
		return err
	}
	out, diags := hcl.FormatFile("stdin", src)
	if diags.HasErrors() {
		return troubled{diags, hcl.Sources{"stdin": src}}
	}
	_, err = p.Stdout.Write(out)
	return err
}
