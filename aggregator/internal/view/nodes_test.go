package view_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestNodes_Listed_SayHowEachIsDoing(t *testing.T) {
	behind := uint64(7)
	nodes := v1.ClusterNodes{Node: "agg1", Nodes: []v1.Node{
		{
			Name: "agg2", Address: "agg2:8701", Role: "follower", Voter: true, Heard: true, LastContact: midday(), AppliedIndex: 12345, Behind: &behind, DiskSizeBytes: 100 << 30, DiskFreeBytes: 4 << 30, DiskLevel: "low", BallastBytes: 1 << 30,
			ClockOffsetSeconds: -0.5, Paused: "full", ConfigDiffers: []string{"agent head1", "prices"},
		},
		{
			Name: "agg1", Address: "agg1:8701", Role: "leader", Voter: true, Self: true, Heard: true, DiskSizeBytes: 100, DiskFreeBytes: 60, DiskLevel: "normal", CertificateUntil: midday(), Version: "1.2",
			Backup: &v1.NodeBackup{Path: "/backup", EverySeconds: 86400, Last: midday(), Bytes: 3 << 20},
		},
		{Name: "agg4", Role: "joins", Heard: true, Fenced: "it differs", Backup: &v1.NodeBackup{Path: "/b", EverySeconds: 3600, Error: "no space"}},
		{Name: "agg3", Role: "follower", Voter: true, LastContact: midday(), Backup: &v1.NodeBackup{Path: "/c", EverySeconds: 3600}},
		{Name: "agg5", Role: "joins", Heard: true, DiskSizeBytes: 100, DiskLevel: "readonly"},
	}}
	compareList(t, view.Nodes(nodes), `
agg1|leader|?|agg1:8701|0|?|normal: 60 % free of 100`+"\u202f"+`B|?|2026-03-01 12:00:00|1.2|this node|good
agg2|follower|pulls nothing: full|agg2:8701|12`+"\u202f"+`345|7|low: 4 % free of 100`+"\u202f"+`GiB, 1.0`+"\u202f"+`GiB of ballast|-0.50 s|?|?|2026-03-01 12:00:00|bad
agg3|unreachable|?|?|0|?|?|?|?|?|2026-03-01 12:00:00|bad
agg4|fenced|it differs|?|0|?|?|+0.00 s|?|?|?|bad
agg5|joining|?|?|0|?|read-only: 0 % free of 100`+"\u202f"+`B|+0.00 s|?|?|?|bad`)
	compareList(t, view.ConfigDifferences(nodes), "agg2|agent head1; prices|bursar config diff   # on agg2|dim")
	compareList(t, view.Snapshots(nodes), `
agg1|saved|?|2026-03-01 12:00:00|3.0`+"\u202f"+`MiB|24 h 00 min|/backup|good
agg3|none yet|?|?|?|60 min|/c|dim
agg4|failing|no space|?|?|60 min|/b|bad`)
	compareList(t, view.Nodes(v1.ClusterNodes{}), "empty: This node has not joined a cluster yet.")
	compareList(t, view.ConfigDifferences(v1.ClusterNodes{}), "empty: The files of all reachable nodes match the active configuration.")
}

func TestMembers_Listed_NoteWhereTheyAreDialled(t *testing.T) {
	compareList(t, view.Members(v1.Members{Members: []v1.Member{
		{ID: "n1", Name: "agg1", Address: "agg1:8701", DialledAddress: "agg1:8701", Version: "1.2", Voter: true, Leader: true, Applied: 12345, Match: 7, LastContact: midday()},
		{ID: "n2", Name: "agg2", Address: "old:8701", DialledAddress: "agg2:8701", Voter: true},
		{ID: "n3", Address: "agg3:8701"},
	}}), `
agg1|n1|agg1:8701|leader|12`+"\u202f"+`345|7|2026-03-01 12:00:00|1.2|good
agg2|n2|old:8701|follower|?|?|?|?|dim
?|n3|agg3:8701|joining|?|?|?|?|dim
note: agg2: the queried node dials it at agg2:8701, which raft.peers of its configuration has`)
}
