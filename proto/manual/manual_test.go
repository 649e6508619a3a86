package manual_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/manual"
)

func tree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "does things", Long: "A tool.\n\n  as_it stands", Run: run}
	list := &cobra.Command{Use: "list", Short: "list what <is> there", Example: "  tool things list -all", Run: run}
	list.Flags().Bool("all", false, "also what_is old")
	list.Flags().String("format", "table", "`how` it is shown")
	hidden := &cobra.Command{Use: "secret", Hidden: true, Run: run}
	things := &cobra.Command{Use: "things", Short: "look at things"}
	things.AddCommand(list, hidden)
	root.AddCommand(things)
	return root
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAPageHasEveryCommandWithItsOptions(t *testing.T) {
	dir := t.TempDir()
	if err := manual.Commands(tree(), 1, "# FILES\n").Write(dir); err != nil {
		t.Fatal(err)
	}
	text := read(t, dir, "tool.1.md")
	for _, want := range []string{
		"% \"TOOL\" \"1\"", "tool - does things", "\n    as_it stands\n", "## tool things list\n", "List what \\<is> there.",
		"    tool things list [options]\n", "    tool things list -all\n", "**-all**\n: also what\\_is old\n",
		"**-format** *HOW*\n: how it is shown (default table)\n", "# FILES\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("a hidden command is shown")
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestAPluginsPageIsItsReadme(t *testing.T) {
	p := manual.Readme("tool-x", "# tool-x\n\nReads `x`\nslowly: by hand. Really.\n\n## Settings\n\nNone.\n")
	if p.Short != "reads x slowly" || p.Body != "# DESCRIPTION\n\n\nReads `x`\nslowly: by hand. Really.\n\n# Settings\n\nNone." {
		t.Errorf("%q\n%q", p.Short, p.Body)
	}
}

func TestASettingsPageHasTheExampleAndTheLanguage(t *testing.T) {
	p := manual.Settings("tool.conf", "settings of tool", "It reads /etc/tool_conf", "a = 1\n  b = 2\n", "# The language\n\n## Values\n")
	for _, want := range []string{"/etc/tool\\_conf", "    a = 1\n", "# LANGUAGE\n\n## Values\n"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("no %q in\n%s", want, p.Body)
		}
	}
}

func TestEveryShellFindsItsCompletion(t *testing.T) {
	dir := t.TempDir()
	if err := manual.Completion(tree(), dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"bash/tool", "zsh/_tool", "fish/tool.fish"} {
		if !strings.Contains(read(t, dir, path), "tool") {
			t.Error(path)
		}
	}
}
