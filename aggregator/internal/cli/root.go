package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/commandline"
)

// Commands is the tree of all commands, for those who describe it.
func (p *Program) Commands() *cobra.Command { return p.root() }

// root builds the tree of commands.
func (p *Program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bursar",
		Short: "Counts what every job on every cluster used, exactly once",
		Long: `bursar counts what every job on every cluster used, exactly once.

Try "bursar dev": it starts everything on this machine and shows it at work.
Long options take one dash or two. Data go to stdout, messages to stderr.
Exit codes: 0 success, 1 error, 2 success with findings.`,
		Example:       "  bursar dev\n  bursar usage -window last-month -by group_id\n  bursar records -since 24h -meta user_id=alice",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          known,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { commandline.Help(p.Stdout, cmd) })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return commandline.UsageError(cmd, err) })
	root.AddCommand(
		p.aggregatorCommand(), p.devCommand(),
		p.statusCommand(), p.usageCommand(), p.reportCommand(), p.directoryCommand(), p.subscriptionCommand(), p.budgetsCommand(), p.pricesCommand(), p.capacityCommand(), p.censusCommand(),
		p.importCommand(), p.recordsCommand(), p.agentsCommand(), p.gapsCommand(), p.completenessCommand(), p.quarantineCommand(), p.conflictsCommand(), p.waitingCommand(), p.actionsCommand(),
		p.configCommand(), p.tlsCommand(), p.operatorCommand(), p.snapshotCommand(), p.loginCommand(), p.versionCommand(), p.completionCommand(),
	)
	return root
}

// group is a command that only holds others.
func group(use, short, example string, sub ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: known, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(sub...)
	return cmd
}

// known refuses a command that does not exist, and suggests what may be meant.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		err = fmt.Errorf("%w (did you mean %q?)", err, like[0])
	}
	return commandline.UsageError(cmd, err)
}
