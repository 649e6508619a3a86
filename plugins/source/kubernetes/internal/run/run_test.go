package run

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

func at(s int) time.Time { return time.Unix(1_778_414_400+int64(s), 0).UTC() }

func asks(name, cpu, policy string) kube.Container {
	return kube.Container{Name: name, RestartPolicy: policy, Resources: kube.Resources{Requests: kube.Quantities{"cpu": cpu}}}
}

// The scheduler's arithmetic, and that of single containers.
func TestAmounts_OfPodAndContainers_AddUpAsTheScheduler(t *testing.T) {
	for _, c := range []struct {
		name string
		spec kube.PodSpec
		pod  int64
		each map[string]int64
	}{
		{"one", kube.PodSpec{Containers: []kube.Container{asks("a", "1", "")}}, 1000, map[string]int64{"a": 1000}},
		{"two", kube.PodSpec{Containers: []kube.Container{asks("a", "1", ""), asks("b", "500m", "")}}, 1500, map[string]int64{"a": 1000, "b": 500}},
		{"init is greater", kube.PodSpec{Containers: []kube.Container{asks("a", "1", "")}, InitContainers: []kube.Container{asks("i", "3", ""), asks("j", "2", "")}}, 3000,
			map[string]int64{"a": 1000, "i": 3000, "j": 2000}},
		{"sidecar before init", kube.PodSpec{Containers: []kube.Container{asks("a", "1", "")}, InitContainers: []kube.Container{asks("s", "1", "Always"), asks("i", "3", "")}}, 4000,
			map[string]int64{"a": 1000, "s": 1000, "i": 3000}},
		{"sidecar after init", kube.PodSpec{Containers: []kube.Container{asks("a", "1", "")}, InitContainers: []kube.Container{asks("i", "3", ""), asks("s", "1", "Always")}}, 3000,
			map[string]int64{"a": 1000, "s": 1000, "i": 3000}},
		{"overhead", kube.PodSpec{Containers: []kube.Container{asks("a", "1", ""), asks("b", "1", "")}, Overhead: kube.Quantities{"cpu": "250m"}}, 2250, map[string]int64{"a": 1250, "b": 1000}},
		{"of the pod", kube.PodSpec{Containers: []kube.Container{{Name: "a"}, asks("b", "1", "")}, Resources: kube.Resources{Requests: kube.Quantities{"cpu": "4"}}}, 4000,
			map[string]int64{"a": 3000, "b": 1000}},
	} {
		e := New()
		e.Pod.Spec = c.spec
		whole := (&View{Entry: e}).runAmounts(requests)
		if whole["cpu"] != c.pod {
			t.Errorf("%s: the pod has %d; want %d", c.name, whole["cpu"], c.pod)
		}
		for name, want := range c.each {
			if got := (&View{Entry: e, Container: name}).runAmounts(requests); got["cpu"] != want {
				t.Errorf("%s: %s has %d; want %d", c.name, name, got["cpu"], want)
			}
		}
	}
}

