package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/packaging"
	"github.com/bursar-accounting/bursar/plugins/schedulers"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
	"github.com/bursar-accounting/bursar/proto/setup"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// unit is the agent's unit, its user, and its folder of certificates.
const unit = "bursar-agent"

// defaultPort is where aggregators pull.
const defaultPort = "7070"

// joining is how this machine joins a cluster.
type joining struct {
	host           string // of an aggregator, as host:port
	token          join.Token
	name, address  string
	dataDir, user  string
	dialIn         bool
	force, noStart bool
	wait           time.Duration
	files          identity.Files
}

func (a *app) joinCommand() *cobra.Command {
	var j joining
	c := &cobra.Command{
		Use: "join HOST[:PORT] TOKEN", Short: "Join a cluster by a token of bursar token create", Args: cobra.ExactArgs(2),
		Long: `Join a cluster: find the schedulers of this machine, exchange the token for a
certificate, write the configuration, start the unit, and wait until the cluster pulls.

The token names the authority of the cluster; its secret is sent only to an aggregator that
this authority has signed. The command can be repeated after a failure. A configuration
that was edited stays, unless -force is given.`,
		Example: "  bursar-agent join agg1.example.org:8443 b1_…\n  bursar-agent join agg1.example.org b1_… -name nemo-head1 -address head1.nemo.example.org:7070\n  bursar-agent join agg1.example.org b1_… -dial-in   # behind a firewall",
	}
	c.Flags().StringVar(&j.name, "name", "", "the agent's `NAME`; default the name of this machine")
	c.Flags().StringVar(&j.address, "address", "", "`HOST:PORT` where the aggregators reach this machine; default the address from which it reaches them, port "+defaultPort)
	c.Flags().BoolVar(&j.dialIn, "dial-in", false, "open no port: connect to the aggregators, which pull over these connections")
	c.Flags().StringVar(&j.dataDir, "data-dir", "", "`FOLDER` of the buffer; default /var/lib/bursar-agent")
	c.Flags().StringVar(&j.user, "user", unit, "`USER` that the agent runs as, to whom its certificates are given")
	c.Flags().BoolVar(&j.force, "force", false, "replace a configuration that was edited")
	c.Flags().BoolVar(&j.noStart, "no-start", false, "do not start the unit")
	c.Flags().DurationVar(&j.wait, "wait", 3*time.Minute, "how `LONG` to wait until the cluster has pulled")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		j.host = join.Address(args[0])
		if j.token, err = join.Parse(args[1]); err != nil {
			return err
		}
		return a.joinCluster(c.Context(), &j)
	}
	return c
}

func (a *app) joinCluster(ctx context.Context, j *joining) error {
	if err := j.fillDefaults(ctx); err != nil {
		return err
	}
	path := a.paths[0] // the others hold more blocks
	j.files = setup.Files(path, unit)
	list := schedulers.Look(ctx)
	text := j.configurationText(list, a.missingPlugins(list), []string{j.host})
	write, err := a.needsWriting(j, path, text)
	if err != nil {
		return err
	}
	owner, err := setup.Daemon(j.user)
	if err != nil {
		return err
	}
	joined, err := j.exchangeToken(ctx, owner)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s belongs to cluster %s\n", j.name, joined.Cluster)
	if write {
		if j.dialIn {
			text = j.configurationText(list, a.missingPlugins(list), j.dialAddresses(joined))
		}
		if err := owner.Root(path, text); err != nil {
			return err
		}
		a.printWritten(path, list)
	}
	return a.startAgent(ctx, j, joined)
}

// fillDefaults finds out what was not said.
func (j *joining) fillDefaults(ctx context.Context) (err error) {
	if j.name == "" {
		if j.name, err = setup.Name(); err != nil {
			return err
		}
	}
	if err := identity.CheckName(j.name); err != nil {
		return fmt.Errorf("-name: %w", err)
	}
	if j.dialIn {
		if j.address != "" {
			return errors.New("both -dial-in and -address: an agent that dials in has no address; remove one of the two")
		}
		return nil
	}
	if j.address == "" {
		j.address, err = join.Way(ctx, j.host)
		err = j.explainJoin(err)
	}
	if _, _, bad := net.SplitHostPort(j.address); err == nil && bad != nil {
		j.address = net.JoinHostPort(strings.Trim(j.address, "[]"), defaultPort)
	}
	return err
}

// explainJoin says of an aggregator that cannot be joined what to type.
func (j *joining) explainJoin(err error) error {
	return join.Explain(err, j.host, "{} HOST:PORT TOKEN", string(identity.Agent))
}

// missingPlugins are the types of schedulers whose plugins are not installed.
func (a *app) missingPlugins(list []schedulers.Scheduler) (names []string) {
	dirs := (&config.Config{}).PluginDirs(a.Executable)
	for _, s := range list {
		if !schedulers.Installed(dirs, "source-"+s.Type) {
			names = append(names, s.Type)
		}
	}
	return names
}

