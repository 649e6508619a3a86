package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// at is so many minutes after noon.
func at(minutes int) time.Time { return noon().Add(time.Duration(minutes) * time.Minute) }

// runName is the name of the run of a container of a pod that began at that minute.
func runName(pod, container string, minutes int) string {
	return fmt.Sprintf("uid-%s-%s@%d", pod, container, at(minutes).Unix())
}

// pod is a pod of a namespace with one container, which has a status when state says so.
func pod(namespace, name, phase string, status ...kube.ContainerStatus) kube.Pod {
	start := noon()
	p := kube.Pod{
		Metadata: kube.Meta{Namespace: namespace, Name: name, UID: "uid-" + name, CreationTimestamp: noon(), Labels: map[string]string{"user": "alice"}},
		Spec: kube.PodSpec{NodeName: "n1", Containers: []kube.Container{{Name: "main", Image: "img:1", Resources: kube.Resources{
			Requests: kube.Quantities{"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": "1"}, Limits: kube.Quantities{"cpu": "2"}}}}},
		Status: kube.PodStatus{Phase: phase, ContainerStatuses: status},
	}
	if len(status) > 0 {
		p.Status.StartTime = &start
	}
	return p
}

func running(restarts int64, start int, last ...*kube.Terminated) kube.ContainerStatus {
	s := kube.ContainerStatus{Name: "main", RestartCount: restarts, State: kube.State{Running: &kube.Started{StartedAt: at(start)}}}
	for _, t := range last {
		s.LastState.Terminated = t
	}
	return s
}

func over(restarts int64, start, stop, code int, last ...*kube.Terminated) kube.ContainerStatus {
	s := running(restarts, start, last...)
	s.State = kube.State{Terminated: terminated(start, stop, code)}
	return s
}

func terminated(start, stop, code int) *kube.Terminated {
	return &kube.Terminated{StartedAt: at(start), FinishedAt: at(stop), ExitCode: code, Reason: map[bool]string{true: "Completed", false: "Error"}[code == 0]}
}

func (s *site) stopsAt(run string, minutes int, estimated bool) {
	s.t.Helper()
	if got := s.value(run, "stop").Time(); !got.Equal(at(minutes)) || s.value(run, "estimated").Bool() != estimated {
		s.t.Errorf("%s stops at %s, estimated %t; want %s, %t", run, got, s.value(run, "estimated").Bool(), at(minutes), estimated)
	}
}

func TestPod_OverAndDeleted_IsOneRunWithItsTimesAndAmounts(t *testing.T) {
	s := newSite(t)
	s.server.PutNode(kube.Node{Metadata: kube.Meta{Name: "n1", Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-H200"}}})
	s.server.PutNamespace(kube.Namespace{Metadata: kube.Meta{Name: "phys", Labels: map[string]string{"project": "ERC-12"}}})
	s.start()
	s.server.Put(pod("phys", "a", kube.Pending))
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	s.wantRuns(runName("a", "main", 1) + " open")
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)))
	s.server.Delete("phys", "a", at(9))
	s.seen()
	s.wantRuns(runName("a", "main", 1))
	s.stopsAt(runName("a", "main", 1), 9, false)
	for attribute, want := range map[string]string{"user": "alice", "namespace": "phys", "gpu_model": "NVIDIA-H200", "project": "ERC-12", "image": "img:1", "state": "complete", "node": "n1", "kind": "main", "phase": "Succeeded"} {
		if got := s.value(runName("a", "main", 1), attribute).Str(); got != want {
			t.Errorf("%s is %q, want %q", attribute, got, want)
		}
	}
	for attribute, want := range map[string]int64{"cpu_millicores": 1500, "cpu_limit_millicores": 2000, "memory_mb": 2048, "gpus": 1, "exit_code": 0} {
		if got := s.value(runName("a", "main", 1), attribute).Int(); got != want {
			t.Errorf("%s is %d, want %d", attribute, got, want)
		}
	}
}

// What a run has of a card is not guessed while the labels of its node are not known.
func TestPod_OnANodeNewerThanTheListing_IsSentAgainWithItsLabels(t *testing.T) {
	for name, c := range map[string]struct{ ended, restart bool }{"ended": {true, false}, "source restarts": {false, true}, "ended and source restarts": {true, true}} {
		t.Run(name, func(t *testing.T) {
			s, still := newSite(t), sdk.Node{Name: "capacity", Value: sdk.Bool(false)} // which lists nodes, too
			s.server.PutNode(kube.Node{Metadata: kube.Meta{Name: "n1"}})
			s.server.PutNamespace(kube.Namespace{Metadata: kube.Meta{Name: "phys"}})
			s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
			s.start(still)
			s.seen()
			s.server.PutNode(kube.Node{Metadata: kube.Meta{Name: "n2", Labels: map[string]string{"nvidia.com/gpu.replicas": "4"}}})
			s.server.PutNamespace(kube.Namespace{Metadata: kube.Meta{Name: "chem", Labels: map[string]string{"project": "ERC-12"}}})
			b := pod("chem", "b", kube.Running, running(1, 4, terminated(2, 3, 1)))
			if c.ended {
				b = pod("chem", "b", kube.Succeeded, over(1, 4, 5, 0, terminated(2, 3, 1)))
			}
			b.Spec.NodeName = "n2"
			s.server.Put(b)
			s.seen()
			runs := []string{runName("b", "main", 2), runName("b", "main", 4)}
			for _, run := range runs {
				if _, milli, unread := s.figures(run); !milli.IsNull() || !strings.Contains(unread["milli_gpus"], `labels of the node "n2"`) {
					t.Errorf("%s: %v, unread %v", run, milli, unread)
				}
			}
			if c.restart {
				s.stop()
				s.start(still)
			}
			s.set(at(1))
			for _, run := range runs {
				s.await("its share and its project", func() bool {
					j := s.jobs[run]
					return !valueOf(j, "milli_gpus").IsNull() && !valueOf(j, "project").IsNull()
				})
				if got := s.value(run, "milli_gpus").Int(); got != 250 || s.value(run, "project").Str() != "ERC-12" {
					t.Errorf("%s: %d thousandths of a card, project %v", run, got, s.value(run, "project"))
				}
			}
		})
	}
}

