package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) diffCommand() *cobra.Command {
	var paths []string
	cmd := &cobra.Command{
		Use: "diff", Short: "Compare this node's files with the cluster's configuration",
		Long: `Compare what these files say with the active configuration.

Settings that all nodes share, such as the agents, are committed to the cluster's log,
and all nodes use the committed ones, whatever their files say. Each difference is a
line with its place. Exit code 2 means that there are differences.`,
		Example: "  bursar config diff\n  bursar config diff -config /etc/bursar/aggregator.d -address https://agg1:8443",
		Args:    cobra.NoArgs,
	}
	conn := p.connectionFlags(cmd)
	filesFlag(cmd, &paths)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		known, err := p.compareConfig(cmd, c, paths)
		if err != nil {
			return err
		}
		if len(known.differences) > 0 {
			return newFinding("the files differ from the cluster's configuration: %d", len(known.differences))
		}
		p.say("the files agree with the cluster's configuration, committed by %s at %s", known.by, known.at)
		return nil
	}
	return cmd
}

func (p *Program) commitCommand() *cobra.Command {
	var paths []string
	cmd := &cobra.Command{
		Use: "commit", Short: "Make this node's files the cluster's configuration",
		Long: `Make what these files say the configuration that all nodes obey.

The node that leads does so by itself when its files have changed. This command is
for the files of another node, or to choose between nodes that differ. What
changes is printed as "bursar config diff" does.`,
		Example: "  bursar config diff && bursar config commit\n  bursar config commit -config /etc/bursar/aggregator.d -address https://agg1:8443",
		Args:    cobra.NoArgs,
	}
	conn := p.connectionFlags(cmd)
	filesFlag(cmd, &paths)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		known, err := p.compareConfig(cmd, c, paths)
		if err != nil {
			return err
		}
		if known.digest == known.files.Digest().String() {
			p.say("these files are the active configuration already")
			return nil
		}
		if _, err := c.CommitConfig(cmd.Context(), &v1.CommitConfigQuery{Replaces: known.digest}, known.files.Encode()); err != nil {
			return err
		}
		p.say("these files are the active configuration now; %d differences are gone", len(known.differences))
		return nil
	}
	return cmd
}

func filesFlag(cmd *cobra.Command, paths *[]string) {
	cmd.Flags().StringArrayVar(paths, "config", []string{defaultConfig}, "`file` or directory with the node's configuration; may be repeated")
	cmd.Flags().Lookup("config").DefValue = defaultConfig
}

// compared is what files and cluster say.
type compared struct {
	files       *clusterconfig.Document
	digest      string // of the cluster's configuration; "" when nothing is committed
	by, at      string
	differences []clusterconfig.Difference
}

// compareConfig compares the files with the active configuration, and prints where
// they differ.
func (p *Program) compareConfig(cmd *cobra.Command, c *client.Client, paths []string) (*compared, error) {
	if _, err := os.Stat(paths[0]); !cmd.Flags().Changed("config") && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no configuration at %s: name the files of a node with -config FILE", paths[0])
	}
	conf, file, diags := config.Load(paths...)
	if diags.HasErrors() {
		return nil, troubled{diags, file.Sources}
	}
	answer, err := c.Config(cmd.Context())
	if err != nil {
		return nil, err
	}
	obeyed, err := clusterconfig.Decode(answer.Document)
	if err != nil {
		return nil, fmt.Errorf("the cluster's configuration: %w (is this program as new as the cluster?)", err)
	}
	out := &compared{files: conf.Shared(), digest: string(answer.Digest), by: string(answer.CommittedBy), at: clockFor(asTable, c.Zone()).timeWithZone(answer.CommittedAt)}
	out.differences = config.Diff(out.files, obeyed)
	for _, d := range out.differences {
		if _, err := fmt.Fprintln(p.Stdout, printable(d.String())); err != nil {
			return nil, err
		}
	}
	return out, nil
}
