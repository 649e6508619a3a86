package source

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// cluster is what is known of nodes, namespaces, jobs and devices, which pods only name.
type cluster struct {
	nodes      map[string]map[string]string
	young      map[string]bool // nodes whose labels may not have been complete when they were listed
	listed     time.Time       // when nodes were
	news       bool            // a listing that placeLate has not seen
	namespaces map[string]*run.Labelled
	jobs       map[string]*run.Job        // by uid
	devices    map[string]*run.DeviceKind // by run.DeviceKey
	asked      map[string]time.Time
	unplaced   map[string]place // pods by uid, also of those that have ended
}

// place is what a pod names and what no listing had so far; "" for what it had.
type place struct{ node, namespace string }

const (
	lookups  = 8                // at the same time
	maxJobs  = 20_000           // that are remembered
	youth    = time.Hour        // of a node, whose GPUs get their labels some time after it has come
	askAgain = 30 * time.Second // how often a listing is asked for because of a name that is not in it
)

// resetListings has everything asked for anew.
func (k *cluster) resetListings() { *k = cluster{jobs: k.jobs, unplaced: k.unplaced} }

// completePods adds to pods what is known of their nodes, namespaces, jobs and devices. That a right
// is missing is no reason to stop.
func (k *cluster) completePods(ctx context.Context, p *pass, pods []*run.Entry) error {
	for _, e := range pods {
		if e.FromJob {
			continue
		}
		if err := k.addLabels(ctx, p, e); err != nil {
			return err
		}
		k.noteUnplaced(e)
	}
	if err := k.findJobs(ctx, p, pods); err != nil {
		return err
	}
	return k.findClaims(ctx, p, pods)
}

// addLabels adds the labels of the node and of the namespace.
func (k *cluster) addLabels(ctx context.Context, p *pass, e *run.Entry) error {
	node, namespace := e.Pod.Spec.NodeName, e.Pod.Metadata.Namespace
	known := k.knowsNode(p, e)
	if !known && node != "" && k.mayListAgain(p, "nodes") {
		_, err := k.listNodes(ctx, p)
		if err := p.tolerateDenial(ctx, nodeLabels, err); err != nil {
			return err
		}
		known = k.knowsNode(p, e)
	}
	if known {
		e.Node = k.nodes[node]
	}
	if _, known := k.namespaces[namespace]; !known && k.mayListAgain(p, "namespaces") {
		if err := p.tolerateDenial(ctx, namespaceLabels, k.listNamespaces(ctx, p)); err != nil {
			return err
		}
	}
	if labels := k.namespaces[namespace]; labels != nil {
		e.Namespace = labels
	}
	return nil
}

// knowsNode reports whether the labels of a pod's node are known. For GPUs those of a young
// node count only from a listing after the pod's start: they come some time after the node and
// its first pods.
func (k *cluster) knowsNode(p *pass, e *run.Entry) bool {
	node, start := e.Pod.Spec.NodeName, e.Pod.Status.StartTime
	_, known := k.nodes[node]
	return known && (e.Node != nil || !k.young[node] || start != nil && k.listed.After(*start) || !p.config.rules.Cards(e))
}

// noteUnplaced notes what a pod names and what is not known yet.
func (k *cluster) noteUnplaced(e *run.Entry) {
	var missing place
	if e.Node == nil {
		missing.node = e.Pod.Spec.NodeName
	}
	if e.Namespace == nil {
		missing.namespace = e.Pod.Metadata.Namespace
	}
	if e.FromJob || missing == (place{}) {
		delete(k.unplaced, e.UID())
		return
	}
	if k.unplaced == nil {
		k.unplaced = map[string]place{}
	}
	k.unplaced[e.UID()] = missing
}

// placeLate asks again for nodes and namespaces that pods name, and sends pods again whose
// are known now: a node may be newer than the last listing of nodes. After a right has come
// back, everything is asked for again that pods lack which go on.
func (p *pass) placeLate(ctx context.Context) error {
	k := &p.cluster
	if p.regained {
		p.regained = false
		for _, e := range p.Open {
			p.Touch(e)
		}
	}
	var missing place // for any
	for _, at := range k.unplaced {
		missing.node, missing.namespace = cmp.Or(missing.node, at.node), cmp.Or(missing.namespace, at.namespace)
	}
	nodes, namespaces := false, false // that were listed
	if missing.node != "" && k.mayListAgain(p, "nodes") {
		nodes = true
		_, err := k.listNodes(ctx, p)
		if err := p.tolerateDenial(ctx, nodeLabels, err); err != nil {
			return err
		}
	}
	if missing.namespace != "" && k.mayListAgain(p, "namespaces") {
		namespaces = true
		if err := p.tolerateDenial(ctx, namespaceLabels, k.listNamespaces(ctx, p)); err != nil {
			return err
		}
	}
	if !nodes && !namespaces && !k.news {
		return p.finishTouched(ctx)
	}
	k.news = false
	for uid, at := range k.unplaced {
		_, node := k.nodes[at.node]
		_, namespace := k.namespaces[at.namespace]
		if (node || namespace) && p.hasEntry(uid) {
			if err := p.placeAgain(uid, namespace); err != nil {
				return err
			}
		} else if p.Open[uid] == nil { // what a listing lacks is gone with its pod
			if nodes {
				at.node = ""
			}
			if namespaces {
				at.namespace = ""
			}
			if k.unplaced[uid] = at; at == (place{}) {
				delete(k.unplaced, uid)
			}
		}
	}
	return p.finishTouched(ctx)
}