// Nodes and namespaces are listed at times of their own.
func TestPod_OnANewNodeWhileNamespacesAreListed_StillWaitsForItsNode(t *testing.T) {
	s := newSite(t)
	waits := func(namespace, name string) {
		p := pod(namespace, name, kube.Pending)
		p.Spec.NodeName = ""
		s.server.Put(p)
		s.seen()
	}
	after := func(seconds int) { s.set(noon().Add(time.Duration(seconds) * time.Second)) }
	s.server.PutNamespace(kube.Namespace{Metadata: kube.Meta{Name: "phys"}})
	s.start(sdk.Node{Name: "capacity", Value: sdk.Bool(false)})
	waits("phys", "namespaces-are-listed")
	after(20)
	s.server.PutNode(kube.Node{Metadata: kube.Meta{Name: "n1"}})
	s.server.Put(pod("phys", "nodes-are-listed", kube.Running, running(0, 0)))
	s.seen()
	b := pod("phys", "b", kube.Succeeded, over(0, -2, -1, 0))
	b.Spec.NodeName = "n2"
	s.server.Put(b)
	waits("chem", "of-new-namespace")
	had := s.server.Asked("GET namespaces")
	after(40)
	s.await("another listing of namespaces", func() bool { return s.server.Asked("GET namespaces") > had })
	waits("phys", "looked-again")
	s.server.PutNode(kube.Node{Metadata: kube.Meta{Name: "n2", Labels: map[string]string{"nvidia.com/gpu.replicas": "4"}}})
	after(60)
	s.await("its share", func() bool { return !valueOf(s.jobs[runName("b", "main", -2)], "milli_gpus").IsNull() })
}

func TestPod_ThatEndedOnAYoungNode_IsNotAskedForWhenItIsDeleted(t *testing.T) {
	s := newSite(t)
	s.server.PutNode(kube.Node{Metadata: kube.Meta{Name: "n1", CreationTimestamp: at(0)}})
	s.start(sdk.Node{Name: "capacity", Value: sdk.Bool(false)}, text("list_interval", "100ms"))
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 2, 0)))
	s.seen()
	listings := func(more int) {
		had := s.server.Asked("GET pods")
		s.await("listings", func() bool { return s.server.Asked("GET pods") >= had+more })
	}
	listings(3)
	s.server.Delete("phys", "a", at(3))
	s.seen()
	listings(5)
	if n := s.server.Asked("GET a"); n > 0 {
		t.Errorf("it was asked for %d times", n)
	}
}

// A DaemonSet's pod is the first on a new node, before the labels of its GPUs are there.
func TestPod_OnANodeThatGetsItsLabelsLater_IsNoWholeCard(t *testing.T) {
	s := newSite(t)
	n := kube.Node{Metadata: kube.Meta{Name: "n1", CreationTimestamp: at(0)}}
	s.server.PutNode(n)
	daemon := pod("kube-system", "d", kube.Running, running(0, 1))
	daemon.Spec.Containers[0].Resources = kube.Resources{}
	s.server.Put(daemon)
	s.start(sdk.Node{Name: "capacity", Value: sdk.Bool(false)})
	s.seen()
	n.Metadata.Labels = map[string]string{"nvidia.com/gpu.replicas": "4"}
	s.server.PutNode(n)
	bound := pod("phys", "a", kube.Pending)
	bound.Metadata.CreationTimestamp = at(-10)
	s.server.Put(bound)
	s.seen()
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 2, 0)))
	s.seen()
	run := runName("a", "main", 1)
	if _, milli, unread := s.figures(run); !milli.IsNull() || unread["milli_gpus"] == "" {
		t.Errorf("%v, unread %v", milli, unread)
	}
	s.set(at(1))
	s.await("its share", func() bool { return !valueOf(s.jobs[run], "milli_gpus").IsNull() })
	if got := s.value(run, "milli_gpus").Int(); got != 250 {
		t.Errorf("%d thousandths of a card", got)
	}
}

