package source

import (
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/fakekube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// look is what a fresh source collects of some pods, in these namespaces.
func look(t *testing.T, pods []kube.Pod, namespaces ...kube.Namespace) (*bursarv1.DescribeResponse, *plugintest.Collected) {
	t.Helper()
	server := fakekube.New()
	t.Cleanup(server.Close)
	for _, p := range pods {
		server.Put(p)
	}
	for _, n := range namespaces {
		server.PutNamespace(n)
	}
	client := plugintest.Serve(t, func() sdk.Source {
		s := New(slog.New(slog.DiscardHandler))
		s.oneLook = true
		return s
	})
	r, err := client.Configure(t.Context(), &bursarv1.ConfigureRequest{Label: "test", Config: plugintest.Block("config", plugintest.Attr("kubeconfig", server.Kubeconfig(t, "t"))), DataDir: t.TempDir()})
	if err != nil || len(r.GetDiagnostics()) > 0 {
		t.Fatal(err, r.GetDiagnostics())
	}
	d, err := client.Describe(t.Context(), &bursarv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&plugintest.Daemon{Client: client, Quiet: time.Minute}).Collect(t.Context(), sdk.Start{})
	if err != nil {
		t.Fatal(err)
	}
	return d, got
}

// quantities are all that a pod asks for.
func quantities(p *kube.Pod) (out []kube.Quantities) {
	for _, list := range [][]kube.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			out = append(out, list[i].Resources.Requests, list[i].Resources.Limits)
		}
	}
	return append(out, p.Spec.Resources.Requests, p.Spec.Overhead)
}

// asked draws a pod of two containers, an init container and a sidecar.
func asked(r *rand.Rand, name string) kube.Pod {
	some := func() kube.Quantities {
		q := kube.Quantities{}
		for _, sizes := range [][]string{
			{"cpu", "100m", "1500m", "2"}, {"memory", "1Gi", "64Mi", "1e6"}, {"ephemeral-storage", "1Gi"}, {"nvidia.com/gpu", "1", "2"}, {"example.com/fpga", "1"},
		} {
			if r.IntN(3) > 0 {
				q[sizes[0]] = sizes[1+r.IntN(len(sizes)-1)]
			}
		}
		return q
	}
	p := pod("phys", name, kube.Succeeded, over(0, 1, 2, 0))
	p.Spec.Containers[0].Resources = kube.Resources{Requests: some(), Limits: some()}
	second, init, side := p.Spec.Containers[0], p.Spec.Containers[0], p.Spec.Containers[0]
	second.Name, second.Resources = "second", kube.Resources{Requests: some(), Limits: some()}
	init.Name, init.Resources = "init", kube.Resources{Requests: some()}
	side.Name, side.Resources, side.RestartPolicy = "side", kube.Resources{Requests: some()}, "Always"
	p.Spec.Containers, p.Spec.InitContainers = append(p.Spec.Containers, second), []kube.Container{side, init}
	status := p.Status.ContainerStatuses[0]
	status.Name = "second"
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	if r.IntN(2) == 0 {
		p.Spec.Overhead = kube.Quantities{"cpu": "250m", "memory": "120Mi"}
	}
	return p
}

func TestCollect_UnreadableQuantity_RunCountsWithoutIt(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	var sound, broken []kube.Pod
	for n := range 100 {
		name := string(rune('a'+n/26)) + string(rune('a'+n%26))
		state := rand.New(rand.NewPCG(seed, uint64(n)))
		sound = append(sound, asked(state, name))
		odd := asked(rand.New(rand.NewPCG(seed, uint64(n))), name)
		for _, q := range quantities(&odd) {
			if names := slices.Sorted(maps.Keys(q)); len(names) > 0 && r.IntN(3) == 0 {
				q[names[r.IntN(len(names))]] = []string{plugintest.Garbage(r), "8Ei", "-1", "1.5.1", "16?", "Gi", ""}[r.IntN(7)]
			}
		}
		broken = append(broken, odd)
	}
	_, want := look(t, sound)
	d, got := look(t, broken)
	if named := plugintest.CheckUnread(t, d, want, got); named < 50 || t.Failed() {
		t.Errorf("seed %d: %d values are named as unread", seed, named)
	}
}
