package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (p *Program) versionCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  bursar version\n  bursar version -format json", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if f == asJSON {
				return p.printJSON(map[string]string{"version": p.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintln(p.Stdout, p.versionText())
			return err
		},
	}
	formatFlag(cmd, &f, asTable, asJSON)
	return cmd
}

// versionText is the version, for people.
func (p *Program) versionText() string {
	return fmt.Sprintf("bursar %s (%s, %s/%s)", p.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (p *Program) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print a completion script for a shell",
		Example:   "  source <(bursar completion bash)\n  bursar completion zsh > ~/.zfunc/_bursar",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(p.Stdout, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(p.Stdout)
			}
			return cmd.Root().GenFishCompletion(p.Stdout, true)
		},
	}
}