func TestPod_OfAQueue_HasItByItsLabelsOrThoseOfItsJob(t *testing.T) {
	s := newSite(t)
	s.server.PutJob(kube.Job{Metadata: kube.Meta{Namespace: "phys", Name: "j", UID: "uid-j", Labels: map[string]string{"kueue.x-k8s.io/queue-name": "of-job"},
		OwnerReferences: []kube.Owner{{Kind: "JobSet", Name: "training", Controller: true}}}})
	job := []kube.Owner{{Kind: "Job", Name: "j", UID: "uid-j", Controller: true}}
	for _, c := range []struct {
		name          string
		labels        map[string]string
		owners        []kube.Owner
		queue, byWhom string
	}{
		{"a", map[string]string{"kueue.x-k8s.io/queue-name": "asked", "kueue.x-k8s.io/local-queue-name": "got", "kueue.x-k8s.io/cluster-queue-name": "all"}, job, "got", "training"},
		{"b", map[string]string{"kueue.x-k8s.io/queue-name": "asked"}, job, "asked", "training"},
		{"c", nil, job, "of-job", "training"},
		{"d", nil, nil, "", ""},
	} {
		p := pod("phys", c.name, kube.Running, running(0, 1))
		p.Metadata.Labels, p.Metadata.OwnerReferences = c.labels, c.owners
		s.server.Put(p)
		if c.name == "a" {
			s.start()
		}
		s.seen()
		run := runName(c.name, "main", 1)
		got, of, kind, all := s.value(run, "queue"), s.value(run, "job_owner"), s.value(run, "job_owner_kind"), s.value(run, "cluster_queue")
		if got.IsNull() != (c.queue == "") || !got.IsNull() && got.Str() != c.queue {
			t.Errorf("%s: queue %v, want %q", c.name, got, c.queue)
		}
		if of.IsNull() != (c.byWhom == "") || !of.IsNull() && (of.Str() != c.byWhom || kind.Str() != "JobSet") {
			t.Errorf("%s: owner %v %v of the Job", c.name, kind, of)
		}
		if all.IsNull() != (c.name != "a") {
			t.Errorf("%s: cluster queue %v", c.name, all)
		}
	}
}

func TestContainer_Restarts_EachStartIsARun(t *testing.T) {
	s := newSite(t)
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	s.server.Put(pod("phys", "a", kube.Running, running(1, 4, terminated(1, 3, 1))))
	s.seen()
	s.server.Put(pod("phys", "a", kube.Running, running(2, 8, terminated(4, 7, 1))))
	s.seen()
	s.wantRuns(runName("a", "main", 1), runName("a", "main", 4), runName("a", "main", 8)+" open")
	s.stopsAt(runName("a", "main", 1), 3, false)
	s.stopsAt(runName("a", "main", 4), 7, false)
	if s.value(runName("a", "main", 1), "restart").Bool() || !s.value(runName("a", "main", 4), "restart").Bool() {
		t.Error("the first start is a restart, or the second is not")
	}
}

// A container for debugging comes into a pod that runs.
func TestContainer_Ephemeral_IsARunOfItsOwnAndPartOfThePod(t *testing.T) {
	for runs, want := range map[string][]string{
		"containers": {runName("a", "main", 1), runName("a", "debug", 4), runName("a", "late", 7)},
		"pods":       {"phys-a-uid-a"},
	} {
		t.Run(runs, func(t *testing.T) {
			s := newSite(t)
			s.start(text("runs", runs))
			a := pod("phys", "a", kube.Running, running(0, 1))
			s.server.Put(a)
			s.seen()
			named := func(name string, c kube.ContainerStatus) kube.ContainerStatus { c.Name = name; return c }
			a.Spec.EphemeralContainers = []kube.Container{{Name: "debug", Image: "tools:1"}, {Name: "late", Image: "tools:1"}, {Name: "never", Image: "nowhere:1"}}
			a.Status.EphemeralContainerStatuses = []kube.ContainerStatus{named("debug", running(0, 4))}
			s.server.Put(a)
			s.seen()
			a.Status = pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)).Status
			a.Status.EphemeralContainerStatuses = []kube.ContainerStatus{named("debug", over(0, 4, 6, 3)), named("late", running(0, 7))}
			s.set(at(10))
			s.server.Put(a)
			s.seen()
			s.wantRuns(slices.Clone(want)...)
			if got := s.soFar().skipped; got != 0 {
				t.Errorf("%d were skipped", got)
			}
			if runs == "pods" {
				if got := s.value(want[0], "cpu_millicores").Int(); got != 1500 {
					t.Errorf("the pod has %d thousandths of a core", got)
				}
				return
			}
			s.stopsAt(want[0], 9, false)
			s.stopsAt(want[1], 6, false)
			s.stopsAt(want[2], 10, true) // Kubernetes ends it with the pod, and tells no time
			for _, name := range want[1:] {
				if kind, image, cores := s.value(name, "kind").Str(), s.value(name, "image").Str(), s.value(name, "cpu_millicores").Int(); kind != run.Ephemeral || image != "tools:1" || cores != 0 {
					t.Errorf("%s: kind %q, image %q, %d thousandths of a core", name, kind, image, cores)
				}
			}
			if got := s.value(want[0], "cpu_millicores").Int(); got != 1500 {
				t.Errorf("the main container has %d thousandths of a core", got)
			}
		})
	}
}

