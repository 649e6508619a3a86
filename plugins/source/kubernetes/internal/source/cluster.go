package source

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// cluster is what is known of nodes, namespaces, jobs and devices, which pods only name.
type cluster struct {
	nodes      map[string]map[string]string
	namespaces map[string]*run.Labelled
	jobs       map[string]*run.Job        // by uid
	devices    map[string]*run.DeviceKind // by run.DeviceKey
	asked      map[string]time.Time
}

const (
	lookups  = 8                // at the same time
	maxJobs  = 20_000           // that are remembered
	askAgain = 30 * time.Second // how often a listing is asked for because of a name that is not in it
)

// forget has everything asked for anew.
func (k *cluster) forget() { *k = cluster{jobs: k.jobs} }

// complete adds to pods what is known of their nodes, namespaces, jobs and devices. That a right
// is missing is no reason to stop.
func (k *cluster) complete(ctx context.Context, p *pass, pods []*run.Entry) error {
	for _, e := range pods {
		if e.FromJob {
			continue
		}
		if err := k.place(ctx, p, e); err != nil {
			return err
		}
	}
	if err := k.findJobs(ctx, p, pods); err != nil {
		return err
	}
	return k.findClaims(ctx, p, pods)
}

// place adds the labels of the node and of the namespace.
func (k *cluster) place(ctx context.Context, p *pass, e *run.Entry) error {
	node, namespace := e.Pod.Spec.NodeName, e.Pod.Metadata.Namespace
	if _, known := k.nodes[node]; !known && node != "" && k.due("nodes") {
		_, err := k.listNodes(ctx, p)
		if err := p.tolerate(ctx, "labels of nodes", err); err != nil {
			return err
		}
	}
	if labels := k.nodes[node]; labels != nil {
		e.Node = labels
	}
	if _, known := k.namespaces[namespace]; !known && k.due("namespaces") {
		if err := p.tolerate(ctx, "labels of namespaces", k.listNamespaces(ctx, p)); err != nil {
			return err
		}
	}
	if labels := k.namespaces[namespace]; labels != nil {
		e.Namespace = labels
	}
	return nil
}

// tolerate logs that a right is missing, once. Any other error is to be retried, and so is
// the loss of a right that was there: an API server that has just started does not know
// them yet.
func (p *pass) tolerate(ctx context.Context, what string, err error) error {
	if err == nil || kube.Denied(err) && !p.granted[what] {
		p.granted[what] = err == nil
		p.facts.Judge(p.factSettings(), what, err)
		return nil
	}
	return blame(ctx, err)
}

// due reports whether a listing may be asked for again.
func (k *cluster) due(what string) bool {
	if time.Since(k.asked[what]) < askAgain {
		return false
	}
	if k.asked == nil {
		k.asked = map[string]time.Time{}
	}
	k.asked[what] = time.Now()
	return true
}

func (k *cluster) listNodes(ctx context.Context, p *pass) ([]*kube.Node, error) {
	all, err := kube.ListAll(ctx, p.client, kube.Nodes, func(*kube.Node) bool { return true })
	if err != nil {
		return nil, err
	}
	k.nodes = map[string]map[string]string{}
	for _, n := range all {
		k.nodes[n.Metadata.Name] = n.Metadata.Labels
	}
	return all, nil
}

func (k *cluster) listNamespaces(ctx context.Context, p *pass) error {
	all, err := kube.ListAll(ctx, p.client, kube.Namespaces, func(*kube.Namespace) bool { return true })
	if err != nil {
		return err
	}
	k.namespaces = map[string]*run.Labelled{}
	for _, n := range all {
		k.namespaces[n.Metadata.Name] = &run.Labelled{Labels: n.Metadata.Labels, Annotations: n.Metadata.Annotations}
	}
	return nil
}

// findJobs finds the jobs of pods that lack theirs, for what has made them.
func (k *cluster) findJobs(ctx context.Context, p *pass, pods []*run.Entry) error {
	if k.jobs == nil || len(k.jobs) > maxJobs {
		k.jobs = map[string]*run.Job{}
	}
	var group errgroup.Group
	group.SetLimit(lookups)
	found := map[string]**run.Job{}
	for _, e := range pods {
		o := e.Pod.Metadata.Controller()
		if e.FromJob || e.Job != nil || o == nil || o.Kind != "Job" || k.jobs[o.UID] != nil || found[o.UID] != nil {
			continue
		}
		job := new(*run.Job)
		found[o.UID] = job
		group.Go(func() error {
			j, err := kube.Get[kube.Job](ctx, p.client, kube.Jobs, e.Pod.Metadata.Namespace, o.Name)
			switch {
			case kube.Missing(err), err == nil && j.Metadata.UID != o.UID:
				*job = &run.Job{UID: o.UID, Name: o.Name}
				return nil
			case err == nil:
				*job = jobOf(j)
			}
			return err
		})
	}
	err := group.Wait()
	if len(found) > 0 {
		if err := p.tolerate(ctx, "owners of jobs", err); err != nil {
			return err
		}
	}
	for uid, job := range found {
		if *job != nil {
			k.jobs[uid] = *job
		}
	}
	for _, e := range pods {
		if o := e.Pod.Metadata.Controller(); e.Job == nil && o != nil && o.Kind == "Job" {
			e.Job = k.jobs[o.UID]
		}
	}
	return nil
}

// jobOf is what is remembered of a job.
func jobOf(j *kube.Job) *run.Job {
	out := &run.Job{UID: j.Metadata.UID, Name: j.Metadata.Name, Queue: j.Metadata.Labels[run.QueueLabel]}
	if o := j.Metadata.Controller(); o != nil && o.Kind == "CronJob" {
		out.Cron = o.Name
	} else if o != nil {
		out.Top = *o
	}
	return out
}
