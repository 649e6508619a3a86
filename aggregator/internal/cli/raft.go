package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) raftCommand() *cobra.Command {
	return group("raft", "List and change cluster members",
		"  bursar operator raft list-peers\n  bursar operator raft remove 7f1c5d0e-0000-4000-8000-000000000000",
		p.listPeersCommand(), p.addPeerCommand(), p.removePeerCommand(), p.transferCommand(), p.raftInspectCommand())
}

func (p *Program) listPeersCommand() *cobra.Command {
	return p.look(&cobra.Command{
		Use: "list-peers", Short: "List the members of the cluster",
		Long: `List the members of the cluster as the node that is asked knows them, also
without a quorum. MATCH is the newest entry that the leader knows a member to
hold, LAST CONTACT when it last answered the leader; other nodes do not know.`,
		Example: "  bursar operator raft list-peers\n  bursar operator raft list-peers -format json",
	}, resource{path: "/v1/cluster/members", show: func(answer json.RawMessage, f format) error {
		var list v1.Members
		if err := json.Unmarshal(answer, &list); err != nil {
			return err
		}
		t := newTable("NAME", "ID", "ADDRESS", "STATE", ">APPLIED", "?>MATCH", "?LAST CONTACT", "?VERSION")
		for _, m := range list.Members {
			t.add(dash(m.Name), m.ID, m.Address, memberState(&m), count(m.Applied), count(m.Match), instant(m.LastContact), dash(m.Version))
		}
		return p.show(f, t, answer)
	}})
}

func memberState(m *v1.Member) string {
	switch {
	case m.Leader:
		return "leader"
	case m.Voter:
		return "voter"
	}
	return "non-voter"
}

func count(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

// change makes a command that changes the cluster.
func (p *Program) change(cmd *cobra.Command, do func(c *client.Client, args []string, answer any) error) *cobra.Command {
	conn := p.connect(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c, err := conn.open(p)
		if err != nil {
			return err
		}
		defer c.Close()
		var answer struct {
			Message string `json:"message"`
		}
		if err := do(c, args, &answer); err != nil {
			return err
		}
		p.say("%s", printable(answer.Message))
		return nil
	}
	return cmd
}

func (p *Program) addPeerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add ID ADDRESS", Short: "Make a new, empty node a member",
		Long: `Make a new, empty node a member: without a vote at first, and with one as soon
as it has caught up. ID is what the node wrote into its log at its start, ADDRESS
is its raft listener. Nodes that all others have in their configuration are added
without this command.`,
		Example: "  bursar operator raft add 7f1c5d0e-0000-4000-8000-000000000000 agg4.example.org:8701",
		Args:    cobra.ExactArgs(2),
	}
	return p.change(cmd, func(c *client.Client, args []string, answer any) error {
		return c.PostJSON(cmd.Context(), "/v1/cluster/members", map[string]string{"id": args[0], "address": args[1]}, answer)
	})
}

func (p *Program) removePeerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove ID", Short: "End the membership of a node that is gone for good",
		Long: `End the membership of a node that is gone for good. It is refused where the
nodes that answer would be no majority of those that stay. The node can come back
only as a new one, with its data folder emptied.`,
		Example: "  bursar operator raft remove 7f1c5d0e-0000-4000-8000-000000000000",
		Args:    cobra.ExactArgs(1),
	}
	return p.change(cmd, func(c *client.Client, args []string, answer any) error {
		return c.Do(cmd.Context(), http.MethodDelete, "/v1/cluster/members/"+url.PathEscape(args[0]), nil, answer)
	})
}

func (p *Program) transferCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "transfer-leader", Short: "Hand the leadership to another node",
		Long: `Hand the leadership to the member that is furthest, for example before the
leader's machine is stopped. A daemon that is asked to stop does so by itself.`,
		Example: "  bursar operator raft transfer-leader",
		Args:    cobra.NoArgs,
	}
	return p.change(cmd, func(c *client.Client, _ []string, answer any) error {
		if err := c.PostJSON(cmd.Context(), "/v1/cluster/leader:transfer", nil, answer); err != nil {
			return fmt.Errorf("transfer the leadership: %w", err)
		}
		return nil
	})
}