func TestContainer_RestartsThatWereMissed_AreAGapAndNoGuess(t *testing.T) {
	s := newSite(t)
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	s.kill()
	for range 2 { // the events of the restarts between are forgotten
		s.server.Put(pod("phys", "a", kube.Running, running(6, 40, terminated(30, 39, 1))))
		s.server.Compact()
	}
	s.set(at(50))
	s.start()
	s.await("the gap", func() bool { return len(s.gaps) == 2 })
	s.wantRuns(runName("a", "main", 1), runName("a", "main", 30), runName("a", "main", 40)+" open")
	s.stopsAt(runName("a", "main", 1), 0+1, true) // when it was last seen, which is before its start by the clock of the test
	if !slices.ContainsFunc(s.soFar().gaps, func(g sdk.Gap) bool { return strings.Contains(g.Reason, "4 starts") }) {
		t.Errorf("gaps %+v", s.soFar().gaps)
	}
}

// What was missed is in the journal as soon as it is noticed, so the gap must not wait for the
// next listing: it would be lost with the process.
func TestContainer_RestartsThatWereMissed_AreAGapAlsoWhenTheSourceIsKilled(t *testing.T) {
	s := newSite(t)
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	s.loseBatchOf(runName("a", "main", 40))
	s.server.Put(pod("phys", "a", kube.Running, running(6, 40, terminated(30, 39, 1))))
	s.await("a batch that is lost", func() bool { return s.deaf })
	s.kill()
	s.start()
	s.await("the gap", func() bool { return len(s.gaps) > 0 })
	if got := s.soFar().gaps; len(got) != 1 || !strings.Contains(got[0].Reason, "4 starts") {
		t.Errorf("gaps %+v", got)
	}
	s.server.Put(pod("phys", "a", kube.Running, running(9, 60, terminated(50, 59, 1))))
	s.await("the gap of what was missed since", func() bool { return len(s.gaps) > 1 })
	if got := s.soFar().gaps; len(got) != 2 || !strings.Contains(got[1].Reason, "1 starts") {
		t.Errorf("gaps %+v", got)
	}
}

// The daemon has a batch, and the source is killed before it knows.
func TestKilled_BehindWhatIsToldOnce_DoesNotTellItAgain(t *testing.T) {
	s := newSite(t)
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	evicted := pod("phys", "b", kube.Failed)
	evicted.Status.Reason = "Evicted"
	for _, step := range []struct {
		last func(sdk.Batch) bool
		pod  kube.Pod
	}{
		{func(b sdk.Batch) bool { return len(b.Gaps) > 0 }, pod("phys", "a", kube.Running, running(6, 40, terminated(30, 39, 1)))},
		{func(b sdk.Batch) bool { return b.Skipped > 0 }, evicted},
	} {
		s.mu.Lock()
		s.last = step.last
		s.mu.Unlock()
		s.server.Put(step.pod)
		s.await("the batch", func() bool { return s.deaf })
		for range 2 {
			s.kill()
			s.start()
			s.server.Put(pod("phys", "c", kube.Running, running(0, 2)))
			s.seen()
		}
	}
	if got := s.soFar(); len(got.gaps) != 1 || got.skipped != 1 {
		t.Errorf("gaps %+v, %d were skipped; want one of each", got.gaps, got.skipped)
	}
}

func TestContainers_ThatNeverStarted_AreCountedOnceAlsoWhenTheSourceIsKilled(t *testing.T) {
	s := newSite(t)
	s.lose = func(b sdk.Batch) bool { return b.Skipped > 0 }
	s.start()
	s.seen()
	evicted := pod("phys", "a", kube.Failed)
	evicted.Status.Reason = "Evicted"
	s.server.Put(evicted)
	s.await("a batch that is lost", func() bool { return s.deaf })
	for range 3 {
		s.kill()
		s.start()
		s.seen()
		s.stop()
	}
	if got := s.soFar().skipped; got != 1 {
		t.Errorf("%d were skipped, want 1", got)
	}
}

func TestPod_DeletedWhileItRuns_EndsAtItsDeletion(t *testing.T) {
	s := newSite(t)
	s.start()
	p := pod("phys", "a", kube.Running, running(0, 1))
	s.server.Put(p)
	s.seen()
	deleted := at(7)
	p.Metadata.DeletionTimestamp = &deleted
	s.server.Put(p)
	s.set(at(30))
	s.server.Delete("phys", "a", deleted)
	s.seen()
	s.wantRuns(runName("a", "main", 1))
	s.stopsAt(runName("a", "main", 1), 7, true)
	if got := s.value(runName("a", "main", 1), "state").Str(); got != "deleted" {
		t.Errorf("state %q", got)
	}
}

func TestAgentAway_ChangesAreReplayed_NothingIsLost(t *testing.T) {
	s := newSite(t)
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	s.kill()
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 5, 0)))
	s.server.Delete("phys", "a", at(5))
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 6, 8, 3)))
	s.server.Delete("phys", "b", at(8))
	s.set(at(20))
	s.start()
	s.await("both", func() bool { return len(s.runs()) == 2 && s.jobs[runName("b", "main", 6)].Ended })
	s.seen()
	s.wantRuns(runName("a", "main", 1), runName("b", "main", 6))
	s.stopsAt(runName("a", "main", 1), 5, false)
	s.stopsAt(runName("b", "main", 6), 8, false)
	if len(s.soFar().gaps) != 0 {
		t.Errorf("gaps %+v", s.soFar().gaps)
	}
}

