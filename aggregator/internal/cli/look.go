package cli

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// resource is what a command shows of /v1.
type resource struct {
	path string
	// query is what is asked for: its error is about the arguments and options. Nil asks
	// for all.
	query func(args []string) (url.Values, error)
	show  func(answer json.RawMessage, f format) error
}

// look makes a command read one resource and show it as a table, JSON or CSV. Without
// Args of its own it takes none.
func (p *Program) look(cmd *cobra.Command, r resource) *cobra.Command {
	var f format
	conn := p.connect(cmd)
	formatFlag(cmd, &f, asTable, asJSON, asCSV)
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var query url.Values
		if r.query != nil {
			var err error
			if query, err = r.query(args); err != nil {
				return usageError(cmd, err)
			}
		}
		c, err := conn.open(p)
		if err != nil {
			return err
		}
		defer c.Close()
		var answer json.RawMessage
		if err := c.GetJSON(cmd.Context(), r.path, query, &answer); err != nil {
			return err
		}
		return r.show(answer, f)
	}
	return cmd
}

// given asks with those of the parameters that are not empty.
func given(parameters map[string]*string) func([]string) (url.Values, error) {
	return func([]string) (url.Values, error) {
		query := url.Values{}
		for name, value := range parameters {
			if *value != "" {
				query.Set(name, *value)
			}
		}
		return query, nil
	}
}

func (p *Program) agentsCommand() *cobra.Command {
	return p.look(&cobra.Command{
		Use: "agents", Short: "List agents and their sources, with lag, completeness and gaps",
		Example: "  bursar agents\n  bursar agents -format json",
	}, resource{path: "/v1/agents", show: func(answer json.RawMessage, f format) error {
		var list v1.Agents
		if err := json.Unmarshal(answer, &list); err != nil {
			return err
		}
		if err := p.show(f, agentTable(list.Agents), answer); err != nil {
			return err
		}
		for _, a := range list.Agents {
			if f == asTable {
				p.troubles(&a)
			}
		}
		return nil
	}})
}

// troubles says what is wrong with an agent, and what to do.
func (p *Program) troubles(a *v1.Agent) {
	if a.Error != "" {
		p.say("%s: %s", printable(a.Name), printable(a.Error))
	}
	if a.Remedy != "" {
		p.say("%s: do first: %s", printable(a.Name), printable(a.Remedy))
	}
	for _, s := range a.Sources {
		switch {
		case s.Error != "":
			p.say("%s: %s is not collected: %s", printable(a.Name), printable(sourceName(&s)), printable(s.Error))
		case s.Silent:
			p.say("%s: %s says nothing for longer than is usual; it is complete to %s", printable(a.Name), printable(sourceName(&s)), instant(s.CompleteTo))
		}
	}
	if a.Gaps > 0 {
		p.say("%s: something is missing for good: bursar gaps -agent %s", printable(a.Name), printable(a.Name))
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
	return p.look(&cobra.Command{
		Use: "conflicts", Short: "List runs about whose start origins disagree",
		Example: "  bursar conflicts\n  bursar conflicts -format csv",
	}, resource{path: "/v1/conflicts", show: func(answer json.RawMessage, f format) error {
		var list v1.Conflicts
		if err := json.Unmarshal(answer, &list); err != nil {
			return err
		}
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
		return p.listing(f, t, answer, list.More)
	}})
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
