package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) raftCommand() *cobra.Command {
	return groupCommand("raft", "List and change cluster members",
		"  bursar operator raft list-peers\n  bursar operator raft remove 7f1c5d0e-0000-4000-8000-000000000000",
		p.listPeersCommand(), p.addPeerCommand(), p.removePeerCommand(), p.transferCommand(), p.raftInspectCommand())
}

func (p *Program) listPeersCommand() *cobra.Command {
	return queryCommand(p, &cobra.Command{
		Use: "list-peers", Short: "List the members of the cluster",
		Long: `List the members of the cluster as the queried node knows them, also without a
quorum. MATCH is the newest entry that the leader knows a member to hold, LAST CONTACT
when the member last answered the leader; both are known to the leader only. ADDRESS is
that of the list of members: nodes dial each other at the address that raft.peers of
their configuration has for a name, and a leader makes the list follow its own.`,
		Example: "  bursar operator raft list-peers\n  bursar operator raft list-peers -format json",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Members, error) { return api.ListMembers(ctx) }, showList(view.Members))
}

// changeCommand completes a command that orders a change of the cluster and says what was done.
func (p *Program) changeCommand(cmd *cobra.Command, do func(ctx context.Context, api v1.API, args []string) (v1.Message, error)) *cobra.Command {
	conn := p.connectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.sendOrder(conn, func(api v1.API) (v1.Message, error) { return do(cmd.Context(), api, args) })
	}
	return cmd
}

func (p *Program) addPeerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add ID ADDRESS", Short: "Make a new, empty node a member",
		Long: `Make a new, empty node a member: without a vote at first, and with one as soon
as it has caught up. ID is in the node's log since its start, ADDRESS is its raft
listener. Nodes that are in the configuration of all others join without this
command.`,
		Example: "  bursar operator raft add 7f1c5d0e-0000-4000-8000-000000000000 agg4.example.org:8701",
		Args:    cobra.ExactArgs(2),
	}
	return p.changeCommand(cmd, func(ctx context.Context, api v1.API, args []string) (v1.Message, error) {
		return api.AddMember(ctx, v1.NewMember{ID: args[0], Address: args[1]})
	})
}

func (p *Program) removePeerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove ID", Short: "Remove a node that is permanently lost",
		Long: `Remove a node that is permanently lost. This is refused unless
a majority of the remaining nodes answers. The node can return only as a new one, with
an empty data folder.`,
		Example: "  bursar operator raft remove 7f1c5d0e-0000-4000-8000-000000000000",
		Args:    cobra.ExactArgs(1),
	}
	return p.changeCommand(cmd, func(ctx context.Context, api v1.API, args []string) (v1.Message, error) {
		return api.RemoveMember(ctx, args[0])
	})
}

func (p *Program) transferCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "transfer-leader", Short: "Hand the leadership to another node",
		Long: `Hand the leadership to the most current member, for example before the leader's
machine is stopped. A daemon that stops in order does so by itself.`,
		Example: "  bursar operator raft transfer-leader",
		Args:    cobra.NoArgs,
	}
	return p.changeCommand(cmd, func(ctx context.Context, api v1.API, _ []string) (v1.Message, error) {
		answer, err := api.TransferLeader(ctx)
		if err != nil {
			return answer, fmt.Errorf("transfer the leadership: %w", err)
		}
		return answer, nil
	})
}
