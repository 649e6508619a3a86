package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/proto/record"
)

func day(t *testing.T, text string) record.Time {
	t.Helper()
	at, err := record.ParseTime(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestClustersAreCommittedAsTheyAreWritten(t *testing.T) {
	c, _, diags := config.Load("../../../hcl/examples/aggregator-clusters.hcl")
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	committed, err := clusterconfig.Decode(c.Shared().Encode())
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.ReadShared(committed)
	if err != nil {
		t.Fatal(err)
	}
	want := accounting.CapacityPlan{
		Clusters: []accounting.Cluster{{
			Name: "nemo", Match: []accounting.NodeMatch{{Key: "site_id", Values: []string{"nemo"}}},
			Parts: []accounting.ClusterPart{{Name: "before Slurm was asked", From: day(t, "2019-07-01T00:00:00Z"), To: day(t, "2026-03-12T00:00:00Z"), Components: map[string]int64{"Cores": 15360, "Memory": 61440000}}},
		}, {
			Name: "katana-gpu", Match: []accounting.NodeMatch{{Key: "host", Values: []string{"gpu-*", "kat-gpu*"}}, {Key: "site_id", Values: []string{"katana"}}},
			Parts: []accounting.ClusterPart{
				{Name: "A100 nodes", From: day(t, "2024-01-31T13:00:00Z"), To: record.None, Components: map[string]int64{"Cores": 256, "GPUs": 32, "GPUs:a100": 32}, Factor: 2_700_000_000},
				{Name: "H100 nodes", From: day(t, "2025-09-14T14:00:00Z"), To: record.None, Components: map[string]int64{"Cores": 256, "GPUs": 32, "GPUs:h100": 32}, Factor: 4_000_000_000},
			},
		}, {
			Name: "katana", Match: []accounting.NodeMatch{{Key: "site_id", Values: []string{"katana"}}}, Sources: []string{"kat-head/gridengine/katana"}, Factor: 1_900_000_000,
			Parts: []accounting.ClusterPart{{From: day(t, "2012-10-05T00:00:00Z"), To: record.None, Components: map[string]int64{"Cores": 288, "Memory": 2304000}}},
		}},
		Groups: []accounting.NodeGroup{{Name: "all", Clusters: []string{"nemo"}, Groups: []string{"south"}}, {Name: "south", Clusters: []string{"katana", "katana-gpu"}}},
	}
	if d := cmp.Diff(want, s.Capacity); d != "" {
		t.Error(d)
	}
}

// TestACommittedClusterThatMakesNoSenseIsRefused has what no file of this program
// gives, but another one may have committed.
func TestACommittedClusterThatMakesNoSenseIsRefused(t *testing.T) {
	block := func(set func(b *clusterconfig.Block)) *clusterconfig.Document {
		b := clusterconfig.Block{Type: "cluster", Labels: []string{"x"}}
		set(&b)
		return clusterconfig.New(b)
	}
	part := func(values map[string]any) *clusterconfig.Document {
		return block(func(b *clusterconfig.Block) {
			inner := clusterconfig.Block{Type: "capacity"}
			for name, v := range values {
				inner.Set(name, v, "")
			}
			b.Blocks = []clusterconfig.Block{inner}
		})
	}
	group := func(name, member string) clusterconfig.Block {
		b := clusterconfig.Block{Type: "cluster_group", Labels: []string{name}}
		b.Set("groups", []string{member}, "")
		return b
	}
	for want, d := range map[string]*clusterconfig.Document{
		`does not know "colour"`:             block(func(b *clusterconfig.Block) { b.Set("colour", "red", "") }),
		`does not know "nodes"`:              block(func(b *clusterconfig.Block) { b.Blocks = []clusterconfig.Block{{Type: "nodes"}} }),
		`match: [1]`:                         block(func(b *clusterconfig.Block) { b.Set("match", []int{1}, "") }),
		`invalid meta key "a" or its values`: block(func(b *clusterconfig.Block) { b.Set("match", map[string][]string{"a": {}}, "") }),
		`no source`:                          block(func(b *clusterconfig.Block) { b.Set("sources", []string{"x"}, "") }),
		`su_factor: 2000 is no factor`:       block(func(b *clusterconfig.Block) { b.Set("su_factor", "2000", "") }),
		`no day and no instant`:              part(map[string]any{"from": "yesterday"}),
		`not after 2026-01-02`:               part(map[string]any{"from": "2026-01-02", "to": "2026-01-02"}),
		`more than can be counted`:           part(map[string]any{"nodes": 1000, "components": map[string]int64{"Cores": 1 << 50}}),
		`0 is no number of nodes`:            part(map[string]any{"nodes": 0}),
		`Cores is -1`:                        part(map[string]any{"components": map[string]int64{"Cores": -1}}),
		`include one another`:                clusterconfig.New(group("a", "b"), group("b", "a")),
	} {
		if _, err := config.ReadShared(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
