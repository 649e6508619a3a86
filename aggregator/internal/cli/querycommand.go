package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
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
		out := page{table: c.agentTable(list.Agents)}
		for _, a := range list.Agents {
			out.notes = append(out.notes, c.agentNotes(&a)...)
		}
		return out
	})
	cmd.AddCommand(p.agentRemoveCommand())
	return cmd
}

// agentNotes say what is wrong with an agent, and what to do.
func (c *clock) agentNotes(a *v1.Agent) (notes []string) {
	if a.Error != "" {
		notes = append(notes, a.Name+": "+a.Error)
	}
	if a.Remedy != "" {
		notes = append(notes, a.Name+": do first: "+a.Remedy)
	}
	for _, s := range a.Sources {
		switch {
		case s.Error != "":
			notes = append(notes, fmt.Sprintf("%s: %s is not collected: %s", a.Name, sourceName(&s), s.Error))
		case s.Silent:
			notes = append(notes, fmt.Sprintf("%s: %s says nothing for longer than is usual; it is complete to %s", a.Name, sourceName(&s), c.instantText(s.CompleteTo)))
		}
	}
	if a.Joined && !a.Configured {
		notes = append(notes, a.Name+": it joined by a token, and the leader does not pull from it yet")
	}
	if a.Gaps > 0 {
		notes = append(notes, fmt.Sprintf("%s: something is missing for good: bursar gaps -agent %s", a.Name, a.Name))
	}
	return notes
}

func (c *clock) agentTable(list []v1.Agent) *table {
	t := newTable("AGENT", "?ADDRESS", "STATE", "?LAST CONTACT", "?>BEHIND", "?>GAPS", "SOURCE", "?SOURCE STATE", ">RECORDS", "?>QUARANTINED", "COMPLETE TO")
	for _, a := range list {
		head := []string{a.Name, agentPlace(&a), agentState(&a), c.instantText(a.LastContact), numberOrUnknown(a.Behind), strconv.Itoa(a.Gaps)}
		for _, s := range a.Sources {
			t.addRow(append(head[:6:6], sourceName(&s), orDash(s.State), strconv.FormatInt(s.Counts.Added, 10), strconv.FormatUint(s.Quarantined, 10), c.instantText(s.CompleteTo))...)
		}
		if len(a.Sources) == 0 {
			t.addRow(append(head[:6:6], "-", "-", "0", "0", "-")...)
		}
	}
	return t
}

// agentPlace is where the agent listens.
func agentPlace(a *v1.Agent) string {
	if a.DialsIn {
		return "dials in"
	}
	return orDash(a.Address)
}

func sourceName(s *v1.AgentSource) string {
	if s.Type == "" && s.Label == "" {
		return "pushed"
	}
	return s.Type + "/" + s.Label
}

// agentState is how the agent is doing, in a word or two.
func agentState(a *v1.Agent) string {
	connected := a.Connected != nil && *a.Connected
	switch {
	case a.Import:
		return "import"
	case a.Connected == nil && a.Error != "": // no leader says
		return notKnown
	case !a.Configured:
		return "not configured"
	case connected && a.Behind != nil && *a.Behind > 0:
		return "catching up"
	case connected:
		return "up to date"
	case a.Remedy != "":
		return "damaged"
	case a.Error != "":
		return "unreachable"
	}
	return "connecting"
}

func (p *Program) conflictsCommand() *cobra.Command {
	return queryCommand(p, &cobra.Command{
		Use: "conflicts", Short: "List runs whose sources disagree about the start",
		Example: "  bursar conflicts\n  bursar conflicts -format csv",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Conflicts, error) {
		return api.Conflicts(ctx, nil)
	}, showList(view.Conflicts))
}
