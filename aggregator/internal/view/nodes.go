package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Nodes lists the nodes of the cluster as one of them knows them.
func Nodes(a v1.ClusterNodes) List {
	l := List{Name: "nodes", Title: "The nodes of the cluster, as " + a.Node + " knows them", Empty: "This node has not joined a cluster yet.", Columns: []Column{
		textColumn("node"), stateColumn("state"), textColumn("details").fitted(IfAny), textColumn("address"), numberColumn("applied"), numberColumn("behind"), stateColumn("disk"), textColumn("clock"),
		timeColumn("certificate_until"), textColumn("version"), ageColumn("last_heard"),
	}}
	for _, n := range sortNodes(a.Nodes) {
		heard, clock := timeCell(n.LastContact), ""
		switch {
		case n.Self:
			heard = v1.Words("this node")
		case n.Heard:
			clock = fmt.Sprintf("%+.2f s", n.ClockOffsetSeconds)
		}
		state, details := nodeState(&n)
		l.addCells(textCell(n.Name), textCell(state), textCell(details), textCell(n.Address), countCell(n.AppliedIndex), knownCount(n.Behind), textCell(diskState(&n)), textCell(clock), timeCell(n.CertificateUntil), textCell(n.Version), heard)
	}
	return l
}

// sortNodes returns nodes by name.
func sortNodes(list []v1.Node) []v1.Node {
	return slices.SortedStableFunc(slices.Values(list), func(a, b v1.Node) int { return cmp.Compare(a.Name, b.Name) })
}

// nodeState is what a node does in the cluster, with what keeps it from more.
func nodeState(n *v1.Node) (state, details string) {
	if n.Paused != "" {
		details = "pulls nothing: " + n.Paused
	}
	switch {
	case !n.Heard:
		return "unreachable", details
	case n.Fenced != "":
		return "fenced", n.Fenced
	}
	return memberState(n.Role == "leader", n.Voter), details
}

// memberState is what a member does in the cluster.
func memberState(leader, voter bool) string {
	switch {
	case leader:
		return "leader"
	case voter:
		return "follower"
	}
	return "joining"
}

// diskState is how full the disk of a node is; "" where that is not known.
func diskState(n *v1.Node) string {
	if n.DiskSizeBytes == 0 {
		return ""
	}
	level := map[string]string{"": "unknown", "warn": "warning", "readonly": "read-only"}[n.DiskLevel]
	text := fmt.Sprintf("%s: %d %% free of %s", cmp.Or(level, n.DiskLevel), 100*n.DiskFreeBytes/n.DiskSizeBytes, Size(n.DiskSizeBytes))
	if n.BallastBytes > 0 {
		text += ", " + Size(n.BallastBytes) + " of ballast"
	}
	return text
}

// ConfigDifferences lists the nodes whose files differ from the active configuration.
func ConfigDifferences(a v1.ClusterNodes) List {
	l := List{Name: "differences", Title: "Nodes whose files differ from the active configuration", Empty: "The files of all reachable nodes match the active configuration.", Columns: []Column{
		textColumn("node"), idColumn("differs_in").titled("Its files differ in"), commandColumn("do").titled("What to do"),
	}}
	for _, n := range sortNodes(a.Nodes) {
		if len(n.ConfigDiffers) > 0 {
			l.addCells(textCell(n.Name), textCell(strings.Join(n.ConfigDiffers, "; ")), textCell("bursar config diff   # on "+n.Name))
		}
	}
	return l
}

// Snapshots lists the nodes that save snapshots by themselves.
func Snapshots(a v1.ClusterNodes) List {
	l := List{Name: "snapshots", Title: "Scheduled snapshots", Columns: []Column{
		textColumn("node"), stateColumn("state"), textColumn("error").fitted(IfAny), timeColumn("newest"), bytesColumn("size"), textColumn("every"), idColumn("folder"),
	}}
	for _, n := range sortNodes(a.Nodes) {
		b := n.Backup
		if b == nil {
			continue
		}
		state, size := "saved", countCell(b.Bytes)
		switch {
		case b.Error != "":
			state = "failing"
		case b.Last.IsZero():
			state = "none yet"
		}
		if b.Last.IsZero() {
			size = v1.Cell{}
		}
		l.addCells(textCell(n.Name), textCell(state), textCell(b.Error), timeCell(b.Last), size, textCell(Span(time.Duration(b.EverySeconds*float64(time.Second)))), textCell(b.Path))
	}
	return l
}

// Members lists the members of the cluster's list, as one node knows them.
func Members(a v1.Members) List {
	l := List{Name: "members", Title: "Members of the cluster", Empty: "This node has not joined a cluster yet.", Columns: []Column{
		textColumn("name"), idColumn("id"), textColumn("address"), stateColumn("state"), numberColumn("applied"), numberColumn("match").fitted(LeaveOut), timeColumn("last_contact").fitted(LeaveOut), textColumn("version").fitted(LeaveOut),
	}}
	known := func(index uint64) v1.Cell {
		if index == 0 {
			return v1.Cell{}
		}
		return countCell(index)
	}
	for _, m := range a.Members {
		l.addCells(textCell(m.Name), textCell(m.ID), textCell(m.Address), textCell(memberState(m.Leader, m.Voter)), known(m.Applied), known(m.Match), timeCell(m.LastContact), textCell(m.Version))
		if m.DialledAddress != "" && m.DialledAddress != m.Address {
			l.addNote("%s: the queried node dials it at %s, which raft.peers of its configuration has", m.Name, m.DialledAddress)
		}
	}
	return l
}
