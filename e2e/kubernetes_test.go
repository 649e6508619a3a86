//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/record"
)

const (
	kubePods     = "/api/v1/namespaces/default/pods"
	kubeManifest = "plugins/source/kubernetes/deploy"
)

func kubeSource(c *rig.KubeCluster, config string) string {
	return fmt.Sprintf("source \"kubernetes\" \"k8s\" {\n  config {\n    kubeconfig = %q\n    %s\n  }\n}\n", c.Kubeconfig("agenttoken"), config)
}

// kubePod is what the tests look at of a pod.
type kubePod struct {
	Metadata struct {
		Name, UID         string
		Labels            map[string]string
		DeletionTimestamp *time.Time
		Finalizers        []string
	}
	Spec struct {
		Containers, InitContainers []struct {
			Name      string
			Resources struct{ Requests map[string]string }
		}
	}
	Status struct {
		Phase                                    string
		ContainerStatuses, InitContainerStatuses []struct {
			Name             string
			State, LastState struct {
				Terminated *struct{ StartedAt, FinishedAt time.Time }
				Running    *struct{ StartedAt time.Time }
			}
		}
	}
}

// kubeRecord is what a test compares of a record. The times are in seconds.
type kubeRecord struct {
	Start, Stop              int64
	User, Pod, Container     string
	MilliCores, Memory, GPUs int64
	Estimated                string
}

// kubeTruth are the records that pods must have become, by their ids.
type kubeTruth map[string]kubeRecord

// add takes from the status of a pod what is over.
func (k kubeTruth) add(p *kubePod) {
	requests := map[string]map[string]string{}
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		requests[c.Name] = c.Resources.Requests
	}
	for _, s := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
		for _, state := range []*struct{ StartedAt, FinishedAt time.Time }{s.LastState.Terminated, s.State.Terminated} {
			if state == nil {
				continue
			}
			r := kubeRecord{Start: state.StartedAt.Unix(), Stop: state.FinishedAt.Unix(), User: p.Metadata.Labels["user"], Pod: p.Metadata.Name, Container: s.Name}
			for name, amount := range map[string]*int64{"cpu": &r.MilliCores, "memory": &r.Memory, "nvidia.com/gpu": &r.GPUs} {
				*amount = kubeAmounts[name+" "+requests[s.Name][name]]
			}
			k[fmt.Sprintf("k8s-%s-%s@%d", p.Metadata.UID, s.Name, r.Start)] = r
		}
	}
}

// kubeAmounts are the quantities of the tests, as records have them.
var kubeAmounts = map[string]int64{"cpu 1500m": 1500, "cpu 250m": 250, "cpu 1": 1000, "memory 1Gi": 1024, "memory 500M": 477, "nvidia.com/gpu 2": 2}

func kubeRecords(g *site.Aggregator) kubeTruth {
	out := kubeTruth{}
	for id, r := range g.Whole() {
		meta := func(key string) string { return strings.Join(r.Meta.Get(key), "§") }
		k := kubeRecord{Start: int64(r.Start / record.Second), User: meta("user_id"), Pod: meta("pod"), Container: meta("container"), Estimated: meta("estimated"),
			MilliCores: amount(&r, "MilliCores"), Memory: amount(&r, "Memory"), GPUs: amount(&r, "GPUs")}
		if r.Stop != record.None {
			k.Stop = int64(r.Stop / record.Second)
		}
		out[id] = k
	}
	return out
}

func awaitKube(s *site.Site, g *site.Aggregator, want kubeTruth) {
	s.Eventually("the records are Kubernetes' runs", func() (bool, string) {
		if !g.Ready() {
			return false, "the aggregator is not ready"
		}
		diff := cmp.Diff(want, kubeRecords(g))
		return diff == "", fmt.Sprintf("%d runs (-Kubernetes +records)\n%s", len(want), diff[:min(len(diff), 4000)])
	})
}

// pods makes pods, and deletes them when they are over, whatever dies meanwhile.
type pods struct {
	c      *rig.KubeCluster
	chance *rand.Rand

	mu    sync.Mutex
	made  int
	truth kubeTruth
	seen  map[string]bool // uids of those that are over
}

