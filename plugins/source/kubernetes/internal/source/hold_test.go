package source

import (
	"encoding/pem"
	"os"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

func writePEM(t *testing.T, path string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *site) finalizers(name string) []string {
	if p := s.server.Pod("phys", name); p != nil {
		return p.Metadata.Finalizers
	}
	return nil
}

func TestFinalizer_PodDeletedWhileAgentIsAway_IsThereUntilItsEndIsRecorded(t *testing.T) {
	s := newSite(t)
	hold := sdk.Node{Name: "finalizer", Value: sdk.Bool(true)}
	s.start(hold)
	p := pod("phys", "a", kube.Running, running(0, 1))
	p.Metadata.Finalizers = []string{"example.org/other"}
	s.server.Put(p)
	s.await("it is held", func() bool { return slices.Contains(s.finalizers("a"), finalizer) })
	s.kill()
	p = *s.server.Pod("phys", "a")
	p.Status = pod("phys", "a", kube.Succeeded, over(0, 1, 5, 0)).Status
	s.server.Put(p)
	s.server.Delete("phys", "a", at(6))
	s.server.Compact()
	s.set(at(30))
	s.start(hold)
	s.await("it is released", func() bool { return slices.Equal(s.finalizers("a"), []string{"example.org/other"}) })
	s.stopsAt(runName("a", "main", 1), 5, false)
}

func TestFinalizer_Off_IsTakenOff(t *testing.T) {
	s := newSite(t)
	p := pod("phys", "a", kube.Running, running(0, 1))
	p.Metadata.Finalizers = []string{finalizer}
	s.server.Put(p)
	s.start()
	s.await("it is released", func() bool { return len(s.finalizers("a")) == 0 })
}

func TestFinalizer_WithoutTheRight_RecordsGoOn(t *testing.T) {
	s := newSite(t)
	s.server.Rights = rights(t, "rbac.yaml")
	s.start(sdk.Node{Name: "finalizer", Value: sdk.Bool(true)})
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.await("it is sent", func() bool { return len(s.runs()) == 1 })
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 5, 0)))
	s.await("it ends", func() bool { return s.jobs[runName("a", "main", 1)].Ended })
}

func job(name string, succeeded int64, start, stop int) kube.Job {
	j := kube.Job{Metadata: kube.Meta{Namespace: "phys", Name: name, UID: "uid-" + name, CreationTimestamp: at(start), ResourceVersion: "5"}}
	from, to := at(start), at(stop)
	j.Status.StartTime, j.Status.CompletionTime, j.Status.Succeeded = &from, &to, succeeded
	j.Spec.Template.Metadata.Labels = map[string]string{"user": "bob"}
	j.Spec.Template.Spec = pod("phys", name, "").Spec
	return j
}

func TestJobs_PodsCameAndWentWhileChangesWereMissed_BecomeARunOrAGap(t *testing.T) {
	s := newSite(t)
	s.set(at(10))
	s.start()
	s.server.Put(pod("phys", "a", kube.Running, running(0, 1)))
	s.seen()
	s.await("ten past", func() bool { c, err := decodeCheckpoint(s.checkpoint); return err == nil && c.Look.Equal(at(10)) })
	s.kill()
	s.server.PutJob(job("before", 1, 3, 5)) // its pod was seen, or is in another gap
	s.server.PutJob(job("single", 1, 12, 17))
	s.server.PutJob(job("many", 3, 13, 18))
	seen := pod("phys", "seen", kube.Succeeded, over(0, 14, 15, 0))
	seen.Metadata.OwnerReferences = []kube.Owner{{Kind: "Job", Name: "whole", UID: "uid-whole", Controller: true}}
	s.server.Put(seen)
	s.server.PutJob(job("whole", 1, 14, 15))
	s.server.Compact()
	s.set(at(30))
	s.start()
	s.await("the gaps", func() bool { return len(s.gaps) == 2 })
	s.wantRuns(runName("a", "main", 1)+" open", runName("seen", "main", 14), runName("single", "main", 12))
	s.stopsAt(runName("single", "main", 12), 17, true)
	if s.value(runName("single", "main", 12), "user").Str() != "bob" || s.value(runName("single", "main", 12), "cpu_millicores").Int() != 1500 {
		t.Error("the run of the job lacks its user or its amounts")
	}
	if !slices.ContainsFunc(s.soFar().gaps, func(g sdk.Gap) bool { return g.Reason == "3 of 3 pods of the job phys/many were not seen" }) {
		t.Errorf("gaps %+v", s.soFar().gaps)
	}
	s.stop()
	s.server.Compact()
	n := len(s.sent)
	s.start() // which finds the jobs again
	s.await("another listing", func() bool { return len(s.gaps) > 2 })
	for _, name := range s.soFar().sent[n:] {
		if name == runName("single", "main", 12) {
			t.Error("the run of the job is sent again")
		}
	}
}

func TestJobs_PodThatNeverStarted_IsNoRun(t *testing.T) {
	s := newSite(t)
	p := pod("phys", "evicted", kube.Failed)
	p.Status.Reason = "Evicted"
	p.Metadata.OwnerReferences = []kube.Owner{{Kind: "Job", Name: "j", UID: "uid-j", Controller: true}}
	s.server.Put(p)
	j := job("j", 0, 1, 5)
	j.Status.Failed = 1
	s.server.PutJob(j)
	s.start()
	s.seen()
	s.await("it is skipped", func() bool { return s.skipped == 1 })
	s.wantRuns()
	if len(s.soFar().gaps) != 0 {
		t.Errorf("gaps %+v", s.soFar().gaps)
	}
}

func TestRecollect_AWindow_HasRunsOfPodsThatAreGone(t *testing.T) {
	s := newSite(t)
	s.start()
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 5, 0)))
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 1, 15, 0)))
	s.server.Put(pod("phys", "c", kube.Succeeded, over(0, 3, 6, 0)))
	s.seen()
	s.server.Delete("phys", "a", at(5))
	s.seen()
	s.stop()
	s.jobs = map[string]sdk.Job{}
	source := s.configured()
	w := sdk.Window{From: at(4), To: at(10)}
	if err := source.Collect(t.Context(), sdk.Start{Window: &w}, sdk.NewStream(source.Describe().Attributes, s.take)); err != nil {
		t.Fatal(err)
	}
	s.wantRuns(runName("a", "main", 1), runName("c", "main", 3))
	if n, err := source.Count(t.Context(), w); err != nil || n != 1 { // Kubernetes has c alone
		t.Errorf("count %d, %v", n, err)
	}
}
