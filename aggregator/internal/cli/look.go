package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// display shows an answer; raw is the same as it came, which -format json prints.
type display[T any] func(answer T, raw json.RawMessage, f format) error

// look makes a command ask one route and show the answer as a table, JSON or CSV. Without
// Args of its own it takes none.
func look[T any](p *Program, cmd *cobra.Command, ask func(ctx context.Context, api v1.API, args []string) (T, error), show display[T]) *cobra.Command {
	var f format
	conn := p.connect(cmd)
	formatFlag(cmd, &f, asTable, asJSON, asCSV)
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return asked(cmd.Context(), p, conn, f, func(ctx context.Context, api v1.API) (T, error) { return ask(ctx, api, args) }, show)
	}
	return cmd
}

// asked asks one route and shows the answer.
func asked[T any](ctx context.Context, p *Program, conn *connection, f format, ask func(ctx context.Context, api v1.API) (T, error), show display[T]) error {
	c, err := conn.open(p)
	if err != nil {
		return err
	}
	defer c.Close()
	heard := hearing{Client: c}
	answer, err := ask(ctx, v1.API{Caller: &heard})
	if err != nil {
		return err
	}
	return show(answer, heard.raw, f)
}

// hearing keeps the last answer as it came.
type hearing struct {
	*client.Client

	raw json.RawMessage
}

// Call implements v1.Caller.
func (h *hearing) Call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	if err := h.Client.Call(ctx, method, path, query, in, &h.raw); err != nil {
		return err
	}
	return json.Unmarshal(h.raw, out)
}

func (p *Program) agentsCommand() *cobra.Command {
	return look(p, &cobra.Command{
		Use: "agents", Short: "List agents and their sources, with lag, completeness and gaps",
		Example: "  bursar agents\n  bursar agents -format json",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Agents, error) { return api.Agents(ctx, nil) }, func(list v1.Agents, raw json.RawMessage, f format) error {
		if err := p.show(f, agentTable(list.Agents), raw); err != nil {
			return err
		}
		for _, a := range list.Agents {
			if f == asTable {
				p.troubles(&a)
			}
		}
		return nil
	})
}

// troubles says what is wrong with an agent, and what to do.
func (p *Program) troubles(a *v1.Agent) {
	if a.Error != "" {
		p.say("%s: %s", a.Name, a.Error)
	}
	if a.Remedy != "" {
		p.say("%s: do first: %s", a.Name, a.Remedy)
	}
	for _, s := range a.Sources {
		switch {
		case s.Error != "":
			p.say("%s: %s is not collected: %s", a.Name, sourceName(&s), s.Error)
		case s.Silent:
			p.say("%s: %s says nothing for longer than is usual; it is complete to %s", a.Name, sourceName(&s), instant(s.CompleteTo))
		}
	}
	if a.Gaps > 0 {
		p.say("%s: something is missing for good: bursar gaps -agent %s", a.Name, a.Name)
	}
}

func agentTable(list []v1.Agent) *table {
	t := newTable("AGENT", "?ADDRESS", "STATE", "?LAST CONTACT", "?>BEHIND", "?>GAPS", "SOURCE", ">RECORDS", "?>QUARANTINED", "COMPLETE TO")
	for _, a := range list {
		head := []string{a.Name, dash(a.Address), agentState(&a), instant(a.LastContact), strconv.FormatUint(a.Behind, 10), strconv.Itoa(a.Gaps)}
		for _, s := range a.Sources {
			t.add(append(head[:6:6], sourceName(&s), strconv.FormatInt(s.Counts.Added, 10), strconv.FormatInt(s.Counts.Quarantined, 10), instant(s.CompleteTo))...)
		}
		if len(a.Sources) == 0 {
			t.add(append(head[:6:6], "-", "0", "0", "-")...)
		}
	}
	return t
}

func sourceName(s *v1.AgentSource) string {
	if s.Type == "" && s.Label == "" {
		return "pushed"
	}
	return s.Type + "/" + s.Label
}

// agentState is how the agent is doing, in a word or two.
func agentState(a *v1.Agent) string {
	switch {
	case a.Import:
		return "import"
	case !a.Configured:
		return "not configured"
	case a.Connected && a.Behind > 0:
		return "catching up"
	case a.Connected:
		return "up to date"
	case a.Remedy != "":
		return "damaged"
	case a.Error != "":
		return "unreachable"
	}
	return "connecting"
}

func (p *Program) conflictsCommand() *cobra.Command {
	return look(p, &cobra.Command{
		Use: "conflicts", Short: "List runs about whose start origins disagree",
		Example: "  bursar conflicts\n  bursar conflicts -format csv",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Conflicts, error) {
		return api.Conflicts(ctx, nil)
	}, func(list v1.Conflicts, raw json.RawMessage, f format) error {
		t := newTable("RECORD", "ORIGIN", "?RANK", "START", "?STOP", "?OBSERVED")
		for _, e := range list.Conflicts {
			for _, h := range e.Holdings {
				start, stop := "-", "-"
				if h.Record != nil {
					start, stop = instant(h.Record.StartTime), instant(h.Record.StopTime)
				}
				t.add(e.RecordID, h.Origin, h.Rank, start, stop, instant(h.Observed))
			}
		}
		return p.listing(f, t, raw, list.More)
	})
}

// listing shows a list of which the server may have sent only the beginning,
// which is a finding.
func (p *Program) listing(f format, t *table, answer json.RawMessage, more bool) error {
	if err := p.show(f, t, answer); err != nil {
		return err
	}
	if more {
		return found("there are more than the server lists at once")
	}
	return nil
}
