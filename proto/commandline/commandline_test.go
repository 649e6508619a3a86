package commandline

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestTwoDashes_ValuesAndShortOptions_StayAsTheyAre(t *testing.T) {
	root := &cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}}
	root.Flags().String("name", "", "a `NAME`")
	root.Flags().Bool("all", false, "everything")
	for in, want := range map[string]string{
		"-name -all -all": "--name -all --all", "--name=x -h": "--name=x -h", "-n3 -1": "-n3 -1", "-all -- -all": "--all -- -all",
	} {
		if got := strings.Join(TwoDashes(root, strings.Fields(in)), " "); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestHelp_ShowsOptionsWithOneDash(t *testing.T) {
	root := &cobra.Command{Use: "x", Short: "do it", Run: func(*cobra.Command, []string) {}}
	root.Flags().String("name", "y", "a `NAME`")
	root.AddCommand(&cobra.Command{Use: "sub", Short: "Do more", Run: func(*cobra.Command, []string) {}})
	var b strings.Builder
	Help(&b, root)
	for _, want := range []string{"Do it.\n\nUsage:\n  x [options]\n  x COMMAND\n", "  sub          Do more\n", "  -name NAME               a NAME (default y)\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestAddHelp_HelpAndVersion_PrintToStdout(t *testing.T) {
	for args, want := range map[string]string{
		"help sub": "Do more.\n\nUsage:\n  x sub", "help": "\nReading:\n  sub          Do more\n\nCommands:\n  other        Do less\n",
		"-version": "x 1.2 (go)\n", "-h": "-version                 print the version",
	} {
		root := &cobra.Command{Use: "x", Short: "do it", Run: func(*cobra.Command, []string) {}}
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddGroup(&cobra.Group{ID: "read", Title: "Reading"})
		root.AddCommand(&cobra.Command{Use: "sub", Short: "Do more", GroupID: "read", Run: func(*cobra.Command, []string) {}},
			&cobra.Command{Use: "other", Short: "Do less", Run: func(*cobra.Command, []string) {}})
		AddHelp(root, "x 1.2 (go)")
		var b strings.Builder
		root.SetOut(&b)
		root.SetArgs(TwoDashes(root, strings.Fields(args)))
		if err := root.Execute(); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: %v\n%s", args, err, b.String())
		}
	}
}

func TestUsageError_UnknownOptionOrValue_SaysWhatToUse(t *testing.T) {
	for args, want := range map[string]string{
		"-windw x":  "unknown flag: -windw; did you mean -window?; see x -h",
		"-lmit=3":   "unknown flag: -lmit; did you mean -limit?; see x -h",
		"-top lots": `invalid value "lots" for -top: use a whole number; see x -h`,
		"-limit 3x": `invalid value "3x" for -limit: use a whole number; see x -h`,
		"-quiet":    "unknown flag: -quiet; see x -h",
		"-secrt":    "unknown flag: -secrt; see x -h",
		"-window":   "flag needs an argument: -window; see x -h",
	} {
		root := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
		root.SetFlagErrorFunc(UsageError)
		root.PersistentFlags().String("window", "", "")
		root.Flags().Int("limit", 0, "")
		root.Flags().Int64("top", 0, "")
		root.Flags().Bool("secret", false, "")
		root.Flags().Lookup("secret").Hidden = true
		root.SetArgs(TwoDashes(root, strings.Fields(args)))
		if err := root.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
