package run

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// gpuRules count whole GPUs of two makers.
func gpuRules() *Rules {
	return &Rules{GPU: func(name string) bool { return slices.Contains([]string{"nvidia.com/gpu", "amd.com/gpu"}, name) },
		Driver: func(name string) bool { return strings.HasPrefix(name, "gpu.") }}
}

// valueOf returns an attribute of a run; false where it is unread, with why.
func valueOf(t *testing.T, v *View, name string) (sdk.Value, bool, string) {
	t.Helper()
	values, unread := NewColumns(gpuRules(), func(other string) bool { return other == name }).Values(v)
	at := slices.IndexFunc(Attributes(), func(a sdk.Attribute) bool { return a.Name == name })
	if len(unread) == 0 {
		return values[at], true, ""
	}
	if !values[at].IsNull() && Attributes()[at].Type != sdk.TypeMap || unread[0].Attribute != name {
		t.Errorf("%s: %v, unread %v", name, values[at], unread)
	}
	return values[at], false, unread[0].Problem
}

// milliOf returns the attribute of a run with these requests; false where it is null, with why.
func milliOf(t *testing.T, requests kube.Quantities, node map[string]string) (int64, bool, string) {
	t.Helper()
	e := New()
	e.Node = node
	e.Pod.Spec.Containers = []kube.Container{{Name: "a", Resources: kube.Resources{Requests: requests}}}
	value, ok, why := valueOf(t, &View{Entry: e, Container: "a"}, "milli_gpus")
	if !ok {
		return 0, false, why
	}
	return value.Int(), true, ""
}

func TestMilliGPUs_AnyMix_IsTheSumOfItsParts(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	parts := map[string]float64{
		"nvidia.com/gpu": 1, "amd.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1. / 7, "nvidia.com/mig-1g.10gb.me": 1. / 7, "nvidia.com/mig-2g.10gb": 2. / 7,
		"nvidia.com/mig-3g.20gb": 3. / 7, "nvidia.com/mig-4g.40gb": 4. / 7, "nvidia.com/mig-7g.80gb": 1, "nvidia.com/mig-1c.3g.20gb": 1. / 7,
		"nvidia.com/mig-1g.6gb": 1. / 4, "nvidia.com/mig-2g.12gb": 1. / 2, "nvidia.com/mig-4g.24gb": 1,
		"rdma/hca": 0, "cpu": 0, "memory": 0, "nvidia.com/gpumem": 0, "example.com/gpu": 0,
	}
	names := slices.Sorted(maps.Keys(parts))
	for range 3000 {
		requests, node, want, known := kube.Quantities{}, map[string]string{}, 0.0, true
		for range r.IntN(5) {
			name, n := names[r.IntN(len(names))], r.IntN(9)
			if _, again := requests[name]; again || name == "nvidia.com/gpumem" {
				continue
			}
			requests[name] = fmt.Sprint(n)
			part := parts[name] * float64(n)
			if strings.HasPrefix(name, "nvidia.com/") && r.IntN(2) == 0 {
				label := []string{"1", "2", "3", "10", "0", "x", "-4"}[r.IntN(7)]
				node[name+".replicas"] = label
				switch label {
				case "0", "x", "-4":
					known = known && n == 0
				default:
					part /= map[string]float64{"1": 1, "2": 2, "3": 3, "10": 10}[label]
				}
			}
			want += part
		}
		got, ok, why := milliOf(t, requests, node)
		if ok != known || ok && got != int64(math.Floor(want*1000+0.5+1e-9)) || !ok && !strings.Contains(why, "replicas") {
			t.Fatalf("seed %d: %v on %v: %d, %t (%s); want %.3f, %t", seed, requests, node, got, ok, why, want, known)
		}
	}
}

