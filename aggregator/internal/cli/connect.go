package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// connection is how a command reaches an aggregator.
type connection struct {
	address, ca, cert, key string

	timeout time.Duration // of an exchange; 0 is a minute
}

// defaultAddress is where an aggregator listens when nothing is configured, for
// commands that find no unix socket.
const defaultAddress = "http://127.0.0.1:8000"

// connect adds the options of a connection to a command.
func (p *Program) connect(cmd *cobra.Command) *connection {
	c := &connection{}
	f := cmd.Flags()
	f.StringVar(&c.address, "address", p.Getenv("BURSAR_ADDR"), "the aggregator's `url`, or unix:PATH; BURSAR_ADDR (default: the unix socket of this machine, or else "+defaultAddress+")")
	f.StringVar(&c.ca, "ca-cert", p.Getenv("BURSAR_CACERT"), "`file` with the authority of the aggregator's certificate; BURSAR_CACERT")
	f.StringVar(&c.cert, "client-cert", p.Getenv("BURSAR_CLIENT_CERT"), "`file` with one's own certificate; BURSAR_CLIENT_CERT")
	f.StringVar(&c.key, "client-key", p.Getenv("BURSAR_CLIENT_KEY"), "`file` with the key of the certificate; BURSAR_CLIENT_KEY")
	return c
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// open makes the client.
func (c *connection) open(p *Program) (*client.Client, error) {
	if c.address == "" {
		c.address = p.nearest()
	}
	opt := client.Options{Address: c.address, UserAgent: "bursar/" + p.Version, Timeout: c.timeout}
	if opt.Timeout == 0 {
		opt.Timeout = time.Minute
	}
	if c.ca != "" || c.cert != "" || c.key != "" {
		var err error
		if opt.TLS, err = client.LoadTLS(c.ca, c.cert, c.key); err != nil {
			return nil, err
		}
	}
	return client.New(opt)
}

// instant is a time of an answer, cut to seconds for people.
func instant(t v1.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

func dash(s string) string { return or(strings.TrimSpace(s), "-") }
