package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/commandline"
)

// Commands is the tree of all commands, for those who describe it.
func (p *Program) Commands() *cobra.Command { return p.rootCommand() }

// rootCommand builds the tree of commands.
func (p *Program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "bursar",
		Short: "Counts what every job on every cluster used, exactly once",
		Long: `bursar counts what every job on every cluster used, exactly once.

Try "bursar dev": it starts everything on this machine and shows it at work.
Long options take one dash or two. Data go to stdout, messages to stderr.
Exit codes: 0 success, 1 error, 2 success with findings.`,
		Example:       "  bursar dev\n  bursar usage -window last-month -by group_id\n  bursar records -since 24h -where user_id=alice",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          refuseUnknown,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	commandline.AddHelp(root, p.versionText())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return commandline.UsageError(cmd, err) })
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Start", []*cobra.Command{p.devCommand(), p.initCommand(), p.aggregatorCommand(), p.importCommand()}},
		{"Usage and cost", []*cobra.Command{p.usageCommand(), p.recordsCommand(), p.reportCommand(), p.budgetsCommand(), p.pricesCommand(), p.directoryCommand(), p.subscriptionCommand(), p.capacityCommand(), p.censusCommand()}},
		{"Is everything well, and counted", []*cobra.Command{p.statusCommand(), p.agentsCommand(), p.completenessCommand(), p.compareCommand(), p.gapsCommand(), p.quarantineCommand(), p.conflictsCommand(), p.waitingCommand(), p.alertsCommand()}},
		{"Manage", []*cobra.Command{p.tokenCommand(), p.auditCommand(), p.actionsCommand(), p.archiveCommand(), p.personCommand(), p.configCommand(), p.tlsCommand(), p.loginCommand(), p.contextCommand(), p.snapshotCommand(), p.operatorCommand()}},
		{"This program", []*cobra.Command{p.completionCommand(), p.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	return root
}

// groupCommand makes a command that only holds others.
func groupCommand(use, short, example string, sub ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: refuseUnknown, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(sub...)
	return cmd
}

// refuseUnknown refuses a command that does not exist, and suggests what may be meant.
func refuseUnknown(cmd *cobra.Command, args []string) error {
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
