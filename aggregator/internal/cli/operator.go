package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

func (p *Program) operatorCommand() *cobra.Command {
	return groupCommand("operator", "Manage a node and its cluster", "  bursar operator check -config /etc/bursar/aggregator.hcl\n  bursar operator raft list-peers",
		p.checkCommand(), p.diskCommand(), p.healthCommand(), p.kindsCommand(), p.raftCommand(), p.recoverCommand())
}

// healthCommand asks what load balancers ask by GET /health_check, for machines without a shell.
func (p *Program) healthCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "health", Short: "Say by the exit code whether a node can answer requests",
		Long: `Say by the exit code whether a node can answer requests: 0 when a majority of the
cluster confirms within two seconds what the node has, and otherwise 1. It is for the
health checks of containers and load balancers, and prints nothing when the node can
answer. Warnings do not count: "bursar status" shows them, and why a node cannot answer.`,
		Example: "  bursar operator health",
		Args:    cobra.NoArgs,
	}
	conn := p.connectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Health(cmd.Context()); err != nil {
			return fmt.Errorf("the node cannot answer requests: %w", err)
		}
		return nil
	}
	return cmd
}

func (p *Program) checkCommand() *cobra.Command {
	var paths []string
	var dir string
	var live bool
	var conn *connection
	cmd := &cobra.Command{
		Use: "check", Short: "Compare everything derived in a node's store with its records",
		Long: `Compare everything derived in a node's store with its records: indexes, lists,
counters and the state hash. The whole store is read. Differences are printed, and
the exit code is then 2.

With -live the node at -address checks itself while it runs, including the sums of
usage. Otherwise the store of this machine is read, and the aggregator must not run
meanwhile.`,
		Example: "  bursar operator check -live\n  systemctl stop bursar && bursar operator check -config /etc/bursar/aggregator.hcl\n  bursar operator check -data-dir /var/lib/bursar",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if live {
				return p.checkLive(cmd.Context(), conn)
			}
			if dir == "" {
				conf, file, diags := config.Load(paths...)
				if diags.HasErrors() {
					return troubled{diags, file.Sources}
				}
				dir = conf.Aggregator.DataDir.Path
			}
			return preserveOwner(dir, func() error { return p.checkStore(cmd.Context(), filepath.Join(dir, "store")) })
		},
	}
	cmd.Flags().StringArrayVar(&paths, "config", []string{defaultConfig}, "`file` or directory with the node's configuration")
	cmd.Flags().StringVar(&dir, "data-dir", "", "the node's data `folder`, instead of the one that its configuration names")
	cmd.Flags().BoolVar(&live, "live", false, "ask a node that runs to check itself")
	cmd.Flags().Lookup("config").DefValue = defaultConfig
	conn = p.connectionFlags(cmd)
	conn.timeout = time.Hour
	return cmd
}

// checkLive asks a node to check itself.
func (p *Program) checkLive(ctx context.Context, conn *connection) error {
	c, err := conn.openClient(p)
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := c.Check(ctx)
	if err != nil {
		return err
	}
	for _, w := range answer.Wrong {
		if _, err := fmt.Fprintln(p.Stdout, printable(w)); err != nil {
			return err
		}
	}
	if len(answer.Wrong) > 0 {
		return newFinding("the node is not sound: differences: %d", len(answer.Wrong))
	}
	p.say("the node is sound at index %d", answer.Index)
	return nil
}

func (p *Program) checkStore(ctx context.Context, dir string) (err error) {
	if matches, _ := filepath.Glob(filepath.Join(dir, "*")); len(matches) == 0 {
		return fmt.Errorf("%s: there is no store", dir)
	}
	s, err := store.Open(store.Options{Dir: dir})
	if errors.Is(err, store.ErrCorrupt) {
		return newFinding("the store does not read: %w", err)
	}
	if err != nil {
		return fmt.Errorf("open the store (does the aggregator run?): %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	view, err := s.View()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	wrong, err := view.Check(ctx)
	if errors.Is(err, store.ErrCorrupt) {
		return newFinding("the store does not read: %w", err)
	}
	if err != nil {
		return err
	}
	for _, w := range wrong {
		if _, err := fmt.Fprintln(p.Stdout, w); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return newFinding("the store is not sound: %d differences", len(wrong))
	}
	index, _ := view.Applied()
	p.say("the store is sound: %d records at index %d, state hash %s", view.Count(), index, view.Hash())
	return nil
}
