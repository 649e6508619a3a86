package source

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// recoverJobs finds out from Jobs which of their pods came and went without being seen. Of
// a Job whose only pod that was, it makes the run, with the times of the Job; of others a
// gap tells how many are missing. A Job that was there when everything was last known
// says nothing new of the pods of then, so only Jobs that began since count.
func (p *pass) recoverJobs(ctx context.Context, namespace string, until time.Time) error {
	jobs, err := kube.ListAll(ctx, p.client, kube.In(kube.Jobs, namespace), func(j *kube.Job) bool {
		start := j.Status.StartTime
		return start != nil && (p.isFirst() || !start.Before(p.done.Look)) && !p.hasEntry(j.Metadata.UID)
	})
	if err := p.tolerateDenial(ctx, "listing of jobs", err); err != nil || len(jobs) == 0 {
		return err
	}
	seen, err := p.podsOfJobs()
	if err != nil {
		return err
	}
	for _, j := range jobs {
		p.recoverJob(j, seen[j.Metadata.UID], until)
	}
	return p.finishTouched(ctx)
}

// hasEntry reports whether there is an entry of that name.
func (p *pass) hasEntry(uid string) bool { return p.Open[uid] != nil || p.Settled[uid].Ours }

// podsOfJobs counts the pods of each Job that have ended and are known.
func (p *pass) podsOfJobs() (map[string]int64, error) {
	seen := map[string]int64{}
	count := func(e *run.Entry) {
		if o := e.Pod.Metadata.Controller(); o != nil && o.Kind == "Job" && e.Over() {
			seen[o.UID]++
		}
	}
	for _, e := range p.Open {
		count(e)
	}
	return seen, p.Each(func(e *run.Entry) error {
		if p.Open[e.UID()] == nil {
			count(e)
		}
		return nil
	})
}

// recoverJob takes a Job of which so many ended pods were seen.
func (p *pass) recoverJob(j *kube.Job, seen int64, until time.Time) {
	m := &j.Metadata
	all := j.Status.Succeeded + j.Status.Failed
	stop := until
	if t := j.Status.CompletionTime; t != nil {
		stop = *t
	}
	for _, c := range j.Status.Conditions {
		if (c.Type == "Failed" || c.Type == "Complete") && c.Status == "True" {
			stop = cmp.Or(c.LastTransitionTime, stop)
		}
	}
	switch {
	case seen >= all:
		return
	case all > 1 || stop.Equal(until):
		p.gaps = append(p.gaps, sdk.Gap{From: *j.Status.StartTime, To: stop,
			Reason: fmt.Sprintf("%d of %d pods of the job %s/%s were not seen", all-seen, all, m.Namespace, m.Name)})
		return
	}
	e := run.New()
	e.FromJob, e.OverAt, e.GoneAt = true, stop, stop
	e.Job = jobOf(j)
	e.Pod = kube.Pod{
		Metadata: kube.Meta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
			Labels: j.Spec.Template.Metadata.Labels, Annotations: j.Spec.Template.Metadata.Annotations,
			OwnerReferences: []kube.Owner{{APIVersion: "batch/v1", Kind: "Job", Name: m.Name, UID: m.UID, Controller: true}}},
		Spec:   j.Spec.Template.Spec,
		Status: kube.PodStatus{Phase: kube.Succeeded, StartTime: j.Status.StartTime},
	}
	exit := &run.Exit{Reason: "Completed"}
	if j.Status.Failed > 0 {
		e.Pod.Status.Phase, exit = kube.Failed, nil
	}
	for _, c := range e.Pod.Spec.Containers {
		e.Containers[c.Name] = &run.Container{Runs: []run.Run{{Start: j.Status.StartTime.UTC(), Stop: stop.UTC(), Exit: exit, Guessed: true, Estimated: true}}}
	}
	e.Namespace = p.cluster.namespaces[m.Namespace]
	p.Open[m.UID] = e
	p.Touch(e)
}