// Events of before come one after the other, and the source may have taken all that are there.
func TestAgentAway_ChangesAreReplayedSlowly_WatermarkWaitsForTheLast(t *testing.T) {
	s, more := newSite(t), make(chan struct{})
	s.server.OnEvent = func() {
		if s.now().Equal(at(60)) {
			<-more
		}
	}
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	s.stop()
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 5, 0)))
	first := versionNumber(s.server.Version())
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 6, 8, 3)))
	s.server.Delete("phys", "b", at(8))
	s.set(at(60))
	s.start()
	s.await("the first event", func() bool {
		c, err := decodeCheckpoint(s.checkpoint)
		return err == nil && versionNumber(c.Versions[""]) >= first
	})
	if got := s.soFar(); !got.watermark.Before(at(0)) || len(got.jobs) != 1 {
		t.Errorf("before the last event: watermark %s, runs %v", got.watermark, got.runs())
	}
	close(more)
	s.await("the watermark", func() bool { return s.watermark.Equal(at(59)) })
	s.wantRuns(runName("a", "main", 1), runName("b", "main", 6))
}

func TestWatch_BreaksOff_WatermarkWaitsForWhatItReplays(t *testing.T) {
	s, more := newSite(t), make(chan struct{})
	s.server.OnEvent = func() {
		if s.now().Equal(at(60)) {
			<-more
		}
	}
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	had := s.server.Asked("GET pods")
	s.server.Down(true)
	s.await("the end of the watch", func() bool { return s.server.Asked("GET pods") > had })
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 5, 0)))
	first := versionNumber(s.server.Version())
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 6, 8, 3)))
	s.set(at(60))
	s.server.Down(false)
	s.await("the first event", func() bool {
		c, err := decodeCheckpoint(s.checkpoint)
		return err == nil && versionNumber(c.Versions[""]) >= first
	})
	if got := s.soFar(); !got.watermark.Before(at(0)) || len(got.jobs) != 1 {
		t.Errorf("before the last event: watermark %s, runs %v", got.watermark, got.runs())
	}
	close(more)
	s.await("the watermark", func() bool { return s.watermark.Equal(at(59)) })
	s.wantRuns(runName("a", "main", 1), runName("b", "main", 6))
}

func TestAgentAway_ChangesAreForgotten_PodEndsWhenLastSeenAndAGapTells(t *testing.T) {
	s := newSite(t)
	s.set(at(10))
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	s.await("ten past", func() bool { c, err := decodeCheckpoint(s.checkpoint); return err == nil && c.Look.Equal(at(10)) })
	s.kill()
	s.server.Delete("phys", "a", at(15))
	s.server.Put(pod("phys", "b", kube.Running, running(0, 16)))
	s.server.Compact()
	s.set(at(20))
	s.start()
	s.await("its end and the gaps", func() bool { return s.jobs[runName("a", "main", 1)].Ended && len(s.gaps) == 2 })
	s.wantRuns(runName("a", "main", 1), runName("b", "main", 16)+" open")
	s.stopsAt(runName("a", "main", 1), 10, true)
	if s.value(runName("a", "main", 1), "state").Str() != "forgotten" {
		t.Error("its state is not forgotten")
	}
	for _, g := range s.soFar().gaps {
		if !g.From.Equal(at(10)) || !g.To.Equal(at(20)) {
			t.Errorf("gap %+v", g)
		}
	}
}

func TestListing_ForgottenInItsMiddle_IsTakenAgainWhole(t *testing.T) {
	s := newSite(t)
	var want []string
	for i := range 30 {
		s.server.Put(pod("phys", fmt.Sprintf("p%02d", i), kube.Succeeded, over(0, i, i+1, 0)))
		want = append(want, runName(fmt.Sprintf("p%02d", i), "main", i))
	}
	s.server.OnPage = func(what string, pages int) {
		if what == "pods" && pages == 3 {
			s.server.Compact()
		}
	}
	s.start(sdk.Node{Name: "page_size", Value: sdk.Int(7)})
	s.await("all", func() bool { return len(s.runs()) == 30 })
	s.wantRuns(want...)
	if len(s.soFar().collected) != 0 {
		t.Errorf("errors %v", s.soFar().collected)
	}
}

