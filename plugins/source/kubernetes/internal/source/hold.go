package source

import (
	"context"
	"encoding/json"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// finalizer holds a pod until its end has been recorded.
const finalizer = "bursar-accounting.github.io/recorded"

// maxHolds is how many pods are held or released between two looks at the watch.
const maxHolds = 200

// holding are the pods that are to be held or released.
type holding map[string]*run.Entry

func hasFinalizer(pod *kube.Pod) bool { return slices.Contains(pod.Metadata.Finalizers, finalizer) }

func isHeld(e *run.Entry) bool { return hasFinalizer(&e.Pod) }

// wantsHeld reports whether a pod is to have the finalizer: until the daemon has all that
// it will ever be told of its runs, but for what they used.
func (p *pass) wantsHeld(e *run.Entry) bool {
	if !p.config.Finalizer || !p.config.wantsPod(&e.Pod.Metadata) {
		return false
	}
	if !e.Over() {
		// A pod that is being deleted cannot get it any more.
		return isHeld(e) || e.Pod.Metadata.DeletionTimestamp == nil
	}
	// A pod that is over before it was held does not need it.
	return isHeld(e) && slices.ContainsFunc(p.runViews(e), func(v run.View) bool { return !v.Recorded() })
}

// updateHold notes a pod that is to be held or released.
func (h *holding) updateHold(p *pass, e *run.Entry) {
	if isHeld(e) == p.wantsHeld(e) {
		delete(*h, e.UID())
		return
	}
	if *h == nil {
		*h = holding{}
	}
	(*h)[e.UID()] = e
}

// applyHolds holds and releases pods. What fails is tried again with the next change of the pod,
// or at the next look.
func (p *pass) applyHolds(ctx context.Context) error {
	if len(p.holding) == 0 {
		return nil
	}
	var group errgroup.Group
	group.SetLimit(lookups)
	var pods []*run.Entry
	for uid, e := range p.holding {
		if pods = append(pods, e); len(pods) == maxHolds {
			break
		}
		delete(p.holding, uid)
	}
	answers := make([]*kube.Pod, len(pods))
	for i, e := range pods {
		group.Go(func() (err error) {
			m := &e.Pod.Metadata
			answers[i], err = p.client.Patch(ctx, m.Namespace, m.Name, finalizerPatch(m))
			if kube.Missing(err) || kube.Conflict(err) { // a newer state is on its way
				answers[i], err = nil, nil
			}
			return err
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.facts.Judge(p.factSettings(), "finalizer", err)
	for i, pod := range answers {
		switch {
		case pod != nil && pod.Metadata.UID == pods[i].UID():
			if err := p.applyPod(pod, false); err != nil {
				return err
			}
		case err != nil && pod == nil:
			p.holding.updateHold(p, pods[i])
		}
	}
	return p.finishTouched(ctx)
}

// finalizerPatch sets the finalizers of a pod with or without that of this source, unless the pod
// has changed meanwhile.
func finalizerPatch(m *kube.Meta) string {
	others := slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == finalizer })
	if len(others) == len(m.Finalizers) {
		others = append(others, finalizer)
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID, "resourceVersion": m.ResourceVersion, "finalizers": others}})
	if err != nil { // cannot be: texts
		panic(err)
	}
	return string(text)
}
