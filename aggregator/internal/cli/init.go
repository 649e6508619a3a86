package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/aggregator/packaging"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
	"github.com/bursar-accounting/bursar/proto/setup"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// unit is the aggregator's unit and its user.
const unit = "bursar"

// founding is how a node is set up.
type founding struct {
	name, dir, dataDir, user string
	address, raft, plain     string // host:port
	hosts                    []string
	join, token              string
	force, noStart           bool
	wait                     time.Duration

	authority string // folder
	files     identity.Files
	nodes     []v1.JoinNode
	retention *v1.JoinRetention // the block that all nodes of the cluster have; nil: none
}

func (p *Program) initCommand() *cobra.Command {
	var s founding
	cmd := &cobra.Command{
		Use: "init", Short: "Set up this machine as a node of a cluster", Args: cobra.NoArgs,
		Long: `Set up this machine as the first node of a new cluster, or with -join as a further one:
make the authority or fetch it, make the certificate, write the configuration, and start
the unit. Run it as root. It can be repeated after a failure. A configuration that was
edited stays, unless -force is given.

The authority signs the certificates of all machines. Its key is in the folder ca beside
the configuration, which only the daemon's user can read. Every node has it, so that every
node can let machines join.`,
		Example: "  bursar init\n  bursar init -join agg1.example.org:8443 -token b1_…",
	}
	f := cmd.Flags()
	f.StringVar(&s.join, "join", "", "`host:port` of a node whose cluster this node joins")
	f.StringVar(&s.token, "token", "", "the `token` of bursar token create -role aggregator")
	f.StringVar(&s.name, "name", "", "the node's `name`; default the name of this machine")
	f.StringVar(&s.address, "address", "", "`host:port` of the REST interface, by which others reach it; default this machine's full name, port "+join.DefaultPort)
	f.StringVar(&s.raft, "raft", "", "`host:port` by which the other nodes reach this one; default the host of -address, port 8701")
	f.StringVar(&s.plain, "plain", "127.0.0.1:8000", "`host:port` without TLS, for this machine alone; empty for none")
	f.StringArrayVar(&s.hosts, "host", nil, "a further DNS `name` or address in the certificate; may be repeated")
	f.StringVar(&s.dir, "config-dir", "/etc/bursar", "`folder` of the configuration")
	f.StringVar(&s.dataDir, "data-dir", "/var/lib/bursar", "`folder` of the data")
	f.StringVar(&s.user, "user", unit, "`user` that the aggregator runs as, to whom its certificates are given")
	f.BoolVar(&s.force, "force", false, "replace a configuration that was edited")
	f.BoolVar(&s.noStart, "no-start", false, "do not start the unit")
	f.DurationVar(&s.wait, "wait", 5*time.Minute, "how `long` to wait until this node has a vote")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if (s.join == "") != (s.token == "") {
			return commandline.UsageError(cmd, errors.New("-join and -token belong together"))
		}
		if err := s.setDefaults(); err != nil {
			return err
		}
		return p.setUp(cmd.Context(), &s)
	}
	return cmd
}

// setDefaults finds out what was not given.
func (s *founding) setDefaults() (err error) {
	if s.name == "" {
		if s.name, err = setup.Name(); err != nil {
			return err
		}
	}
	if s.address == "" {
		if s.address, err = os.Hostname(); err != nil {
			return err
		}
	}
	s.address = join.Address(s.address)
	host, _, err := net.SplitHostPort(s.address)
	if err != nil {
		return err
	}
	if s.raft == "" {
		s.raft = net.JoinHostPort(host, "8701")
	}
	if !slices.Contains(s.hosts, host) {
		s.hosts = slices.Insert(s.hosts, 0, host)
	}
	s.authority, s.files = filepath.Join(s.dir, "ca"), setup.Files(s.configPath(), "aggregator")
	return identity.CheckName(s.name)
}

func (s *founding) configPath() string { return filepath.Join(s.dir, "aggregator.hcl") }

