package cli

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// page is how an answer is shown.
type page struct {
	table  *table   // nil: the notes say all
	text   string   // for people in the place of a table; "": the table
	exact  *table   // for machines; nil: the table
	below  []*table // for people
	notes  []string // below the table, for people
	answer any      // that JSON has, when it is a part of the answer
	found  error    // by the command, in every format; nil: nothing
}

// display says how an answer is shown.
type display[T any] func(answer T, f format, c *clock) page

// queryCommand makes a command query one route and show the answer as a table, JSON or CSV. Without
// Args of its own it takes none.
func queryCommand[T any](p *Program, cmd *cobra.Command, ask func(ctx context.Context, api v1.API, args []string) (T, error), show display[T]) *cobra.Command {
	return queryCommandWith(p, cmd, 0, ask, show, asTable, asJSON, asCSV)
}

// queryCommandWith is queryCommand with a timeout, 0 for the usual one, and formats of its own.
func queryCommandWith[T any](p *Program, cmd *cobra.Command, timeout time.Duration, ask func(ctx context.Context, api v1.API, args []string) (T, error), show display[T], formats ...format) *cobra.Command {
	var f format
	conn := p.connectionFlags(cmd)
	conn.timeout = timeout
	formatFlag(cmd, &f, formats...)
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		remote, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer remote.Close()
		answer, err := ask(cmd.Context(), remote.API, args)
		if err != nil {
			return err
		}
		c := clockFor(f, remote.Zone())
		out := show(answer, f, c)
		out.notes = append(out.notes, c.zoneNotes()...)
		return p.writeAnswer(answer, f, out)
	}
	return cmd
}

// writeAnswer writes an answer in a format: JSON is the answer itself.
func (p *Program) writeAnswer(answer any, f format, s page) error {
	var err error
	switch {
	case f == asJSON:
		err = p.printJSON(cmp.Or(s.answer, answer))
	case f == asCSV:
		err = cmp.Or(s.exact, s.table).writeCSV(p.Stdout)
	case s.table != nil:
		err = p.printTable(s.table)
	default:
		_, err = io.WriteString(p.Stdout, s.text)
	}
	if f == asTable && err == nil {
		for _, t := range s.below {
			err = cmp.Or(err, p.printTable(t))
		}
		for _, note := range s.notes {
			p.say("%s", wrapText(note, p.Width, 0))
		}
	}
	return cmp.Or(err, s.found)
}

// cutOff is the finding that a list is only the beginning of what the server has.
func cutOff(is bool) error {
	if !is {
		return nil
	}
	return newFinding("there are more than the server lists at once")
}

func (p *Program) agentsCommand() *cobra.Command {
	cmd := queryCommand(p, &cobra.Command{
		Use: "agents", Short: "List agents and their sources, with lag, completeness and gaps",
		Example: "  bursar agents\n  bursar agents -format json",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Agents, error) { return api.Agents(ctx, nil) }, func(list v1.Agents, _ format, c *clock) page {
		return listPage(view.Agents(list, c.zone.String()), c)
	})
	cmd.AddCommand(p.agentRemoveCommand())
	return cmd
}

func (p *Program) conflictsCommand() *cobra.Command {
	return queryCommand(p, &cobra.Command{
		Use: "conflicts", Short: "List runs whose sources disagree about the start",
		Example: "  bursar conflicts\n  bursar conflicts -format csv",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Conflicts, error) {
		return api.Conflicts(ctx, nil)
	}, showList(view.Conflicts))
}