// make makes a pod that ends by itself.
func (p *pods) make(i int) error {
	labels := object{"user": fmt.Sprintf("u%d", i%7)}
	if p.chance.IntN(3) == 0 {
		labels["rig-restart"] = "once"
	}
	containers := []object{{"name": "main", "image": "x", "resources": object{"requests": object{"cpu": "1500m", "memory": "1Gi"}}}}
	spec := object{"nodeName": "n1", "restartPolicy": "Never", "containers": containers}
	annotations := object{"rig/run-for": fmt.Sprintf("%dms", 200+p.chance.IntN(2000)), "rig/exit": fmt.Sprint(p.chance.IntN(2))}
	then := time.Now().UTC()
	for _, name := range []string{"start", "crash", "again", "stop"} {
		annotations["rig/"+name] = then.Format(time.RFC3339)
		then = then.Add(time.Duration(1+p.chance.IntN(3)) * time.Second)
	}
	if p.chance.IntN(5) == 0 {
		spec["initContainers"] = []object{{"name": "init", "image": "x", "resources": object{"requests": object{"cpu": "250m", "memory": "500M"}}}}
	}
	return p.c.Ask(http.MethodPost, kubePods, object{"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": object{
		"name": fmt.Sprintf("p%d", i), "labels": labels, "annotations": annotations}}, nil)
}

// look takes the pods that are over, and deletes them. It says which are there.
func (p *pods) look() (left []string, err error) {
	var list struct{ Items []kubePod }
	if err := p.c.Ask(http.MethodGet, kubePods, nil, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		m := &pod.Metadata
		left = append(left, fmt.Sprintf("%s %s, deleted %v, finalizers %v", m.Name, pod.Status.Phase, m.DeletionTimestamp, m.Finalizers))
		switch {
		case m.DeletionTimestamp != nil && time.Since(*m.DeletionTimestamp) > 10*time.Second:
			// kwok does not delete again what an API server that was killed did not take.
			if err := p.c.Ask(http.MethodDelete, kubePods+"/"+m.Name+"?gracePeriodSeconds=0", nil, nil); err != nil && !errors.Is(err, rig.ErrMissing) {
				return nil, err
			}
			continue
		case m.DeletionTimestamp != nil || pod.Status.Phase != "Succeeded" && pod.Status.Phase != "Failed":
			continue
		}
		p.mu.Lock()
		p.truth.add(pod)
		p.seen[pod.Metadata.UID] = true
		p.mu.Unlock()
		if err := p.c.Ask(http.MethodDelete, kubePods+"/"+pod.Metadata.Name, nil, nil); err != nil && !errors.Is(err, rig.ErrMissing) {
			return nil, err
		}
	}
	return left, nil
}

