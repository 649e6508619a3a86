package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// actionsPayload makes the command that fetches an effect of the ledger.
func (p *Program) actionsPayload() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use: "payload ACTION RUN EFFECT", Short: "Print what an effect does, byte by byte", Args: cobra.ExactArgs(3),
		Long: `Print what an effect does: the bytes that its plugin got at every attempt, as the
ledger has them. With -show it is what the plugin says of them for people.`,
		Example: "  bursar actions history apel/egi 12\n  bursar actions payload apel/egi 12 0 > message",
	}
	conn := p.connect(cmd)
	cmd.Flags().BoolVar(&show, "show", false, "print it as plan -v shows it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := effectPath(args)
		if err != nil {
			return usageError(cmd, err)
		}
		c, err := conn.open(p)
		if err != nil {
			return err
		}
		defer c.Close()
		var answer v1.EffectPayload
		if err := c.GetJSON(cmd.Context(), path, nil, &answer); err != nil {
			return err
		}
		if show {
			_, err = fmt.Fprintln(p.Stdout, lines(answer.Show))
			return err
		}
		_, err = p.Stdout.Write(answer.Payload)
		return err
	}
	return cmd
}

// effectPath is the route of an effect: ACTION RUN EFFECT.
func effectPath(args []string) (string, error) {
	path, err := actionPath(args[0])
	if err != nil {
		return "", err
	}
	for _, n := range args[1:] {
		if _, err := strconv.ParseUint(n, 10, 31); err != nil {
			return "", fmt.Errorf("%q is no number; \"bursar actions history ACTION RUN\" prints those of the effects", n)
		}
	}
	return path + "/runs/" + args[1] + "/effects/" + args[2], nil
}