// placeAgain has a pod sent again when the labels of its node are known now, or those of its
// namespace are.
func (p *pass) placeAgain(uid string, namespace bool) error {
	e, err := p.Entry(uid)
	switch {
	case err != nil:
		return err
	case namespace || p.cluster.knowsNode(p, e):
		e.Untell()
		p.Touch(e)
	case p.isOver(e):
		p.closePod(e)
	}
	return nil
}

// tolerateDenial logs that a right is missing, once, and goes on without it. The loss of a right
// that was there is an error at first, which is retried: an API server that has just started
// does not know rights yet. Any other error is to be retried, too.
func (p *pass) tolerateDenial(ctx context.Context, what string, err error) error {
	now := p.now()
	_, missing := p.denied[what]
	switch {
	case err == nil:
		p.regained = p.regained || missing
		if !p.granted[what] {
			p.granted[what] = true
			p.done.Granted, p.moved = slices.Sorted(maps.Keys(p.granted)), true
		}
		delete(p.denied, what)
	case !kube.Denied(err):
		return markServerError(ctx, err)
	case !missing:
		p.denied[what] = denial{now, err}
	}
	if err != nil && p.granted[what] {
		first := now // when the first of the rights that were there was lost
		for other, d := range p.denied {
			if p.granted[other] && d.since.Before(first) {
				first = d.since
			}
		}
		if now.Sub(first) < patience {
			return markServerError(ctx, err)
		}
	}
	p.facts.Judge(p.factSettings(), what, err)
	return nil
}

// What rights are for.
const (
	nodeLabels      = "labels of nodes"
	namespaceLabels = "labels of namespaces"
	jobOwners       = "owners of jobs"
)

// denial is a right that is missing.
type denial struct {
	since time.Time
	err   error
}

// rightFindings name the rights that were taken away and for which a run lacks something. What a
// run lacks of devices is named as unread.
func (s *Source) rightFindings(e *run.Entry) (out []sdk.Finding) {
	o := e.Pod.Metadata.Controller()
	for _, c := range []struct {
		what  string
		lacks bool
	}{
		{nodeLabels, e.Node == nil && e.Pod.Spec.NodeName != ""},
		{namespaceLabels, e.Namespace == nil},
		{jobOwners, e.Job == nil && o != nil && o.Kind == "Job"},
	} {
		if d, missing := s.denied[c.what]; missing && s.granted[c.what] && c.lacks {
			out = append(out, sdk.Finding{Kind: "right-lost", About: c.what, What: fmt.Sprintf("the source may no longer read the %s: %v", c.what, d.err),
				Do: "apply the RBAC manifest in deploy/rbac.yaml; pods that still run are then sent again"})
		}
	}
	return out
}

// mayListAgain reports whether a listing may be asked for again.
func (k *cluster) mayListAgain(p *pass, what string) bool {
	now := p.now()
	if passed := now.Sub(k.asked[what]); passed >= 0 && passed < askAgain {
		return false
	}
	if k.asked == nil {
		k.asked = map[string]time.Time{}
	}
	k.asked[what] = now
	return true
}

func (k *cluster) listNodes(ctx context.Context, p *pass) ([]*kube.Node, error) {
	all, err := kube.ListAll(ctx, p.client, kube.Nodes, func(*kube.Node) bool { return true })
	if err != nil {
		return nil, err
	}
	k.nodes, k.young, k.listed = map[string]map[string]string{}, map[string]bool{}, p.now()
	k.news = true
	for _, n := range all {
		k.young[n.Metadata.Name] = k.listed.Sub(n.Metadata.CreationTimestamp) < youth
		k.nodes[n.Metadata.Name] = n.Metadata.Labels
		if n.Metadata.Labels == nil {
			k.nodes[n.Metadata.Name] = map[string]string{} // it has none, which is known
		}
	}
	return all, nil
}

func (k *cluster) listNamespaces(ctx context.Context, p *pass) error {
	all, err := kube.ListAll(ctx, p.client, kube.Namespaces, func(*kube.Namespace) bool { return true })
	if err != nil {
		return err
	}
	k.namespaces, k.news = map[string]*run.Labelled{}, true
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
		if err := p.tolerateDenial(ctx, jobOwners, err); err != nil {
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
