package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func (p *Program) tlsCommand() *cobra.Command {
	return groupCommand("tls", "Make certificates for aggregators, agents and clients", "  bursar tls ca create -dir tls\n  bursar tls cert create -ca-dir tls -dir tls -role agent -name nemo-head1 -host head1.example.org",
		groupCommand("ca", "Make a certificate authority", "  bursar tls ca create -dir tls", p.caCommand(), p.bundleCommand()),
		groupCommand("cert", "Make certificates", "  bursar tls cert create -ca-dir tls -role aggregator -name agg1 -host agg1.example.org", p.certCommand(), p.renewCommand()),
		p.showCertCommand(),
	)
}

// lifetimeFlag adds -lifetime to a command.
func lifetimeFlag(cmd *cobra.Command, d time.Duration) *string {
	return cmd.Flags().String("lifetime", fmt.Sprintf("%dd", d/(24*time.Hour)), "how `long` the certificate is valid")
}

func (p *Program) caCommand() *cobra.Command {
	var dir, name string
	cmd := &cobra.Command{Use: "create", Short: "Make a certificate authority: ca.pem and ca.key", Example: "  bursar tls ca create -dir tls -name \"bursar of example.org\"", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&dir, "dir", ".", "`folder` to write to")
	cmd.Flags().StringVar(&name, "name", "bursar", "the authority's `name`")
	lifetime := lifetimeFlag(cmd, identity.LifetimeCA)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		life, err := hcl.ParseDuration(*lifetime)
		if err != nil {
			return commandline.UsageError(cmd, fmt.Errorf("-lifetime: %w", err))
		}
		files, err := identity.CreateCA(dir, name, life, p.Now())
		if err != nil {
			return err
		}
		p.say("%s is the authority's certificate: give it to everyone", files.Cert)
		p.say("%s is its key: who has it can make certificates, so keep it away from the servers", files.Key)
		return nil
	}
	return cmd
}

func (p *Program) certCommand() *cobra.Command {
	var caDir, dir, role, name, rights string
	var hosts []string
	cmd := &cobra.Command{
		Use: "create", Short: "Make a certificate and its key: NAME.pem and NAME.key", Args: cobra.NoArgs,
		Example: "  bursar tls cert create -ca-dir tls -dir tls -role aggregator -name agg1 -host agg1.example.org -host 10.0.0.5\n  bursar tls cert create -ca-dir tls -role client -name alice -roles read,operate",
	}
	roles := []string{string(identity.Aggregator), string(identity.Agent), string(identity.Client)}
	cmd.Flags().StringVar(&caDir, "ca-dir", "", "`folder` with ca.pem and ca.key; without it, that of -dir")
	cmd.Flags().StringVar(&dir, "dir", ".", "`folder` to write to")
	cmd.Flags().Var(&choice{&role, roles}, "role", "whom it is for: aggregator, agent, client")
	cmd.Flags().StringVar(&name, "name", "", "the `name` in the certificate: as in the configuration")
	cmd.Flags().StringArrayVar(&hosts, "host", nil, "DNS `name` or address under which a server is reached; may be repeated")
	cmd.Flags().StringVar(&rights, "roles", "", "what a client may do: `some` of "+strings.Join(identity.RightNames(), ",")+"; or none, when the aggregator's configuration says it")
	lifetime := lifetimeFlag(cmd, identity.LifetimeCert)
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		life, err := hcl.ParseDuration(*lifetime)
		switch {
		case err != nil:
			return commandline.UsageError(cmd, fmt.Errorf("-lifetime: %w", err))
		case role == "" || name == "":
			return commandline.UsageError(cmd, fmt.Errorf("-role and -name are needed"))
		}
		if caDir == "" {
			caDir = dir
		}
		id, err := identityOf(role, name, rights)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		files, err := identity.CreateCert(caDir, dir, identity.Request{Identity: id, Hosts: hosts, Lifetime: life}, p.Now())
		if err != nil {
			return err
		}
		p.say("%s is the certificate of the %s %s, and %s its key", files.Cert, role, name, files.Key)
		return nil
	}
	return cmd
}

// identityOf is the identity that options name. A client must be given its roles.
func identityOf(role, name, rights string) (id identity.Identity, err error) {
	id = identity.Identity{Role: identity.Role(role), Name: name}
	switch {
	case id.Role != identity.Client && rights != "":
		return id, fmt.Errorf("-roles are for clients; what %ss may do is fixed", role)
	case id.Role != identity.Client || rights == "none":
		return id, nil
	case rights == "":
		return id, fmt.Errorf("a client needs -roles, such as -roles read; or -roles none, when the aggregator's configuration gives it some")
	}
	if id.Rights, err = identity.ParseRights(rights); err != nil {
		return id, fmt.Errorf("-roles: %w", err)
	}
	return id, nil
}