// configurationText is the agent's configuration, with a source for each scheduler whose plugin
// is installed. An agent that dials in does so at the aggregators.
func (j *joining) configurationText(list []schedulers.Scheduler, missing, aggregators []string) []byte {
	var b strings.Builder
	_, port, _ := net.SplitHostPort(j.address) // it was checked
	fmt.Fprintf(&b, "# Written by bursar-agent join. All settings: man bursar-agent.hcl.\n\nagent {\n  name = %s\n", setup.Quote(j.name))
	if j.dataDir != "" {
		fmt.Fprintf(&b, "  data_dir = %s\n", setup.Quote(j.dataDir))
	}
	if j.dialIn {
		for i := range aggregators {
			aggregators[i] = setup.Quote(aggregators[i])
		}
		fmt.Fprintf(&b, "  dial = [%s] # all aggregators\n", strings.Join(aggregators, ", "))
	} else {
		fmt.Fprintf(&b, "  listen = %s\n", setup.Quote(net.JoinHostPort("0.0.0.0", port)))
	}
	fmt.Fprintf(&b, "  tls {\n    ca   = %s\n    cert = %s\n    key  = %s\n  }\n}\n", setup.Quote(j.files.CA), setup.Quote(j.files.Cert), setup.Quote(j.files.Key))
	for _, s := range list {
		body := "{}"
		if s.Config != "" {
			body = "{\n  config { " + s.Config + " }\n}"
		}
		block := fmt.Sprintf("source %s %s %s", setup.Quote(s.Type), setup.Quote(s.Label), body)
		if slices.Contains(missing, s.Type) {
			block = fmt.Sprintf("# Install the package bursar-source-%s first.\n# %s", s.Type, strings.ReplaceAll(block, "\n", "\n# "))
		}
		fmt.Fprintf(&b, "\n# %s.\n%s\n", s.How, block)
	}
	if len(list) == 0 {
		b.WriteString("\n# No scheduler was found on this machine. Add a block such as\n#\n# source \"slurm\" \"mycluster\" {}\n")
	}
	return []byte(b.String())
}

// dialAddresses are where the agent dials in: at the node by which it joins, as it was
// reached, and at the others.
func (j *joining) dialAddresses(joined v1.Joined) []string {
	list := []string{j.host}
	for i, address := range joined.Aggregators {
		if i > 0 && address != j.host {
			list = append(list, address)
		}
	}
	return list
}

// needsWriting reports whether the configuration is to be written. An edited one that has the
// name and the certificates already is right as it is.
func (a *app) needsWriting(j *joining, path string, text []byte) (bool, error) {
	err := setup.Replaceable(path, packaging.Configuration, text)
	if err == nil || !errors.Is(err, setup.ErrEdited) {
		return err == nil, err
	}
	cfg, diags := config.Load(a.paths...)
	if !diags.HasErrors() && cfg.Agent.TLS.IsComplete() && cfg.Agent.Name.Value == j.name && cfg.Identity() == j.files {
		return false, nil
	}
	if j.force {
		return true, nil
	}
	return false, err
}

// exchangeToken exchanges the token for a certificate. The key is made first, so that an
// exchange whose answer was lost can be repeated with it.
func (j *joining) exchangeToken(ctx context.Context, owner setup.Owner) (joined v1.Joined, err error) {
	if err := owner.Folder(j.files); err != nil {
		return joined, err
	}
	key, err := owner.Key(j.files.Key)
	if err != nil {
		return joined, err
	}
	joined, err = join.Join(ctx, j.host, j.token, join.Request{Role: identity.Agent, Name: j.name, Address: j.address, Key: key})
	if err != nil {
		return joined, j.explainJoin(err)
	}
	return joined, errors.Join(
		owner.Write(j.files.CA, []byte(joined.Authorities), 0o644),
		owner.Write(j.files.Cert, []byte(joined.Certificate), 0o644),
	)
}

// printWritten says what was written.
func (a *app) printWritten(path string, list []schedulers.Scheduler) {
	fmt.Fprintf(a.Out, "%s is written\n", path)
	for _, s := range list {
		fmt.Fprintf(a.Out, "found: %s\n", s.How)
	}
	for _, name := range a.missingPlugins(list) {
		fmt.Fprintf(a.Err, "bursar-agent: the plugin of %s is not installed: install the package bursar-source-%s, and take the # off its source in %s\n", name, name, path)
	}
	if len(list) == 0 {
		fmt.Fprintf(a.Err, "bursar-agent: no scheduler was found on this machine: add a source block to %s\n", path)
	}
}

// startAgent starts the agent and waits until the cluster has pulled.
func (a *app) startAgent(ctx context.Context, j *joining, joined v1.Joined) error {
	cfg, _, err := a.loadConfig(ctx)
	if err != nil {
		return err
	}
	if _, err := a.agentStatus(ctx, cfg); errors.Is(err, control.ErrNotRunning) && (j.noStart || !setup.Systemd()) {
		fmt.Fprintf(a.Out, "start the agent: bursar-agent run -config %s\n", strings.Join(a.paths, " -config "))
		return nil
	}
	if !j.noStart && setup.Systemd() {
		if err := setup.Start(ctx, unit); err != nil {
			return err
		}
	}
	return a.awaitPull(ctx, j, cfg, joined.Cluster)
}

// awaitPull waits until the cluster has agreed with the agent where to pull.
func (a *app) awaitPull(ctx context.Context, j *joining, cfg *config.Config, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, j.wait)
	defer cancel()
	for {
		status, err := a.agentStatus(ctx, cfg)
		if slices.ContainsFunc(status.Buffer.Clusters, func(c control.Cluster) bool { return c.ID == cluster }) {
			fmt.Fprintf(a.Out, "the cluster pulls from %s\n", orDefault(j.address, "this machine, which dials in"))
			return nil
		}
		select {
		case <-ctx.Done():
			if j.dialIn {
				return errors.Join(fmt.Errorf("the cluster has not pulled within %s: bursar-agent doctor says which aggregators this machine cannot connect to; dial in %s must have them all", j.wait, a.paths[0]), err)
			}
			return errors.Join(fmt.Errorf("the cluster has not pulled within %s: it tries to reach this machine at %s, which -address changes; bursar agents, on an aggregator, says why it cannot", j.wait, j.address), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