func TestListing_ForgottenInItsMiddle_CountsEachObjectOnce(t *testing.T) {
	s := newSite(t)
	offered := kube.Slice{Metadata: kube.Meta{Name: "offered"}}
	offered.Spec.Driver = "gpu.nvidia.com"
	offered.Spec.Devices = []kube.Device{{Name: "gpu-0", Attributes: map[string]kube.DeviceAttribute{"type": {Text: "gpu"}}}}
	for i := range 5 {
		s.server.PutNode(readyNode(fmt.Sprintf("n%d", i), kube.Quantities{"cpu": "8"}))
		offered.Metadata.Name, offered.Spec.Pool.Name, offered.Spec.Node = fmt.Sprint(i), fmt.Sprint(i), fmt.Sprintf("n%d", i)
		s.server.PutSlice(offered)
		waits := job(fmt.Sprintf("a%d", i), 0, 1, 2)
		waits.Spec.Suspend, waits.Status.CompletionTime = true, nil
		s.server.PutJob(waits)
		s.server.PutJob(job(fmt.Sprintf("over%d", i), 3, 1, 2)) // 3 pods of which none was seen
	}
	var mu sync.Mutex
	forgotten := map[string]bool{}
	s.server.OnPage = func(what string, _ int) {
		mu.Lock()
		defer mu.Unlock()
		if !forgotten[what] || what == "jobs" { // which are listed for the gaps and for the census
			forgotten[what] = true
			s.server.Compact()
		}
	}
	s.start(sdk.Node{Name: "page_size", Value: sdk.Int(3)})
	s.await("facts", func() bool { return len(s.capacity) > 0 && len(s.census) > 0 })
	if want := []sdk.Amount{{Name: "GPUs", Amount: 5}, {Name: "Memory"}, {Name: "MilliCores", Amount: 40_000}, {Name: "MilliGPUs", Amount: 5000}}; !slices.Equal(s.soFar().capacity[0].Components, want) {
		t.Errorf("capacity %v, want %v", s.soFar().capacity[0].Components, want)
	}
	if want := []sdk.CensusRow{{User: "bob", Queue: "phys", Pending: 5}}; !slices.Equal(s.soFar().census[0].Rows, want) {
		t.Errorf("census %v, want %v", s.soFar().census[0].Rows, want)
	}
	if n := len(s.soFar().gaps); n != 5 {
		t.Errorf("%d gaps, want 5", n)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, what := range []string{"nodes", "resourceslices", "jobs"} {
		if !forgotten[what] {
			t.Errorf("the listing of %s had one page", what)
		}
	}
}

// Pods may wait to be sent from before, when the API server broke off.
func TestListing_EmptyPageWhilePodsWait_SendsThem(t *testing.T) {
	s := newSite(t)
	source := s.configured()
	client, err := kube.NewClient(source.config.server)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p, err := source.beginPass(t.Context(), sdk.Start{}, client, sdk.NewStream(run.Attributes(), s.take))
	if err != nil {
		t.Fatal(err)
	}
	waiting := pod("phys", "a", kube.Running, running(0, 1))
	if err := p.applyPod(&waiting, false); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.applyPage(t.Context(), "", nil, nil, map[string]bool{}), p.Close()); err != nil {
		t.Fatal(err)
	}
	s.wantRuns(runName("a", "main", 1) + " open")
}

// The SDK goes on after a panic, so that the next Collect needs the journal.
func TestCollect_Panics_ClosesItsJournal(t *testing.T) {
	s := newSite(t)
	source := s.configured()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		_ = source.Collect(t.Context(), sdk.Start{}, sdk.NewStream(run.Attributes(), func(context.Context, sdk.Batch) error { panic("odd") })) // it does not return
	}()
	waiting, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	j, err := journalForm().Open(waiting, s.dir, "other")
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestServer_Restarts_WatchGoesOn(t *testing.T) {
	s := newSite(t)
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	for i := range 3 {
		s.server.Down(true)
		s.server.Put(pod("phys", fmt.Sprintf("b%d", i), kube.Succeeded, over(0, i, i+1, 0)))
		s.server.Delete("phys", fmt.Sprintf("b%d", i), at(i+1))
		s.server.Down(false)
		s.seen()
	}
	s.wantRuns(runName("a", "main", 1)+" open", runName("b0", "main", 0), runName("b1", "main", 1), runName("b2", "main", 2))
	if got := s.soFar(); len(got.gaps)+len(got.collected) != 0 {
		t.Errorf("gaps %v, errors %v", got.gaps, got.collected)
	}
}

func TestServer_StateOfBefore_EverythingIsTakenAgain(t *testing.T) {
	s := newSite(t)
	s.start(sdk.Node{Name: "list_interval", Value: sdk.String("100ms")})
	for range 20 {
		s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	}
	s.seen()
	s.server.Restore(5)
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 2, 3, 0)))
	s.await("what came after the restore", func() bool { return s.jobs[runName("b", "main", 2)].Ended })
}

func TestToken_Expired_IsNamedAndRetried(t *testing.T) {
	s := newSite(t)
	s.server.Token = "t"
	s.start()
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 2, 0)))
	s.seen()
	s.server.SetToken("new")
	s.server.Down(true) // which ends the watch
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 3, 4, 0)))
	s.server.Down(false)
	s.await("an error that says so", func() bool {
		return slices.ContainsFunc(s.collected, func(err error) bool { return err != nil && strings.Contains(err.Error(), "has expired: renew it") })
	})
	s.server.WriteKubeconfig(t, s.config, "new")
	s.await("the other run", func() bool { return s.jobs[runName("b", "main", 3)].Ended })
	s.wantRuns(runName("a", "main", 1), runName("b", "main", 3))
}

