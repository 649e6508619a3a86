package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
)

// inspected is what a data folder holds, as json.
type inspected struct {
	Dir        string          `json:"dir"`
	ID         string          `json:"id"`
	Term       uint64          `json:"term"`
	Last       uint64          `json:"last"`
	LastTerm   uint64          `json:"last_term"`
	Flushed    uint64          `json:"flushed"`
	Recovering bool            `json:"recovering"`
	Furthest   bool            `json:"furthest"`
	Members    []inspectedPeer `json:"members"`
}

type inspectedPeer struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
}

func (p *Program) raftInspectCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use: "inspect DIR…", Short: "Show how current stopped nodes are",
		Long: `Read and verify the raft logs in the data folders of stopped nodes, show how
current each is, and mark the most current one: recover from that one when the others
are lost. Folders of other machines can be copied here first. Nothing is changed.`,
		Example: "  bursar operator raft inspect /var/lib/bursar\n  bursar operator raft inspect /mnt/agg1 /mnt/agg2",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := inspectFolders(args)
			if err != nil {
				return err
			}
			t := newTable("DIR", "ID", ">LAST ENTRY", ">OF TERM", ">TERM", ">FLUSHED", ">MEMBERS", "STATE")
			number := func(n uint64) string { return strconv.FormatUint(n, 10) }
			for _, n := range list {
				t.addRow(n.Dir, n.ID, number(n.Last), number(n.LastTerm), number(n.Term), number(n.Flushed), strconv.Itoa(len(n.Members)), n.stateText())
			}
			return p.writeAnswer(map[string]any{"nodes": list}, f, page{table: t})
		},
	}
	formatFlag(cmd, &f, asTable, asJSON, asCSV)
	return cmd
}

func (n *inspected) stateText() string {
	switch {
	case n.Recovering:
		return "a recovery was cut short"
	case n.Furthest:
		return "furthest"
	}
	return "-"
}

// inspectFolders inspects data folders and marks those of which none is further.
func inspectFolders(dirs []string) ([]inspected, error) {
	found := make([]cluster.Inspection, len(dirs))
	list := make([]inspected, len(dirs))
	for i, dir := range dirs {
		var err error
		if found[i], err = cluster.Inspect(dir); err != nil {
			return nil, fmt.Errorf("%s (does the aggregator run?): %w", dir, err)
		}
		n := &found[i]
		list[i] = inspected{Dir: dir, ID: n.ID, Term: n.Term, Last: n.Last, LastTerm: n.LastTerm, Flushed: n.Flushed, Recovering: n.Recovering, Members: []inspectedPeer{}}
		for _, m := range n.Members {
			list[i].Members = append(list[i].Members, inspectedPeer{m.ID, m.Addr, m.Voter})
		}
	}
	for i := range list {
		list[i].Furthest = true
		for k := range found {
			list[i].Furthest = list[i].Furthest && !found[k].Further(found[i])
		}
	}
	return list, nil
}

func (p *Program) recoverCommand() *cobra.Command {
	var paths []string
	var dir, address string
	var yes bool
	cmd := &cobra.Command{
		Use: "recover", Short: "Make one node the whole cluster after the others are permanently lost",
		Long: `Make this stopped node the only member of its cluster, after the other nodes were
permanently lost and no majority is left. It keeps its records and gets a new id.
Other nodes join it as new ones, with their data folders moved away; nodes that return
with their old data are refused.

If several nodes are left, recover the most current one: "bursar operator raft
inspect" shows which. Data that only the lost nodes had confirmed is lost with them,
and comes back from the agents as far as they retain it.`,
		Example: "  systemctl stop bursar && bursar operator recover -config /etc/bursar/aggregator.hcl",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" || address == "" {
				conf, file, diags := config.Load(paths...)
				if diags.HasErrors() {
					return troubled{diags, file.Sources}
				}
				a := &conf.Aggregator
				dir, address = firstNonEmpty(dir, a.DataDir.Path), firstNonEmpty(address, firstNonEmpty(a.PeerAddresses()[a.Name.Value], a.Name.Value))
			}
			return preserveOwner(dir, func() error { return p.recoverNode(dir, address, yes) })
		},
	}
	cmd.Flags().StringArrayVar(&paths, "config", []string{defaultConfig}, "`file` or directory with the node's configuration")
	cmd.Flags().StringVar(&dir, "data-dir", "", "the node's data `folder`, instead of the one that its configuration names")
	cmd.Flags().StringVar(&address, "raft-address", "", "`host:port` by which other nodes will reach it, instead of what its configuration says")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().Lookup("config").DefValue = defaultConfig
	return cmd
}

func (p *Program) recoverNode(dir, address string, yes bool) error {
	list, err := inspectFolders([]string{dir})
	if err != nil {
		return err
	}
	n := &list[0]
	if len(n.Members) == 0 && !n.Recovering {
		return errors.New(dir + " belongs to no cluster; there is nothing to recover")
	}
	p.say("%s: node %s, last entry %d of term %d, %d members", dir, n.ID, n.Last, n.LastTerm, len(n.Members))
	for _, m := range n.Members {
		p.say("  %s at %s", m.ID, m.Address)
	}
	if err := p.confirm(yes, "this node becomes the only member, at "+address+"; no other node of the old cluster may ever start with its old data"); err != nil {
		return err
	}
	if err := cluster.Recover(cluster.Config{DataDir: dir}, []cluster.Server{{Addr: address}}); err != nil {
		return err
	}
	id, err := cluster.Identity(dir)
	if err != nil {
		return err
	}
	p.say("recovered: node %s is the whole cluster; start it, and then the others with empty data folders", id)
	return nil
}
