package cli

import (
	"github.com/spf13/cobra"
)

func (p *Program) devCommand() *cobra.Command {
	opt := DevOptions{Out: p.Stdout, Err: p.Stderr, Executable: p.Executable, Color: p.Color, Getenv: p.Getenv}
	cmd := &cobra.Command{
		Use: "dev", Short: "Start a complete site on this machine, to try it",
		Long: `Start an agent, an aggregator and the plugins on this machine, with certificates
and data in a temporary folder that is removed at the end.

If this machine has a scheduler, its jobs are counted; otherwise recorded clusters
are replayed, with a demo of projects, prices and budgets. Nothing listens to other
machines. The pages open by the printed link, and other commands of the same user find
the aggregator by themselves.
Ctrl-C stops everything.

Files given by -config are the agent's if they have source blocks, and otherwise
the aggregator's, for example to try an action. Blocks such as project or price among
them take the place of the demo's.`,
		Example: "  bursar dev\n  bursar dev -listen 127.0.0.1:9000 -data-dir /tmp/bursar\n  bursar dev -config FOLDER\n  bursar dev -empty",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt.ListenChosen = cmd.Flags().Changed("listen")
			return RunDev(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Listen, "listen", "127.0.0.1:8000", "`address` of the pages and the API")
	f.StringVar(&opt.DataDir, "data-dir", "", "`folder` to keep everything in, instead of a temporary one")
	f.StringVar(&opt.Config, "config", "", "`folder` with HCL files of one's own: sources, in place of what is found, actions, prices, projects")
	f.BoolVar(&opt.Empty, "empty", false, "play no recorded cluster where there is no scheduler")
	f.BoolVar(&opt.Verbose, "verbose", false, "show all that the daemons log, not only their warnings")
	return cmd
}
