package cli

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// bundleCommand is bursar tls ca bundle.
func (p *Program) bundleCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "bundle FILE...", Short: "Write one file with the certificates of several authorities", Args: cobra.MinimumNArgs(1),
		Example: "  bursar tls ca bundle -out /etc/bursar/tls/ca.pem old/ca.pem new/ca.pem",
	}
	cmd.Flags().StringVar(&out, "out", "", "`file` to write; daemons that use it take it over by themselves")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if out == "" {
			return commandline.UsageError(cmd, fmt.Errorf("-out is needed"))
		}
		list, err := identity.WriteBundle(out, args...)
		if err != nil {
			return err
		}
		for _, c := range list {
			p.say("%s trusts %s (%.16x), until %s", out, c.Subject.CommonName, c.SerialNumber, c.NotAfter.UTC().Format(time.DateOnly))
		}
		return nil
	}
	return cmd
}

// renewCommand is bursar tls cert renew.
func (p *Program) renewCommand() *cobra.Command {
	var caDir string
	cmd := &cobra.Command{
		Use: "renew FILE.pem...", Short: "Replace certificates and their keys by new ones of the same names, roles and hosts", Args: cobra.MinimumNArgs(1),
		Example: "  bursar tls cert renew -ca-dir tls /etc/bursar/tls/agg1.pem",
		Long:    "Replace certificates and their keys by new ones of the same names, roles and hosts. The key of NAME.pem is NAME.key beside it. Daemons use the new ones within seconds, without a restart.",
	}
	cmd.Flags().StringVar(&caDir, "ca-dir", "", "`folder` with ca.pem and ca.key of the authority")
	lifetime := lifetimeFlag(cmd, identity.LifetimeCert)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		life, err := hcl.ParseDuration(*lifetime)
		switch {
		case err != nil:
			return commandline.UsageError(cmd, fmt.Errorf("-lifetime: %w", err))
		case caDir == "":
			return commandline.UsageError(cmd, fmt.Errorf("-ca-dir is needed"))
		}
		for _, path := range args {
			stem, ok := strings.CutSuffix(path, ".pem")
			if !ok {
				return commandline.UsageError(cmd, fmt.Errorf("%s does not end with .pem", path))
			}
			id, err := identity.Renew(caDir, identity.Files{Cert: path, Key: stem + ".key"}, life, p.Now())
			if err != nil {
				return err
			}
			p.say("%s is the new certificate of %s, and %s.key its key", path, id, stem)
		}
		return nil
	}
	return cmd
}

// showCertCommand is bursar tls show.
func (p *Program) showCertCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show FILE.pem|HOST:PORT...", Short: "Show names, roles and expiry of certificates, in files or in use by daemons", Args: cobra.MinimumNArgs(1),
		Long:    "Show names, roles and expiry of certificates in files. For a daemon, at any of its TLS ports, show the certificate that it uses now and the names of the authorities that it trusts.",
		Example: "  bursar tls show /etc/bursar/tls/agg1.pem /etc/bursar/tls/ca.pem\n  bursar tls show agg1.example.org:8443 head1.example.org:7070",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				if err := p.showCert(cmd.Context(), arg); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// showCert shows the certificates of a file, or of a daemon.
func (p *Program) showCert(ctx context.Context, arg string) error {
	if isAddress(arg) {
		s, err := probeTLS(ctx, arg)
		if err == nil {
			fmt.Fprintf(p.Stdout, "%s: %s\n", arg, s)
		}
		return err
	}
	list, err := identity.ReadBundle(arg)
	for _, c := range list {
		fmt.Fprintf(p.Stdout, "%s: %s\n", arg, describeCert(c))
	}
	return err
}

func describeCert(c *x509.Certificate) string {
	end := "until " + c.NotAfter.UTC().Format("2006-01-02 15:04 MST")
	if c.IsCA {
		return fmt.Sprintf("authority %s (%.16x), %s", c.Subject.CommonName, c.SerialNumber, end)
	}
	id, err := identity.Of(c)
	switch {
	case err != nil:
		return fmt.Sprintf("%v; by %s, %s", err, c.Issuer.CommonName, end)
	case id.Role == identity.Client:
		return fmt.Sprintf("%s with the roles %s, by %s, %s", id, firstNonEmpty(id.Rights.String(), "of the configuration"), c.Issuer.CommonName, end)
	}
	return fmt.Sprintf("%s, by %s, %s", id, c.Issuer.CommonName, end)
}
