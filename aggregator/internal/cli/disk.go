package cli

import (
	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
)

func (p *Program) diskCommand() *cobra.Command {
	return groupCommand("disk", "Manage the disk of a node", "  bursar operator disk free-ballast -config /etc/bursar/aggregator.hcl", p.freeBallastCommand())
}

func (p *Program) freeBallastCommand() *cobra.Command {
	var paths []string
	var dir string
	cmd := &cobra.Command{
		Use: "free-ballast", Short: "Delete the file that reserves room on a node's disk",
		Long: `Delete the file that reserves room on a node's disk, so that it can clean up.

Run it on the node; the aggregator may run meanwhile, and makes a new file once
there is space again.`,
		Example: "  bursar operator disk free-ballast\n  bursar operator disk free-ballast -data-dir /var/lib/bursar",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if dir == "" {
				conf, file, diags := config.Load(paths...)
				if diags.HasErrors() {
					return troubled{diags, file.Sources}
				}
				dir = conf.Aggregator.DataDir.Path
			}
			freed, err := health.FreeBallast(dir)
			if err != nil {
				return err
			}
			if freed == 0 {
				return newFinding("%s has no ballast, it has been given up already: make room by other means", dir)
			}
			p.say("%d MiB are free again; find what takes the space: du -xh --max-depth=2 %s | sort -h", freed>>20, dir)
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&paths, "config", []string{defaultConfig}, "`file` or directory with the node's configuration")
	cmd.Flags().StringVar(&dir, "data-dir", "", "the node's data `folder`, instead of the one that its configuration names")
	cmd.Flags().Lookup("config").DefValue = defaultConfig
	return cmd
}