func TestMilliGPUs_SharesAndSlices_AreWhatTheNodeSays(t *testing.T) {
	const unknown = -1
	for _, c := range []struct {
		requests string
		node     string
		want     int64
	}{
		{"nvidia.com/gpu=2", "", 2000},
		{"nvidia.com/gpu.shared=1", "nvidia.com/gpu.replicas=4", 250},
		{"nvidia.com/gpu.shared=1", "", unknown},
		{"nvidia.com/gpu.shared=0", "", 0},
		{"nvidia.com/gpu=1", "nvidia.com/gpu.replicas=4 nvidia.com/gpu.product=A100-SHARED", 250},
		{"nvidia.com/gpu=2", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", 857},
		{"nvidia.com/gpu=2", "nvidia.com/gpu.product=NVIDIA-A30-MIG-1g.6gb-SHARED nvidia.com/gpu.replicas=2", 250},
		{"nvidia.com/mig-1g.5gb.shared=1", "nvidia.com/mig-1g.5gb.replicas=2", 71},
		{"nvidia.com/mig-1g.24gb=1", "", unknown},
		{"nvidia.com/mig-1g.24gb=1", "nvidia.com/gpu.product=NVIDIA-H100-NVL", 143},
		{"nvidia.com/mig-1g.24gb=1", "nvidia.com/gpu.product=NVIDIA-RTX-PRO-6000-Blackwell", 250},
		{"nvidia.com/mig-9g.5gb=1", "", unknown},
		{"nvidia.com/mig-all=1", "", unknown},
		{"nvidia.com/gpu=1 nvidia.com/gpucores=30", "", 300},
		{"nvidia.com/gpu=3 nvidia.com/gpucores=33 amd.com/gpu=1", "", 1990},
		{"nvidia.com/gpu=1 nvidia.com/gpucores=100 nvidia.com/gpumem=3000", "", 1000},
		{"nvidia.com/gpu=1 nvidia.com/gpumem=3000", "", unknown},
		{"nvidia.com/gpu=1 nvidia.com/gpumem-percentage=50", "", unknown},
		{"nvidia.com/gpu=1 nvidia.com/gpucores=0", "", unknown},
		{"nvidia.com/gpu=1 nvidia.com/gpucores=101", "", unknown},
		{"nvidia.com/gpu=1 nvidia.com/gpucores=many", "", unknown},
		{"nvidia.com/gpu=many", "", unknown},
		{"nvidia.com/gpu=9223372036854775807", "", unknown},
		{"example.com/foo=many", "", 0},
	} {
		got, ok, why := milliOf(t, pairsOf(c.requests), pairsOf(c.node))
		if ok == (c.want == unknown) || ok && got != c.want || !ok && why == "" {
			t.Errorf("%s on %q: %d, %t (%s); want %d", c.requests, c.node, got, ok, why, c.want)
		}
	}
}

// pairsOf reads name=value pairs with spaces between.
func pairsOf(text string) map[string]string {
	out := map[string]string{}
	for pair := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}
	return out
}

// Labels that were not read might say that a card is shared.
func TestMilliGPUs_LabelsOfNodeNotRead_AreUnread(t *testing.T) {
	for requests, want := range map[string]bool{"nvidia.com/gpu=1": false, "amd.com/gpu=2": false, "nvidia.com/mig-1g.5gb=1": false, "nvidia.com/gpu=0": true, "cpu=1 rdma/hca=1": true} {
		e := New()
		e.Pod.Spec.NodeName = "n1"
		e.Pod.Spec.Containers = []kube.Container{{Name: "a", Resources: kube.Resources{Requests: pairsOf(requests)}}}
		if value, ok, why := valueOf(t, &View{Entry: e, Container: "a"}, "milli_gpus"); ok != want || ok && value.Int() != 0 || !ok && !strings.Contains(why, `node "n1"`) {
			t.Errorf("%s: %v, %t (%s)", requests, value, ok, why)
		}
	}
}

func TestMilliGPUs_PodOfSeveralShares_IsUnknown(t *testing.T) {
	for containers, known := range map[int]bool{1: true, 2: false} {
		e := New()
		e.Node = map[string]string{}
		for i := range containers {
			e.Pod.Spec.Containers = append(e.Pod.Spec.Containers, kube.Container{Name: fmt.Sprint(i), Resources: kube.Resources{Requests: kube.Quantities{nvidia: "1", hamiCores: "30"}}})
		}
		_, unread := NewColumns(gpuRules(), func(name string) bool { return name == "milli_gpus" }).Values(&View{Entry: e})
		if (len(unread) == 0) != known {
			t.Errorf("%d containers: %v", containers, unread)
		}
	}
}

func TestMilliGPUs_OfANode_AreNoMoreThanItsCards(t *testing.T) {
	for _, c := range []struct {
		amounts Amounts
		node    string
		want    int64
	}{
		{Amounts{nvidia: 8}, "", 8000},
		{Amounts{nvidia: 40}, "nvidia.com/gpu.count=4", 4000}, // HAMi
		{Amounts{nvidia: 16}, "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=4", 4000},
		{Amounts{nvidia: 12}, "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=4", 3000}, // one is sick
		{Amounts{nvidia: 28}, "nvidia.com/gpu.count=28 nvidia.com/gpu.product=A100-MIG-1g.5gb", 4000},
		{Amounts{nvidia: 1, "nvidia.com/mig-1g.5gb": 7, "cpu": 64000}, "nvidia.com/gpu.count=2", 2000},
		{Amounts{"nvidia.com/mig-2g.35gb": 0, "nvidia.com/gpu.shared": 0}, "", 0},
	} {
		if got, err := gpuRules().MilliGPUs(c.amounts, pairsOf(c.node)); got != c.want || err != nil {
			t.Errorf("%v on %q: %d, %v; want %d", c.amounts, c.node, got, err, c.want)
		}
	}
}
