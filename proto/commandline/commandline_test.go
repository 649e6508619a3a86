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
