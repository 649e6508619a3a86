package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/systemd"
)

// defaultConfig is where the package puts the aggregator's configuration.
const defaultConfig = "/etc/bursar/aggregator.hcl"

func (p *Program) aggregatorCommand() *cobra.Command {
	var paths []string
	var check, dev bool
	var seed string
	cmd := &cobra.Command{
		Use:   "aggregator",
		Short: "Run the aggregator",
		Long: `Run the aggregator until SIGINT or SIGTERM.

SIGHUP reloads the configuration: the agents, the log level and the certificates;
settings that need a restart are reported. A second SIGINT stops at once.`,
		Example: "  bursar aggregator -config /etc/bursar/aggregator.hcl\n  bursar aggregator -config /etc/bursar/aggregator.d -check",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return p.checkConfig(cmd.Context(), paths, dev)
			}
			if seed == "" {
				return p.runDaemon(cmd, paths, dev, "")
			}
			conf, _, _ := config.Load(paths...) // serve says what is wrong with it
			return preserveOwner(conf.Aggregator.DataDir.Path, func() error { return p.runDaemon(cmd, paths, dev, seed) })
		},
	}
	cmd.Flags().StringArrayVar(&paths, "config", []string{defaultConfig}, "`file` or directory with the configuration; may be repeated")
	cmd.Flags().BoolVar(&check, "check", false, "check the configuration and what it names on this machine, and stop")
	cmd.Flags().BoolVar(&dev, "dev", false, "accept plugins below folders that others may write to, such as /tmp")
	cmd.Flags().StringVar(&seed, "bootstrap-from", "", "begin a new cluster of this node, which must be empty, with the snapshot in this `file`")
	cmd.Flags().Lookup("config").DefValue = defaultConfig
	return cmd
}

// checkConfig loads the configuration and checks whether this machine has what it names.
func (p *Program) checkConfig(ctx context.Context, paths []string, dev bool) error {
	conf, file, diags := config.Load(paths...)
	if !diags.HasErrors() {
		diags.Extend(conf.Check())
		diags.Extend(conf.CheckMachine(ctx, runtimeDir(p.Getenv)))
		diags.Extend(daemon.CheckActions(ctx, conf, dev))
	}
	return p.writeDiagnostics(diags, file.Sources, "Configuration is valid.")
}

// writeDiagnostics writes what is wrong; errors become an error.
func (p *Program) writeDiagnostics(diags hcl.Diagnostics, sources hcl.Sources, fine string) error {
	if diags.HasErrors() {
		return troubled{diags, sources}
	}
	if err := diags.Write(p.Stderr, sources, p.Color); err != nil {
		return err
	}
	p.say("%s", fine)
	return nil
}

func (p *Program) runDaemon(cmd *cobra.Command, paths []string, dev bool, seed string) error {
	var sources hcl.Sources
	d := &daemon.Daemon{
		Load: func() (*config.Config, hcl.Diagnostics) {
			conf, file, diags := config.Load(paths...)
			sources = file.Sources
			return conf, diags
		},
		BootstrapFrom: seed, Dev: dev, RuntimeDir: runtimeDir(p.Getenv),
		Version: p.Version, Log: p.Stderr, Hangup: p.Hangup, Notify: systemd.FromEnv(p.Getenv),
	}
	err := d.Run(cmd.Context())
	if diags, ok := errors.AsType[hcl.Diagnostics](err); ok {
		return unmendable{troubled{diags, sources}, systemd.ExitConfig}
	}
	if needsOperator(err) {
		return unmendable{err, systemd.ExitFenced}
	}
	return err
}

// needsOperator reports whether an operator has to look at the node before it goes on: its
// state is lost, damaged, another than that of the others, or of a newer version
// than the program.
func needsOperator(err error) bool {
	for _, reason := range []error{
		cluster.ErrForgotten, cluster.ErrMismatch, cluster.ErrForked, cluster.ErrCorrupt, cluster.ErrFormat,
		store.ErrCorrupt, store.ErrFormat, membership.ErrFenced, membership.ErrProgramTooOld,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// unmendable is why the daemon ended when a restart would end the same way; the
// unit knows the exit code.
type unmendable struct {
	error
	code int
}

// Unwrap returns the reason.
func (u unmendable) Unwrap() error { return u.error }