// flow makes so many pods, at most some at the same time, until all are gone. It fails when
// nothing comes or goes for three minutes.
func (p *pods) flow(t *testing.T, all int) {
	const atOnce = 60
	var left []string
	var last string
	for moved := time.Now(); time.Since(moved) < 3*time.Minute; {
		now, err := p.look()
		if err != nil { // the API server is away
			time.Sleep(100 * time.Millisecond)
			continue
		}
		p.mu.Lock()
		made, over := p.made, len(p.seen)
		p.mu.Unlock()
		left = now
		if over == all && len(left) == 0 {
			return
		}
		if state := fmt.Sprint(made, over, len(left)); state != last {
			last, moved = state, time.Now()
		}
		for range min(atOnce-(made-over), all-made, 20) {
			if err := p.make(made); err != nil && !errors.Is(err, rig.ErrExists) {
				break // the same one is tried again
			}
			made++
		}
		p.mu.Lock()
		p.made = made
		p.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("nothing comes or goes: %d made, %d over, %d are there:\n%s", p.made, len(p.seen), len(left), strings.Join(left, "\n"))
}

func TestKubernetes_Kills_CountEachRunOnce(t *testing.T) {
	t.Parallel()
	c := rig.Kubernetes(t)
	for _, name := range []string{"rbac.yaml", "finalizer.yaml", "admission.yaml"} {
		c.Apply(filepath.Join(site.Top(), kubeManifest, name))
	}
	awaitFinalizer(t, c)
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: kubeSource(c, "finalizer = true")})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	p := &pods{c: c, chance: rand.New(rand.NewPCG(*seed, 16)), truth: kubeTruth{}, seen: map[string]bool{}}
	var flowing sync.WaitGroup
	flowing.Go(func() { p.flow(t, 1000) })
	restart := func() { c.KillAPI(); c.StartAPI() }
	killing{
		victims: []func(){agent.Restart, agent.KillChildren, restart,
			func() { c.KillAPI(); c.Compact(); c.StartAPI() },
			func() { // what was missed is not to be had any more
				agent.Kill()
				time.Sleep(time.Second)
				c.KillAPI()
				c.Compact()
				c.StartAPI()
				agent.Start()
			}},
		alive:  []*site.Daemon{agent.Daemon, agg.Daemon},
		pause:  3 * time.Second,
		before: func(*rand.Rand, int) { c.AwaitAPI() },
	}.run(t)
	flowing.Wait()
	awaitKube(s, agg, p.truth)
	status, err := agg.Status()
	if err != nil || status.Quarantined != 0 || status.Conflicts != 0 {
		t.Errorf("%+v, %v: want nothing in quarantine and no conflict", status, err)
	}
	checkConserved(t, agg)
	t.Logf("%d runs of %d pods, seed %d", len(p.truth), len(p.seen), *seed)
}

// awaitFinalizer waits until new pods get the finalizer: admission policies take a while.
func awaitFinalizer(t *testing.T, c *rig.KubeCluster) {
	site.Eventually(t, "the policy gives pods their finalizer", func() (bool, string) {
		var p kubePod
		err := c.Ask(http.MethodPost, kubePods+"?dryRun=All", object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "try"},
			"spec": object{"containers": []object{{"name": "c", "image": "x"}}}}, &p)
		return err == nil && len(p.Metadata.Finalizers) == 1, fmt.Sprintf("%v %v", p.Metadata.Finalizers, err)
	})
}

func TestKubernetes_EveryKindOfContainer_IsCountedOnce(t *testing.T) {
	t.Parallel()
	c := rig.Kubernetes(t)
	c.Apply(filepath.Join(site.Top(), kubeManifest, "rbac.yaml"))
	c.Apply(filepath.Join(site.Top(), kubeManifest, "agent.yaml")) // the API server takes it as it is
	c.Apply(filepath.Join(site.Top(), "aggregator/packaging/containers/kubernetes.yaml"))
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: kubeSource(c, "")})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	truth := kubeTruth{}
	kubeMenu(c)
	awaitOverPods(s, c, truth, "plain", "restarts", "init", "fails", "bare")
	awaitKube(s, agg, truth)
	r := agg.Whole()["k8s-"+kubeUID(c, "plain")+"-main@"+fmt.Sprint(kubeStart(truth, "plain"))]
	if got := strings.Join(r.Meta.Get("gpu_model"), ""); got != "NVIDIA-H200" {
		t.Errorf("GPU model %q", got)
	}

	// Pods that are deleted at once, while a watch is the only one to see them.
	for i := range 5 {
		name := fmt.Sprintf("brief%d", i)
		c.Do(http.MethodPost, kubePods, kubeSpec(name, "100ms", nil), nil)
		awaitOverPods(s, c, truth, name)
		c.Do(http.MethodDelete, kubePods+"/"+name, nil, nil)
	}
	awaitKube(s, agg, truth)

	// A pod that runs on ends with its deletion.
	c.Do(http.MethodPost, kubePods, kubeSpec("runs", "1h", nil), nil)
	s.Eventually("it is counted", func() (bool, string) {
		return slices.ContainsFunc(slices.Collect(maps.Values(kubeRecords(agg))), func(r kubeRecord) bool { return r.Pod == "runs" && r.Stop == 0 }), ""
	})
	before := time.Now().Unix()
	c.Do(http.MethodDelete, kubePods+"/runs?gracePeriodSeconds=1", nil, nil)
	s.Eventually("it ends", func() (bool, string) {
		for _, r := range kubeRecords(agg) {
			if r.Pod == "runs" {
				return r.Stop >= before && r.Stop <= before+5 && r.Estimated == "true", fmt.Sprintf("%+v, deleted at %d", r, before)
			}
		}
		return false, "no record"
	})
	checkSound(t, agg, agent)
	checkKubeFacts(t, agent)
	example := filepath.Join(site.Top(), "hcl/examples/agent-kubernetes.hcl")
	if out, err := s.Run("bursar-agent", "-check", "-dev", "-config", example); err != nil {
		t.Error(out, err)
	}
}

