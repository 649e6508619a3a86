package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/commandline"
)

// actionsPayload makes the command that fetches an effect of the ledger.
func (p *Program) actionsPayload() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use: "payload ACTION RUN EFFECT", Short: "Print the payload of an effect", Args: cobra.ExactArgs(3),
		Long: `Print the payload of an effect: the bytes that its plugin received at each attempt, as
recorded in the ledger. With -show, print the plugin's readable form of them.`,
		Example: "  bursar actions history apel/egi 12\n  bursar actions payload apel/egi 12 0 > message",
	}
	conn := p.connectionFlags(cmd)
	cmd.Flags().BoolVar(&show, "show", false, "print it as plan -v shows it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := effectOf(args)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		answer, err := c.ActionEffect(cmd.Context(), e.typ, e.label, e.run, e.effect, nil)
		if err != nil {
			return err
		}
		if show {
			_, err = fmt.Fprintln(p.Stdout, printableLines(answer.Show))
			return err
		}
		_, err = p.Stdout.Write(answer.Payload)
		return err
	}
	return cmd
}

// effect names one of a run of an action.
type effect struct {
	typ, label string
	run        uint64
	effect     int
}

// effectOf reads ACTION RUN EFFECT.
func effectOf(args []string) (e effect, err error) {
	if e.typ, e.label, err = actionOf(args[0]); err != nil {
		return e, err
	}
	numbers := make([]uint64, 2)
	for i, n := range args[1:] {
		if numbers[i], err = strconv.ParseUint(n, 10, 31); err != nil {
			return e, fmt.Errorf("%q is no number; \"bursar actions history ACTION RUN\" prints those of the effects", n)
		}
	}
	e.run, e.effect = numbers[0], int(numbers[1])
	return e, nil
}