// setUp sets up the node.
func (p *Program) setUp(ctx context.Context, s *founding) error {
	owner, err := setup.Daemon(s.user)
	if err != nil {
		return err
	}
	fits := s.configFits()
	if !fits && !s.force {
		if err := setup.Replaceable(s.configPath(), packaging.Configuration, nil); err != nil {
			return fmt.Errorf("%w%s", err, s.configText())
		}
	}
	if err := errors.Join(setup.Public(s.dir), owner.Dir(s.authority, 0o700), owner.Folder(s.files)); err != nil {
		return err
	}
	if s.join == "" {
		s.retention = &v1.JoinRetention{NamesMonths: retentionMonths, AuditMonths: erasure.AuditMonths}
		err = s.foundCluster(owner, p.Now())
	} else {
		err = s.joinCluster(ctx, owner)
	}
	if err == nil && !fits {
		err = owner.Root(s.configPath(), s.configText())
	}
	if err != nil {
		return err
	}
	p.say("%s is set up: %s", s.name, s.configPath())
	return p.startNode(ctx, s)
}

// configFits reports whether there is a configuration already, and it is this node's.
func (s *founding) configFits() bool {
	if _, err := os.Stat(s.configPath()); err != nil {
		return false
	}
	conf, _, diags := config.Load(s.configPath())
	return !diags.HasErrors() && conf.Aggregator.Name.Value == s.name && conf.Files() == s.files
}

// foundCluster makes the authority and the certificate of the first node.
func (s *founding) foundCluster(owner setup.Owner, now time.Time) error {
	if err := s.makeAuthority(owner, now); err != nil {
		return err
	}
	authority, err := identity.LoadAuthority(s.authority)
	if err != nil {
		return err
	}
	secret, err := authority.Secret()
	if err != nil {
		return err
	}
	key, err := owner.Key(s.files.Key)
	if err != nil {
		return err
	}
	text, err := identity.NewRequest(key, s.name)
	if err != nil {
		return err
	}
	csr, err := identity.ParseRequest(text)
	if err != nil {
		return err
	}
	request := identity.Request{Identity: identity.Identity{Role: identity.Aggregator, Name: s.name}, Hosts: s.hosts}
	certificate, err := authority.Sign(csr, request, now)
	if err != nil {
		return err
	}
	ca := identity.EncodeCertificates(authority.Certificate())
	return s.writeCertificates(owner, v1.Joined{Certificate: string(certificate), Authorities: string(ca), Authority: string(ca), AuthorityKey: string(secret)})
}

