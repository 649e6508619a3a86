package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bursar-accounting/bursar/proto/client"
)

// connection is how a command reaches an aggregator.
type connection struct {
	address, ca, cert, key, context string
	token, tokenFile                string

	// origin says whence the address is; local that no address was given, of which denied
	// are the sockets that this user may not use; inContext names the context.
	origin, inContext string
	local             bool
	denied            []string

	flags   *pflag.FlagSet
	timeout time.Duration // of an exchange; 0 is a minute
}

// defaultAddress is where an aggregator listens when nothing is configured, for
// commands that find no unix socket.
const defaultAddress = "http://127.0.0.1:8000"

// connectionFlags adds those of a connection to a command.
func (p *Program) connectionFlags(cmd *cobra.Command) *connection {
	f := cmd.Flags()
	c := &connection{flags: f}
	f.StringVar(&c.address, "address", p.Getenv("BURSAR_ADDR"), "the aggregator's `url`, or several with commas, or unix:PATH; BURSAR_ADDR (default: that of the context, the unix socket of this machine, or else "+defaultAddress+")")
	f.StringVar(&c.context, "context", p.Getenv("BURSAR_CONTEXT"), "`name` of the cluster, see bursar context; BURSAR_CONTEXT")
	_ = cmd.RegisterFlagCompletionFunc("context", p.contextNames) // the option exists
	if strings.Contains(cmd.Use, " ACTION") {
		cmd.ValidArgsFunction = p.completeActions(c)
	}
	f.StringVar(&c.ca, "ca-cert", p.Getenv("BURSAR_CACERT"), "`file` with the authority of the aggregator's certificate; BURSAR_CACERT")
	f.StringVar(&c.cert, "client-cert", p.Getenv("BURSAR_CLIENT_CERT"), "`file` with one's own certificate; BURSAR_CLIENT_CERT")
	f.StringVar(&c.key, "client-key", p.Getenv("BURSAR_CLIENT_KEY"), "`file` with the key of the certificate; BURSAR_CLIENT_KEY")
	f.StringVar(&c.tokenFile, "token-file", p.Getenv("BURSAR_TOKEN_FILE"), "`file` with a token of bursar token create; BURSAR_TOKEN_FILE, or the token itself in BURSAR_TOKEN")
	c.token = p.Getenv("BURSAR_TOKEN")
	return c
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c *connection) openClient(p *Program) (*client.Client, error) {
	if err := c.resolveAddress(p); err != nil {
		return nil, err
	}
	token, err := c.readToken()
	if err != nil {
		return nil, err
	}
	opt := client.Options{Token: token, Address: c.address, UserAgent: "bursar/" + p.Version, Timeout: c.timeout}
	if opt.Timeout == 0 {
		opt.Timeout = time.Minute
	}
	if c.ca != "" || c.cert != "" || c.key != "" {
		if (c.cert == "") != (c.key == "") {
			return nil, errors.New("-client-cert and -client-key belong together: use both, or BURSAR_CLIENT_CERT and BURSAR_CLIENT_KEY")
		}
		if opt.TLS, err = client.LoadTLS(c.ca, c.cert, c.key); err != nil {
			return nil, err
		}
	}
	opt.Explain = func(server string, err error) error { return c.explainRefusal(p, server, err) }
	made, err := client.New(opt)
	if err != nil {
		return nil, c.wrongAddress(p, err)
	}
	return made, nil
}

// resolveAddress takes the address of the context, unless -address says another, or BURSAR_ADDR does
// and no context is asked for.
func (c *connection) resolveAddress(p *Program) error {
	if c.flags.Changed("address") || c.address != "" && c.context == "" {
		c.origin = c.valueOrigin(p, "address", "BURSAR_ADDR")
		return nil
	}
	all, err := p.readContexts()
	if err != nil {
		return err
	}
	one, err := all.findContext(c.context)
	switch {
	case err != nil:
		return err
	case one == nil:
		near := p.nearestAddress()
		c.address, c.origin, c.denied, c.local = near.address, near.origin, near.denied, true
		return nil
	}
	c.inContext = fmt.Sprintf("from the context %s of %s", one.Name, all.path)
	c.origin = c.inContext
	c.address, c.ca = one.Address, firstNonEmpty(c.ca, one.CA)
	c.cert, c.key = firstNonEmpty(c.cert, one.Cert), firstNonEmpty(c.key, one.Key)
	if c.token == "" {
		c.tokenFile = firstNonEmpty(c.tokenFile, one.TokenFile)
	}
	return nil
}

// readToken is the token to send; "" for none. -token-file comes before BURSAR_TOKEN.
func (c *connection) readToken() (string, error) {
	if c.tokenFile == "" || c.token != "" && !c.flags.Changed("token-file") {
		return strings.TrimSpace(c.token), nil
	}
	text, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func orDash(s string) string { return firstNonEmpty(strings.TrimSpace(s), "-") }
