package cluster_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

// recorded opens what a real Slurm printed.
func recorded(t testing.TB, name, version string) io.Reader {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+"-"+version+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReader(string(text))
}

func TestNodesAreReadAsEachVersionPrintsThem(t *testing.T) {
	// c1 and c2 are powered down in a cloud: 22.05 does not show such nodes. f1
	// is FUTURE. d1 is down, n3 drains, and the reason of both names CPUTot.
	all := []cluster.Node{
		{Name: "c1", Cores: 8, MemoryMB: 16000, Partitions: []string{"cloud"}},
		{Name: "c2", Cores: 8, MemoryMB: 16000, Partitions: []string{"cloud"}},
		{Name: "d1", Cores: 16, MemoryMB: 64000, GPUs: map[string]int64{"a100": 3, "v100": 1}, Partitions: []string{"cloud"}},
		{Name: "n1", Cores: 4, MemoryMB: 8000, GPUs: map[string]int64{"tesla": 2}, Partitions: []string{"compute", "gpu"}},
		{Name: "n2", Cores: 4, MemoryMB: 8000, Partitions: []string{"compute"}},
		{Name: "n3", Cores: 4, MemoryMB: 8000, Partitions: []string{"compute"}},
	}
	for version, want := range map[string][]cluster.Node{"22.05": all[2:], "24.11": all} {
		got, err := cluster.ReadNodes(recorded(t, "nodes", version))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func TestANodeThatCannotBeUnderstoodIsAnErrorAndNotLess(t *testing.T) {
	whole := "NodeName=a CPUTot=4 RealMemory=8000\n"
	for name, text := range map[string]string{
		"nothing":           "",
		"a cluster alone":   "CLUSTER: rig\n",
		"future nodes only": "NodeName=a CPUTot=4 RealMemory=8000 State=FUTURE\n",
		"no cores":          whole + "NodeName=b RealMemory=8000\n",
		"no memory":         whole + "NodeName=b CPUTot=4\n",
		"cores in words":    whole + "NodeName=b CPUTot=four RealMemory=8000\n",
		"negative":          whole + "NodeName=b CPUTot=-4 RealMemory=8000\n",
		"far too many":      whole + "NodeName=b CPUTot=9223372036854775807 RealMemory=8000\n",
		"cut":               whole + "NodeName=b CPUTot=4 RealMemory=80",
		"a strange GPU":     whole + "NodeName=b CPUTot=4 RealMemory=8000 Gres=gpu:a100:many\n",
	} {
		if got, err := cluster.ReadNodes(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %v without an error", name, got)
		}
	}
}

func TestGPUsAreCountedByModel(t *testing.T) {
	for gres, want := range map[string]map[string]int64{
		"(null)":            nil,
		"gpu":               {"": 1},
		"gpu:4":             {"": 4},
		"gpu:a100":          {"a100": 1},
		"gpu:3090:2":        {"3090": 2},
		"gpu:a100:4(S:0-1)": {"a100": 4},
		"gpu:a100:2(S:0,2),gpu:a100:1,gpu:v100:1":  {"a100": 3, "v100": 1},
		"gpu:a100_3g.20gb:2,shard:a100:16,nic:2":   {"a100_3g.20gb": 2},
		"gpu:tesla:no_consume:2":                   {"tesla": 2},
		"gpu:tesla:1K":                             {"tesla": 1024},
		"craynetwork:4,gpu:h100:8(IDX:0-3,5-7),x:": {"h100": 8},
	} {
		got, err := cluster.ReadNodes(strings.NewReader("NodeName=a CPUTot=4 RealMemory=8000 Gres=" + gres + "\n"))
		if err != nil {
			t.Errorf("%s: %v", gres, err)
		} else if diff := cmp.Diff(want, got[0].GPUs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", gres, diff)
		}
	}
}

// summary counts jobs by user, partition and account.
func summary(r io.Reader) (map[string]int, error) {
	got := map[string]int{}
	err := cluster.ReadQueue(r, func(j cluster.Job) {
		got[fmt.Sprintf("%s(%s) %s %s(%s) %s %t", j.User, j.UID, j.Partition, j.Group, j.GID, j.Account, j.Running)]++
	})
	return got, err
}

func TestTheQueueIsReadAsEachVersionPrintsIt(t *testing.T) {
	want := map[string]int{
		"alice(21001) compute alice(21001) physics true":  4, // one is suspended, two are tasks of an array
		"alice(21001) compute alice(21001) physics false": 3, // tasks of the array
		"alice(21001) gpu alice(21001) chem false":        1,
		"bob(21002) compute bob(21002) chem true":         1,
		"bob(21002) compute bob(21002) chem false":        2, // one is held after a requeue
		"bob(21002) compute,gpu bob(21002) chem false":    1,
	}
	for _, version := range []string{"22.05", "24.11"} {
		got, err := summary(recorded(t, "queue", version))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", version, err, diff)
		}
	}
}

func TestJobsThatAreOverDoNotCount(t *testing.T) {
	got, err := summary(strings.NewReader("CLUSTER: rig\na|1|p|COMPLETING|g|2|x\na|1|p|COMPLETED|g|2|x\na|1|p|CONFIGURING|g|2|x|y\n"))
	if diff := cmp.Diff(map[string]int{"a(1) p g(2) x|y true": 1}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestAQueueThatCannotBeUnderstoodIsAnErrorAndNotLess(t *testing.T) {
	for _, text := range []string{"a|1|p|RUNNING|g|2\n", "a|1|p|DANCING|g|2|x\n", "a|1|p|RUNNING|g|2|x"} {
		if got, err := summary(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %v without an error", text, got)
		}
	}
}

func TestAssociationsAreReadAsEachVersionPrintsThem(t *testing.T) {
	want := []cluster.Association{{"rig", "root", "root"}, {"rig", "alice", "chem"}, {"rig", "bob", "chem"}, {"rig", "alice", "physics"}}
	for _, version := range []string{"22.05", "24.11"} {
		got, err := cluster.ReadAssociations(recorded(t, "associations", version))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", version, err, diff)
		}
	}
	if _, err := cluster.ReadAssociations(strings.NewReader("rig|alice\n")); err == nil {
		t.Error("a row of two fields is no error")
	}
}

func TestTheClustersNameIsFound(t *testing.T) {
	text := "Configuration data as of 2026-05-10T12:00:00\nCliFilterPlugins        = (null)\nClusterName             = rig\nCommunicationParameters = (null)\n"
	if got, err := cluster.ReadClusterName(strings.NewReader(text)); got != "rig" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := cluster.ReadClusterName(strings.NewReader("Configuration data\n")); err == nil {
		t.Errorf("%q without an error", got)
	}
}

func FuzzNodes(f *testing.F) {
	f.Add("NodeName=a CPUTot=4 RealMemory=8000 Gres=gpu:a100:2(S:0,1),gpu:1 State=IDLE+DRAIN Partitions=a,b\n")
	f.Add("NodeName=a CPUTot=4 RealMemory=8000 Gres=gpu:9E State=FUTURE*\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		nodes, err := cluster.ReadNodes(strings.NewReader(s))
		if err == nil && len(nodes) == 0 {
			t.Error("no node and no error")
		}
		for _, n := range nodes {
			if n.Cores < 0 || n.MemoryMB < 0 {
				t.Errorf("%+v", n)
			}
			for _, count := range n.GPUs {
				if count < 0 {
					t.Errorf("%+v", n)
				}
			}
		}
	})
}

func FuzzQueue(f *testing.F) {
	f.Add("alice|21001|compute,gpu|PENDING|alice|21001|physics\n")
	f.Add("CLUSTER: rig\n|||RUNNING|||\n")
	f.Fuzz(func(t *testing.T, s string) {
		jobs := 0
		err := cluster.ReadQueue(strings.NewReader(s), func(cluster.Job) { jobs++ })
		if n := strings.Count(s, "\n"); jobs > n {
			t.Errorf("%d jobs in %d lines, %v", jobs, n, err)
		}
	})
}

func FuzzAssociations(f *testing.F) {
	f.Add("rig||root\nrig|alice|physics\n")
	f.Fuzz(func(t *testing.T, s string) {
		list, _ := cluster.ReadAssociations(strings.NewReader(s))
		for _, a := range list {
			if a.User == "" || a.Account == "" {
				t.Errorf("%+v", a)
			}
		}
	})
}

func FuzzClusterName(f *testing.F) {
	f.Add("ClusterName             = rig\n")
	f.Fuzz(func(t *testing.T, s string) {
		if name, err := cluster.ReadClusterName(strings.NewReader(s)); err == nil && name == "" {
			t.Error("no name and no error")
		}
	})
}
