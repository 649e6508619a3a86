package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (p *Program) loginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login", Short: "Print a link that opens the pages in a browser",
		Long: `Print a link that opens the pages in one browser, for 12 hours, without a
certificate. The link works once. The browser can read everything and change
nothing. This needs the role admin, which root and the group bursar have on the
aggregator's machine.

The address of the link is the first one of api.listen. From another machine, forward
it: ssh -L 8000:127.0.0.1:8000 HOST.`,
		Example: "  bursar login\n  sudo bursar login", Args: cobra.NoArgs,
	}
	conn := p.connectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		link, err := c.Session(cmd.Context())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.Stdout, link.URL)
		return err
	}
	return cmd
}