func TestServiceAccount_WithoutKubeconfig_IsUsedAndItsTokenIsReadAnew(t *testing.T) {
	s := newSite(t)
	s.config, s.account = "", t.TempDir()
	address, err := url.Parse(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", address.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", address.Port())
	writePEM(t, filepath.Join(s.account, "ca.crt"), s.server.Certificate().Raw)
	token := func(token string) {
		if err := os.WriteFile(filepath.Join(s.account, "token"), []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token("t")
	s.server.Token = "t"
	s.start()
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 2, 0)))
	s.seen()
	if got := s.soFar().collected; len(got) > 0 {
		t.Errorf("errors %v", got)
	}
	s.server.SetToken("new")
	s.server.Down(true) // which ends the watch
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 3, 4, 0)))
	s.server.Down(false)
	s.await("an error that speaks of the service account alone", func() bool {
		return slices.ContainsFunc(s.collected, func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "the token of the pod's service account, "+s.account) && !strings.Contains(err.Error(), "kubeconfig")
		})
	})
	token("new")
	s.await("the other run", func() bool { return s.jobs[runName("b", "main", 3)].Ended })
	s.wantRuns(runName("a", "main", 1), runName("b", "main", 3))
}

func TestPod_ThatIsNone_IsInQuarantineAndTheOthersGoOn(t *testing.T) {
	s := newSite(t)
	s.server.PutRaw("phys", "odd", json.RawMessage(`{"metadata":{"name":"odd","namespace":"phys","uid":"uid-odd","resourceVersion":"11"},"status":{"containerStatuses":"none"}}`))
	big := pod("phys", "big", kube.Succeeded, over(0, 1, 2, 0))
	big.Spec.Containers[0].Resources.Requests = kube.Quantities{"memory": "8Ei"}
	s.server.Put(big)
	s.server.Put(pod("phys", "bare", kube.Succeeded)) // without a status
	s.server.Put(pod("phys", "empty", ""))
	s.server.Put(pod("phys", "good", kube.Succeeded, over(0, 1, 2, 0)))
	s.start()
	s.seen()
	s.server.PutRaw("phys", "late", json.RawMessage(`{"metadata":{"name":"late","namespace":"phys","uid":"uid-late","resourceVersion":"17"},"spec":[]}`))
	s.server.Put(pod("phys", "last", kube.Succeeded, over(0, 1, 2, 0)))
	s.await("the last", func() bool { return s.jobs[runName("last", "main", 1)].Ended && len(s.refused) == 3 })
	s.wantRuns(runName("big", "main", 1), runName("good", "main", 1), runName("last", "main", 1))
	if u := s.soFar().jobs[runName("big", "main", 1)].Unread; !slices.ContainsFunc(u, func(u sdk.Unread) bool { return u.Attribute == "memory_mb" && strings.Contains(u.Problem, "8Ei") }) {
		t.Errorf("unread of big: %+v", u)
	}
	for i, want := range []string{"uid-odd", "uid-bare", "uid-late"} {
		if !slices.ContainsFunc(s.soFar().refused, func(r sdk.Refused) bool { return r.Run == want && r.Message != "" && len(r.Raw) > 0 }) {
			t.Errorf("%d: %s is not refused: %+v", i, want, s.soFar().refused)
		}
	}
}

func TestFilters_Changed_WhatWasSentIsTakenBack(t *testing.T) {
	s := newSite(t)
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.server.Put(pod("kube-system", "b", kube.Running, running(0, 1)))
	s.start()
	s.seen()
	s.wantRuns(runName("a", "main", 1)+" open", runName("b", "main", 1)+" open")
	s.stop()
	s.start(list("exclude_namespaces", "kube-*"))
	s.await("it is taken back", func() bool { return s.jobs[runName("b", "main", 1)].Excluded })
	s.wantRuns(runName("a", "main", 1) + " open")
}

func TestNamespaces_EachIsAskedForByItself(t *testing.T) {
	s := newSite(t)
	s.server.Deny = map[string]bool{"nodes": true, "namespaces": true}
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 2, 0)))
	s.server.Put(pod("chem", "b", kube.Succeeded, over(0, 1, 2, 0)))
	s.server.Put(pod("bio", "c", kube.Succeeded, over(0, 1, 2, 0)))
	s.start(list("namespaces", "phys", "chem"))
	s.await("both", func() bool { return len(s.runs()) == 2 })
	s.server.Put(pod("chem", "d", kube.Succeeded, over(0, 3, 4, 0)))
	s.await("the third", func() bool { return len(s.runs()) == 3 })
	s.wantRuns(runName("a", "main", 1), runName("b", "main", 1), runName("d", "main", 3))
	c, err := decodeCheckpoint(s.soFar().checkpoint)
	if err != nil || c.Versions["phys"] == "" || c.Versions["chem"] == "" || len(c.Versions) != 2 {
		t.Errorf("checkpoint %s, %v", s.soFar().checkpoint, err)
	}
}

