package cluster_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

func TestPart_OfNodes_IsWhatTheyShow(t *testing.T) {
	const text = `NodeName=s1 CPUTot=4 RealMemory=8000 Gres=gpu:2,shard:8
NodeName=s2 CPUTot=4 RealMemory=8000 Gres=gpu:nvidia_gb10:1(S:0-19),shard:nvidia_gb10:80(S:0-19)
NodeName=m1 CPUTot=4 RealMemory=8000 Gres=gpu:tesla:2,gpu:kepler:2,mps:400
NodeName=m2 CPUTot=4 RealMemory=8000 Gres=gpu:8,mps:800
NodeName=t1 CPUTot=4 RealMemory=8000 Gres=gpu:a100:2,gpu:v100:4,shard:a100:8,shard:v100:8
NodeName=g1 CPUTot=4 RealMemory=8000 Gres=gpu:a100_3g.20gb:4,gpu:a100_3g.20gb:2
NodeName=g2 CPUTot=4 RealMemory=8000 Gres=gpu:a100_1g.5gb:7,gpu:a100:1
NodeName=u1 CPUTot=4 RealMemory=8000 Gres=gpu:a100:2,shard:h100:8
NodeName=u2 CPUTot=4 RealMemory=8000 Gres=shard:8
NodeName=c1 CPUTot=4 RealMemory=8000 Gres=(null)
`
	nodes, err := cluster.ReadNodes(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	const unknown = ""
	for _, c := range []struct{ resource, model, list, want string }{
		{"shard", "", "s1", "1/4"}, {"shard", "", "s2", "1/80"}, {"shard", "nvidia_gb10", "s2", "1/80"}, {"shard", "a100", "s1", "1/4"},
		{"shard", "", "s[1-2]", unknown}, {"mps", "", "m1", "1/100"}, {"mps", "", "m[1-2]", "1/100"}, {"mps", "", "m1,m2", "1/100"}, {"mps", "tesla", "m1", "1/100"},
		{"shard", "a100", "t1", "1/4"}, {"shard", "v100", "t1", "1/2"}, {"shard", "", "t1", unknown},
		{"shard", "", "u1", unknown}, {"shard", "", "u2", unknown}, {"shard", "", "c1", unknown}, {"shard", "", "gone", unknown}, {"mps", "", "s1", unknown},
		{"gpu", "", "g1", "3/7"}, {"gpu", "", "g2", unknown}, {"gpu", "", "s1", "1"}, {"gpu", "", "gone", "1"}, {"gpu", "", "c1", "1"},
	} {
		got, err := cluster.Part(nodes, c.resource, c.model, c.list)
		if (err == nil) != (c.want != unknown) || err == nil && got.RatString() != c.want {
			t.Errorf("%s:%s on %s: %v, %v; want %q", c.resource, c.model, c.list, got, err, c.want)
		}
	}
}