// kubeSpec is a pod that runs for a while.
func kubeSpec(name, runFor string, change func(meta, spec, container object)) object {
	container := object{"name": "main", "image": "x"}
	spec := object{"nodeName": "n1", "restartPolicy": "Never"}
	meta := object{"name": name, "labels": object{"user": "u-" + name}, "annotations": object{"rig/run-for": runFor}}
	if change != nil {
		change(meta, spec, container)
	}
	spec["containers"] = []object{container}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
}

// kubeMenu has pods of every kind.
func kubeMenu(c *rig.KubeCluster) {
	for _, pod := range []object{
		kubeSpec("plain", "1s", func(_, _, container object) {
			container["resources"] = object{"requests": object{"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2"}, "limits": object{"nvidia.com/gpu": "2"}}
		}),
		kubeSpec("restarts", "1s", func(meta, _, _ object) { meta["labels"].(object)["rig-restart"] = "once" }),
		kubeSpec("init", "2s", func(_, spec, container object) {
			container["resources"] = object{"requests": object{"cpu": "250m"}}
			spec["initContainers"] = []object{{"name": "prepare", "image": "x", "resources": object{"requests": object{"cpu": "1"}}},
				{"name": "side", "image": "x", "restartPolicy": "Always", "resources": object{"requests": object{"memory": "500M"}}}}
		}),
		kubeSpec("fails", "500ms", func(meta, _, _ object) { meta["annotations"].(object)["rig/exit"] = "3" }),
		kubeSpec("bare", "100ms", nil),
	} {
		c.Do(http.MethodPost, kubePods, pod, nil)
	}
}

// awaitOverPods waits until pods are over, and takes what their statuses tell.
func awaitOverPods(s *site.Site, c *rig.KubeCluster, truth kubeTruth, names ...string) {
	s.Eventually(fmt.Sprintf("%v are over", names), func() (bool, string) {
		for _, name := range names {
			var p kubePod
			if err := c.Ask(http.MethodGet, kubePods+"/"+name, nil, &p); err != nil || p.Status.Phase != "Succeeded" && p.Status.Phase != "Failed" {
				return false, fmt.Sprintf("%s: %+v, %v", name, p.Status, err)
			}
			truth.add(&p)
		}
		return true, ""
	})
}

func kubeUID(c *rig.KubeCluster, name string) string {
	var p kubePod
	c.Do(http.MethodGet, kubePods+"/"+name, nil, &p)
	return p.Metadata.UID
}

func kubeStart(truth kubeTruth, pod string) int64 {
	for _, r := range truth {
		if r.Pod == pod {
			return r.Start
		}
	}
	return 0
}

// checkKubeFacts compares what the agent was told beside records with the rig's node.
func checkKubeFacts(t *testing.T, a *site.Agent) {
	t.Helper()
	a.Stop()
	got := facts(a)
	if len(got.Capacity) == 0 || len(got.Census) == 0 {
		t.Fatalf("%+v", got)
	}
	has := map[string]int64{}
	for _, component := range got.Capacity[len(got.Capacity)-1].Components {
		has[component.Name] = component.Amount
	}
	for name, want := range map[string]int64{"MilliCores": 6_400_000, "Memory": 51200 << 10, "GPUs": 800, "GPUs:NVIDIA-H200": 800, "nvidia.com/mig-1g.5gb": 700} {
		if has[name] != want {
			t.Errorf("capacity of %s: %d, want %d", name, has[name], want)
		}
	}
	if len(got.Refused) != 0 {
		t.Errorf("refused: %v", got.Refused)
	}
}