func TestFacts_CapacityAndCensus_AreThoseOfNodesAndPods(t *testing.T) {
	s := newSite(t)
	n := kube.Node{Metadata: kube.Meta{Name: "n1", Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-H200"}}}
	n.Status.Allocatable = kube.Quantities{"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "nvidia.com/mig-1g.5gb": "7", "pods": "110"}
	n.Status.Conditions = []kube.Condition{{Type: "Ready", Status: "True"}}
	s.server.PutNode(n)
	away := n
	away.Metadata.Name, away.Status.Conditions = "n2", []kube.Condition{{Type: "Ready", Status: "Unknown"}}
	s.server.PutNode(away)
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.server.Put(pod("phys", "b", kube.Pending))
	s.start()
	s.await("facts", func() bool { return len(s.capacity) > 0 && len(s.census) > 0 })
	want := []sdk.Amount{{Name: "GPUs", Amount: 8}, {Name: "GPUs:NVIDIA-H200", Amount: 8}, {Name: "Memory", Amount: 512 << 10},
		{Name: "MilliCores", Amount: 64000}, {Name: "MilliGPUs", Amount: 9000}, {Name: "nvidia.com/gpu", Amount: 8}, {Name: "nvidia.com/mig-1g.5gb", Amount: 7}}
	if got := s.soFar().capacity[0].Components; !slices.Equal(got, want) {
		t.Errorf("capacity %v, want %v", got, want)
	}
	if got := s.soFar().census[0].Rows; !slices.Equal(got, []sdk.CensusRow{{User: "alice", Queue: "phys", Running: 1, Pending: 1}}) {
		t.Errorf("census %v", got)
	}
}

// A quantity that cannot be read, of one node, takes no other resource with it.
func TestCapacity_QuantityThatCannotBeRead_IsLeftOutAlone(t *testing.T) {
	for resource, without := range map[string][]string{
		"cpu":               {"MilliCores"},
		"memory":            {"Memory"},
		"ephemeral-storage": {"Disk"},
		"example.com/x":     {"example.com/x"},
		"nvidia.com/gpu":    {"GPUs", "GPUs:H200", "MilliGPUs", "nvidia.com/gpu"},
	} {
		t.Run(resource, func(t *testing.T) {
			s := newSite(t)
			for _, name := range []string{"n1", "n2"} {
				n := kube.Node{Metadata: kube.Meta{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": "H200"}}}
				n.Status.Allocatable = kube.Quantities{"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "8", "example.com/x": "2"}
				if name == "n2" {
					n.Status.Allocatable[resource] = "10E"
				}
				n.Status.Conditions = []kube.Condition{{Type: "Ready", Status: "True"}}
				s.server.PutNode(n)
			}
			s.start()
			s.await("a capacity", func() bool { return len(s.capacity) > 0 })
			want := []sdk.Amount{}
			for _, a := range []sdk.Amount{{Name: "Disk", Amount: 2 << 20}, {Name: "GPUs", Amount: 16}, {Name: "GPUs:H200", Amount: 16}, {Name: "Memory", Amount: 1 << 20},
				{Name: "MilliCores", Amount: 128_000}, {Name: "MilliGPUs", Amount: 16_000}, {Name: "example.com/x", Amount: 4}, {Name: "nvidia.com/gpu", Amount: 16}} {
				if !slices.Contains(without, a.Name) {
					want = append(want, a)
				}
			}
			if got := s.soFar().capacity[0].Components; !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

func TestCensus_SuspendedJobs_WaitWithThePodsTheyLack(t *testing.T) {
	s := newSite(t)
	done := []kube.Condition{{Type: "Failed", Status: "True"}}
	job := func(name, user string, change func(*kube.Job)) {
		j := kube.Job{Metadata: kube.Meta{Namespace: "phys", Name: name, UID: "uid-" + name}}
		j.Spec.Template.Metadata.Labels = map[string]string{"user": user}
		j.Spec.Suspend = true
		change(&j)
		s.server.PutJob(j)
	}
	job("one", "alice", func(*kube.Job) {})
	job("of-namespace", "", func(j *kube.Job) { j.Metadata.Namespace = "chem"; j.Spec.Parallelism = new(int64(3)) })
	job("wide", "bob", func(j *kube.Job) {
		j.Spec.Parallelism, j.Spec.Completions, j.Status.Succeeded = new(int64(8)), new(int64(6)), 1
	})
	job("stopping", "bob", func(j *kube.Job) { j.Spec.Parallelism, j.Status.Active = new(int64(4)), 3 })
	job("none", "carol", func(j *kube.Job) { j.Spec.Parallelism = new(int64(0)) })
	job("failed", "carol", func(j *kube.Job) { j.Status.Conditions = done })
	job("deleted", "carol", func(j *kube.Job) { j.Metadata.DeletionTimestamp = new(noon()) })
	job("admitted", "carol", func(j *kube.Job) { j.Spec.Suspend = false })
	s.server.PutNamespace(kube.Namespace{Metadata: kube.Meta{Name: "chem", Labels: map[string]string{"owner": "dave"}}})
	s.server.Put(pod("phys", "a", kube.Pending))
	s.start()
	s.await("a census", func() bool { return len(s.census) > 0 })
	want := []sdk.CensusRow{{User: "alice", Queue: "phys", Pending: 2}, {User: "bob", Queue: "phys", Pending: 6}, {User: "dave", Queue: "chem", Pending: 3}}
	if got := s.soFar().census[0].Rows; !slices.Equal(got, want) {
		t.Errorf("census %v, want %v", got, want)
	}
}

func TestCensus_WithoutTheRightToJobs_CountsPods(t *testing.T) {
	s := newSite(t)
	s.server.Deny["jobs"] = true
	s.server.Put(pod("phys", "a", kube.Pending))
	s.start()
	s.await("a census", func() bool { return len(s.census) > 0 })
	if got := s.soFar().census[0].Rows; !slices.Equal(got, []sdk.CensusRow{{User: "alice", Queue: "phys", Pending: 1}}) {
		t.Errorf("census %v", got)
	}
}