// makeAuthority makes the authority where there is none. Its key comes last, so that an
// interrupted command leaves no half of one.
func (s *founding) makeAuthority(owner setup.Owner, now time.Time) error {
	if _, err := os.Stat(filepath.Join(s.authority, "ca.key")); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir := filepath.Join(s.authority, ".new")
	if err := os.RemoveAll(dir); err != nil { // of an interrupted command
		return err
	}
	files, err := identity.CreateCA(dir, "bursar", identity.LifetimeCA, now)
	for _, from := range []string{files.CA, files.Key} {
		if err == nil {
			var text []byte
			if text, err = os.ReadFile(from); err == nil {
				err = owner.Write(filepath.Join(s.authority, filepath.Base(from)), text, 0o600)
			}
		}
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// joinCluster exchanges the token for a certificate and the authority.
func (s *founding) joinCluster(ctx context.Context, owner setup.Owner) error {
	token, err := join.Parse(s.token)
	if err != nil {
		return err
	}
	key, err := owner.Key(s.files.Key)
	if err != nil {
		return err
	}
	joined, err := join.Join(ctx, join.Address(s.join), token, join.Request{
		Role: identity.Aggregator, Name: s.name, Address: s.raft, Hosts: s.hosts, Key: key,
	})
	if err != nil {
		return join.Explain(err, join.Address(s.join), "{} -join HOST:PORT -token TOKEN", string(identity.Aggregator))
	}
	s.nodes, s.retention = joined.Nodes, joined.Retention
	return s.writeCertificates(owner, joined)
}

// writeCertificates puts the certificates in their places.
func (s *founding) writeCertificates(owner setup.Owner, j v1.Joined) error {
	return errors.Join(
		owner.Write(filepath.Join(s.authority, "ca.key"), []byte(j.AuthorityKey), 0o600),
		owner.Write(filepath.Join(s.authority, "ca.pem"), []byte(j.Authority), 0o644),
		owner.Write(s.files.CA, []byte(j.Authorities), 0o644),
		owner.Write(s.files.Cert, []byte(j.Certificate), 0o644),
	)
}

// configText is the configuration of the node.
func (s *founding) configText() []byte {
	var b strings.Builder
	_, api, _ := net.SplitHostPort(s.address) // setDefaults has checked it
	_, raft, _ := net.SplitHostPort(s.raft)
	plain := ""
	if s.plain != "" {
		plain = setup.Quote(s.plain)
	}
	fmt.Fprintf(&b, `# Written by bursar init. All settings: man bursar.hcl.

aggregator {
  name      = %s
  data_dir  = %s
  authority = %s # signs the certificates of machines that join
  api {
    listen     = [%s]
    tls_listen = [%s]
  }
  tls {
    ca   = %s
    cert = %s
    key  = %s
  }
  raft {
    listen = %s
    peers = {
`, setup.Quote(s.name), setup.Quote(s.dataDir), setup.Quote(s.authority), plain, setup.Quote(net.JoinHostPort("0.0.0.0", api)),
		setup.Quote(s.files.CA), setup.Quote(s.files.Cert), setup.Quote(s.files.Key), setup.Quote(net.JoinHostPort("0.0.0.0", raft)))
	for _, n := range s.allPeers() {
		fmt.Fprintf(&b, "      %s = %s\n", setup.Quote(n.Name), setup.Quote(n.Address))
	}
	b.WriteString("    }\n  }\n" + retentionBlock(s.retention) + "}\n\naccess {\n  plain_role = \"none\"\n}\n")
	return []byte(b.String())
}

// retentionMonths is how long the records of a new cluster keep the names of persons: EGI
// asks for at most so long.
const retentionMonths = 18

// retentionBlock is the block as it is written; "" for none.
func retentionBlock(r *v1.JoinRetention) string {
	if r == nil {
		return ""
	}
	drop := ""
	if len(r.Drop) > 0 {
		quoted := make([]string, len(r.Drop))
		for i, key := range r.Drop {
			quoted[i] = setup.Quote(key)
		}
		drop = "    drop         = [" + strings.Join(quoted, ", ") + "]\n"
	}
	if r.AuditMonths != erasure.AuditMonths {
		drop += fmt.Sprintf("    audit_months = %d\n", r.AuditMonths)
	}
	return fmt.Sprintf("  # Older records lose the names of users; totals stay. See: bursar person retention\n  retention {\n    names_months = %d\n%s  }\n", r.NamesMonths, drop)
}

// allPeers are the nodes, this one included, by name.
func (s *founding) allPeers() []v1.JoinNode {
	list := slices.DeleteFunc(slices.Clone(s.nodes), func(n v1.JoinNode) bool { return n.Name == s.name })
	list = append(list, v1.JoinNode{Name: s.name, Address: s.raft})
	slices.SortFunc(list, func(a, b v1.JoinNode) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// startNode starts the daemon, waits until it has a vote, and says what to run next.
func (p *Program) startNode(ctx context.Context, s *founding) error {
	if s.noStart || !setup.Systemd() {
		p.say("Start it: bursar aggregator -config %s", s.configPath())
		return nil
	}
	if err := setup.Start(ctx, unit); err != nil {
		return err
	}
	if err := p.awaitVote(ctx, s); err != nil {
		return err
	}
	if len(s.nodes) == 0 {
		p.say("This node leads. Next:\n  bursar token create -role agent        prints the command for a head node\n  bursar token create -role aggregator   prints that for a further node of the cluster\n  bursar status")
		return nil
	}
	p.say("This node has a vote. raft.peers of the other nodes' configuration should list it too:\n      %s = %s", setup.Quote(s.name), setup.Quote(s.raft))
	return nil
}

// awaitVote waits until the node has a vote.
func (p *Program) awaitVote(ctx context.Context, s *founding) error {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	c, err := client.New(client.Options{Address: p.nearestAddress().address, UserAgent: "bursar/" + p.Version})
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		list, err := c.ListMembers(ctx)
		if slices.ContainsFunc(list.Members, func(m v1.Member) bool { return m.Name == s.name && m.Voter }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s has no vote within %s: the other nodes try to reach it at %s, which -raft changes; bursar status says more", s.name, s.wait, s.raft), err)
		case <-time.After(300 * time.Millisecond):
		}
	}
}
