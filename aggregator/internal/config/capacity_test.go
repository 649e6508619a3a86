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
	cluster := func(members string) string {
		return `{"cluster":[{"name":"x"` + members + `}]}`
	}
	part := func(members string) string { return cluster(`,"capacity":[{` + members + `}]`) }
	for settings, want := range map[string]string{
		cluster(`,"colour":"red"`):                          `configuration: cluster "x": invalid setting; this program does not know "colour"`,
		cluster(`,"nodes":[{}]`):                            `does not know "nodes"`,
		cluster(`,"match":[1]`):                             `match: `,
		cluster(`,"match":{"a":[]}`):                        `a has no values`,
		cluster(`,"sources":["x"]`):                         `not a source`,
		cluster(`,"su_factor":"2000"`):                      `invalid value for "su_factor"; must be more than 0 and at most 1000`,
		cluster(`},{"name":"x"`):                            `"x" is given more than once`,
		`{"cluster":{}}`:                                    `not a list`,
		`{"cluster":[{}]}`:                                  `name is missing`,
		part(`"from":"yesterday"`):                          `components is missing`,
		part(`"components":{"Cores":1},"from":"yesterday"`): `invalid date "yesterday"`,
		part(`"components":{"Cores":1},"from":"2026-01-02","to":"2026-01-02"`):        `not after 2026-01-02`,
		part(`"nodes":1000,"components":{"Cores":1125899906842624}`):                  `more than can be counted`,
		part(`"nodes":-1,"components":{"Cores":1}`):                                   `nodes: must be between 0 and 1000000, not -1`,
		part(`"nodes":null,"components":{"Cores":1}`):                                 `nodes: it is null`,
		part(`"components":{"Cores":-1}`):                                             `Cores must be between 0 and`,
		`{"cluster_group":[{"name":"a","groups":["b"]},{"name":"b","groups":["a"]}]}`: `include one another`,
	} {
		_, err := config.ReadShared(&clusterconfig.Document{Settings: []byte(settings)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", settings, err, want)
		}
	}
}