// As Kubernetes has it: the overhead is added to limits that there are.
func TestAmounts_OverheadWithoutALimit_IsNoLimit(t *testing.T) {
	limited := func(name, cpu string) kube.Container {
		c := kube.Container{Name: name, Resources: kube.Resources{Requests: kube.Quantities{"cpu": "1"}}}
		if cpu != "" {
			c.Resources.Limits = kube.Quantities{"cpu": cpu}
		}
		return c
	}
	for name, c := range map[string]struct {
		first, second string // limits of the containers
		ofPod         string
		want          Amounts // of the pod and of the first container
	}{
		"none":         {"", "", "", Amounts{}},
		"of all":       {"1", "2", "", Amounts{"pod": 3250, "first": 1250}},
		"of the other": {"", "2", "", Amounts{"pod": 2250}},
		"of the pod":   {"", "", "4", Amounts{"pod": 4250, "first": 4250}},
	} {
		e := New()
		e.Pod.Spec = kube.PodSpec{Containers: []kube.Container{limited("a", c.first), limited("b", c.second)}, Overhead: kube.Quantities{"cpu": "250m", "memory": "64Mi"}}
		if c.ofPod != "" {
			e.Pod.Spec.Resources.Limits = kube.Quantities{"cpu": c.ofPod}
		}
		pod, first := (&View{Entry: e}).runAmounts(limits), (&View{Entry: e, Container: "a"}).runAmounts(limits)
		got := Amounts{}
		for key, amounts := range map[string]Amounts{"pod": pod, "first": first} {
			if n, some := amounts["cpu"]; some {
				got[key] = n
			}
			if _, some := amounts["memory"]; some {
				t.Errorf("%s: %s has a limit of memory", name, key)
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if n := (&View{Entry: e}).runAmounts(requests)["memory"]; n != 64<<20 {
			t.Errorf("%s: the pod requests %d bytes", name, n)
		}
	}
}

func TestModel_OfARunWithoutGPUs_IsNull(t *testing.T) {
	for asked, want := range map[string]bool{"nvidia.com/gpu=1": true, "nvidia.com/mig-1g.5gb=1": true, "nvidia.com/gpu.shared=1": true, "nvidia.com/gpu=many": true, "nvidia.com/gpu=0": false, "rdma/hca=1": false, "cpu=1": false} {
		e := New()
		e.Node = map[string]string{"nvidia.com/gpu.product": "H200"}
		e.Pod.Spec.Containers = []kube.Container{{Name: "a", Resources: kube.Resources{Requests: pairsOf(asked)}}}
		rules := gpuRules()
		rules.Model = []string{"nvidia.com/gpu.product"}
		s := subject{View: &View{Entry: e, Container: "a"}, rules: rules}
		s.requests = s.runAmounts(requests)
		if got := s.gpuModel(); (got == "H200") != want {
			t.Errorf("%s: model %q", asked, got)
		}
	}
}

// What became of the pod says nothing of what had ended before.
func TestState_OfWhatEndedBeforeItsPod_IsItsOwn(t *testing.T) {
	ended := func(name string, code int) kube.ContainerStatus {
		return kube.ContainerStatus{Name: name, State: kube.State{Terminated: &kube.Terminated{StartedAt: at(5), FinishedAt: at(6), ExitCode: code}}}
	}
	restarted := ended("main", 137)
	restarted.RestartCount, restarted.LastState.Terminated = 1, &kube.Terminated{StartedAt: at(2), FinishedAt: at(3), ExitCode: 1}
	for reason, change := range map[string]func(*kube.Pod){
		"evicted":   func(p *kube.Pod) { p.Status.Reason = "Evicted" },
		"preempted": func(p *kube.Pod) { p.Status.Reason = "Preempting" },
		"timeout":   func(p *kube.Pod) { p.Status.Reason = "DeadlineExceeded" },
		"deleted":   func(p *kube.Pod) { p.Metadata.DeletionTimestamp = new(at(6)) },
	} {
		for _, c := range []struct {
			init int
			want []string // of init, and of both starts of main
		}{{0, []string{"complete", "failed", reason}}, {143, []string{reason, "failed", reason}}} {
			p := &kube.Pod{Spec: kube.PodSpec{Containers: []kube.Container{{Name: "main"}}, InitContainers: []kube.Container{{Name: "init"}}},
				Status: kube.PodStatus{Phase: kube.Failed, InitContainerStatuses: []kube.ContainerStatus{ended("init", c.init)}, ContainerStatuses: []kube.ContainerStatus{restarted}}}
			change(p)
			e := New()
			e.Observe(p, at(0), at(10))
			var got []string
			for _, v := range e.Views(false) {
				got = append(got, v.state())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", reason, got, c.want)
			}
		}
	}
}

func TestWorkflow_OfEachTool_IsNamedByItsLabel(t *testing.T) {
	const doc = "the tool that runs the workflow: "
	at := slices.IndexFunc(allColumns(), func(a attribute) bool { return a.Name == "workflow_tool" })
	tools := map[string]bool{} // that the README names
	for _, tool := range strings.FieldsFunc(strings.TrimPrefix(allColumns()[at].Doc, doc), func(r rune) bool { return r == ',' || r == ' ' }) {
		tools[tool] = tool == "or"
	}
	for _, c := range []struct{ tool, key string }{
		{"argo", "workflows.argoproj.io/workflow"},
		{"tekton", "tekton.dev/pipelineRun"},
		{"nextflow", "nextflow.io/runName"},
		{"airflow", "dag_id"},
		{"kubeflow", "pipeline/runid"},
		{"kubeflow", "training.kubeflow.org/job-name"},
		{"volcano", "volcano.sh/job-name"},
		{"jobset", "jobset.sigs.k8s.io/jobset-name"},
		{"ray", "ray.io/cluster"},
		{"spark", "sparkoperator.k8s.io/app-name"},
		{"spark", "spark-app-selector"},
		{"reana", "reana-run-job-workflow-uuid"},
		{"dask", "dask.org/cluster-name"},
	} {
		tools[c.tool] = true
		for _, m := range []kube.Meta{{Labels: map[string]string{c.key: "w", "app": "x"}}, {Annotations: map[string]string{c.key: "w"}}} {
			e := New()
			e.Pod.Metadata = m
			if tool, name := e.workflow(); tool != c.tool || name != "w" {
				t.Errorf("%s: %q of %q", c.key, name, tool)
			}
		}
	}
	for tool, tested := range tools {
		if !tested {
			t.Errorf("the README names %s, of which there is no label", tool)
		}
	}
	for _, c := range []struct {
		name, tool, workflow string
		meta                 kube.Meta
	}{
		{"owned by Argo", "argo", "w", kube.Meta{OwnerReferences: []kube.Owner{{APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", Name: "w"}}}},
		{"owned by another Workflow", "", "", kube.Meta{OwnerReferences: []kube.Owner{{APIVersion: "example.com/v1", Kind: "Workflow", Name: "w"}}}},
		{"with an empty label", "", "", kube.Meta{Labels: map[string]string{"dag_id": ""}}},
		{"a Job of a JobSet in Argo", "argo", "w", kube.Meta{Labels: map[string]string{"jobset.sigs.k8s.io/jobset-name": "s", "workflows.argoproj.io/workflow": "w"}}},
		{"of no tool", "", "", kube.Meta{Labels: map[string]string{"app": "x"}}},
	} {
		e := New()
		e.Pod.Metadata = c.meta
		if tool, name := e.workflow(); tool != c.tool || name != c.workflow {
			t.Errorf("%s: %q of %q", c.name, name, tool)
		}
	}
}

func TestAmounts_AfterAResize_AreThoseInEffect(t *testing.T) {
	e := New()
	e.Pod.Spec.Containers = []kube.Container{asks("a", "1", "")}
	e.Pod.Status.ContainerStatuses = []kube.ContainerStatus{{Name: "a", Resources: &kube.Resources{Requests: kube.Quantities{"cpu": "3"}}}}
	if got := (&View{Entry: e, Container: "a"}).runAmounts(requests); got["cpu"] != 3000 {
		t.Errorf("%v", got)
	}
}

// history is a container that ran and restarted, as its statuses showed it one after the
// other, and its runs.
func history(chance *rand.Rand) (statuses []kube.ContainerStatus, truth []string) {
	now := chance.IntN(5)
	var last *kube.Terminated
	for n := range int64(1 + chance.IntN(6)) {
		id := fmt.Sprintf("c%d", n)
		start := now
		add := func(state kube.State, last *kube.Terminated) {
			statuses = append(statuses, kube.ContainerStatus{Name: "main", RestartCount: n, State: state, LastState: kube.State{Terminated: last}, ContainerID: id})
		}
		add(kube.State{Running: &kube.Started{StartedAt: at(start)}}, last)
		now += chance.IntN(4)
		ended := &kube.Terminated{StartedAt: at(start), FinishedAt: at(now), ContainerID: id}
		truth = append(truth, fmt.Sprint(start, "-", now))
		if chance.IntN(2) == 0 {
			add(kube.State{Terminated: ended}, last)
		}
		if chance.IntN(2) == 0 {
			add(kube.State{Waiting: &kube.Waiting{Reason: "CrashLoopBackOff"}}, ended)
		}
		last = ended
		now += chance.IntN(3)
	}
	statuses = append(statuses, kube.ContainerStatus{Name: "main", RestartCount: int64(len(truth)) - 1, State: kube.State{Terminated: last}, ContainerID: last.ContainerID})
	return statuses, truth
}

// However few of a container's statuses are seen: each run is there once with its own
// times or is counted as missing, and none is invented.
func TestObserve_AnyPartOfAHistory_HasEachRunOnceOrAsMissing(t *testing.T) {
	for seed := range uint64(3000) {
		chance := rand.New(rand.NewPCG(seed, 16))
		statuses, truth := history(chance)
		all := chance.IntN(3) == 0
		e := New()
		var missed int64
		var seen []kube.ContainerStatus
		for i, s := range statuses {
			if !all && i < len(statuses)-1 && chance.IntN(2) == 0 {
				continue
			}
			for range 1 + chance.IntN(2) { // told again
				seen = append(seen, s)
				p := &kube.Pod{Metadata: kube.Meta{UID: "u"}, Spec: kube.PodSpec{Containers: []kube.Container{{Name: "main"}}},
					Status: kube.PodStatus{Phase: kube.Running, ContainerStatuses: []kube.ContainerStatus{s}}}
				e.Observe(p, at(0), at(100))
			}
		}
		for _, hole := range e.Holes {
			missed += hole.Starts
		}
		e.Pod.Status.Phase = kube.Failed
		names, times := map[string]bool{}, []string{}
		for _, v := range e.Views(false) {
			if names[v.Name()] {
				t.Fatalf("seed %d: the name %s is there twice", seed, v.Name())
			}
			names[v.Name()] = true
			times = append(times, fmt.Sprint(v.Start.Sub(at(0)).Seconds(), "-", v.Stop.Sub(at(0)).Seconds()))
			if !v.Estimated && !slices.Contains(truth, times[len(times)-1]) {
				t.Fatalf("seed %d: the run %s is none of %v; seen %+v", seed, times[len(times)-1], truth, seen)
			}
		}
		if all && (!slices.Equal(times, truth) || missed != 0) || int64(len(times))+missed != int64(len(truth)) {
			t.Fatalf("seed %d: runs %v and %d missing, want %v", seed, times, missed, truth)
		}
	}
}

func TestObserve_ContainerThatNodeLost_EndsWhenLastSeen(t *testing.T) {
	e := New()
	p := &kube.Pod{Spec: kube.PodSpec{Containers: []kube.Container{{Name: "main"}}}, Status: kube.PodStatus{Phase: kube.Running,
		ContainerStatuses: []kube.ContainerStatus{{Name: "main", State: kube.State{Running: &kube.Started{StartedAt: at(5)}}}}}}
	e.Observe(p, at(5), at(6))
	lost := *p
	lost.Status.Phase = kube.Failed
	lost.Status.ContainerStatuses = []kube.ContainerStatus{{Name: "main", State: kube.State{Terminated: &kube.Terminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}}}
	e.Observe(&lost, at(50), at(60))
	v := e.Views(false)
	if len(v) != 1 || !v[0].Start.Equal(at(5)) || !v[0].Stop.Equal(at(50)) || !v[0].Estimated || v[0].Exit.Code != 137 {
		t.Errorf("%+v", v)
	}
}

func TestObserve_ContainerThatCannotStart_IsNoRun(t *testing.T) {
	e := New()
	for n := range int64(4) {
		p := &kube.Pod{Spec: kube.PodSpec{Containers: []kube.Container{{Name: "main"}}}, Status: kube.PodStatus{ContainerStatuses: []kube.ContainerStatus{{Name: "main", RestartCount: n,
			State: kube.State{Terminated: &kube.Terminated{ExitCode: 128, Reason: "StartError", StartedAt: time.Unix(0, 0), FinishedAt: at(int(n))}}}}}}
		if e.Observe(p, at(0), at(9)); len(e.Holes) != 0 {
			t.Errorf("holes %v", e.Holes)
		}
	}
	if v := e.Views(false); len(v) != 0 || e.Unstarted() != 1 {
		t.Errorf("%v, %d never started", v, e.Unstarted())
	}
}

func TestPodAsOneRun_HasTheSpanOfItsContainers(t *testing.T) {
	e := New()
	start := at(1)
	ended := func(name string, from, to, code int) kube.ContainerStatus {
		return kube.ContainerStatus{Name: name, State: kube.State{Terminated: &kube.Terminated{StartedAt: at(from), FinishedAt: at(to), ExitCode: code}}}
	}
	limited := func(name, cpu string) kube.Container {
		return kube.Container{Name: name, Resources: kube.Resources{Limits: kube.Quantities{"cpu": cpu}}}
	}
	e.Observe(&kube.Pod{Metadata: kube.Meta{Namespace: "n", Name: "p", UID: "u"}, Spec: kube.PodSpec{Containers: []kube.Container{limited("a", "1500m"), limited("b", "2")}, InitContainers: []kube.Container{{Name: "i"}}},
		Status: kube.PodStatus{Phase: kube.Failed, StartTime: &start, InitContainerStatuses: []kube.ContainerStatus{ended("i", 3, 4, 0)},
			ContainerStatuses: []kube.ContainerStatus{ended("a", 5, 9, 0), ended("b", 5, 8, 7)}}}, at(0), at(10))
	v := e.Views(true)
	if len(v) != 1 || v[0].Name() != "n-p-u" || !v[0].Start.Equal(at(1)) || !v[0].Stop.Equal(at(9)) || v[0].Exit.Code != 7 || v[0].Estimated {
		t.Fatalf("%+v", v)
	}
	// 4 s of 1.5 cores and 3 s of 2; init containers do not count.
	if got := (&subject{View: &v[0]}).limitSeconds(); got.Float() != 12 {
		t.Errorf("the limit of CPU over the run is %v s", got)
	}
	e.Pod.Spec.Containers[1].Resources.Limits = nil
	if got := (&subject{View: &v[0]}).limitSeconds(); !got.IsNull() {
		t.Errorf("without a limit: %v s", got)
	}
}

func TestObserve_ContainerThatEndsBeforeItStarts_KeepsBothTimes(t *testing.T) {
	e := New()
	p := &kube.Pod{Spec: kube.PodSpec{Containers: []kube.Container{{Name: "main"}}}, Status: kube.PodStatus{ContainerStatuses: []kube.ContainerStatus{{Name: "main",
		State: kube.State{Terminated: &kube.Terminated{StartedAt: at(3600), FinishedAt: at(0), ContainerID: "c"}}}}}}
	e.Observe(p, at(0), at(3700))
	if v := e.Views(false); len(v) != 1 || !v[0].Start.Equal(at(3600)) || !v[0].Stop.Equal(at(0)) {
		t.Errorf("%+v; a clock was set back, so how long it ran is unknown and not 0", v)
	}
}

// What a run used is asked for once: later Prometheus may no longer have it.
func TestUntell_RunsWithUsage_KeepIt(t *testing.T) {
	for _, pods := range []bool{false, true} {
		e := New()
		e.Observe(&kube.Pod{Spec: kube.PodSpec{Containers: []kube.Container{{Name: "main"}}}, Status: kube.PodStatus{Phase: kube.Succeeded, ContainerStatuses: []kube.ContainerStatus{{Name: "main",
			State: kube.State{Terminated: &kube.Terminated{StartedAt: at(1), FinishedAt: at(9)}}}}}}, at(0), at(10))
		v := e.Views(pods)
		v[0].SetUsage(&Usage{CPU: new(7.5), Given: true})
		v[0].Tell()
		e.Untell()
		if v = e.Views(pods); v[0].Told() || v[0].Usage == nil || *v[0].Usage.CPU != 7.5 {
			t.Errorf("pods %t: told %t, usage %+v", pods, v[0].Told(), v[0].Usage)
		}
	}
}
