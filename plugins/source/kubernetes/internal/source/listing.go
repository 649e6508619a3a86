package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// listPods lists the pods of a scope, takes what has changed, and finds out about those that
// are gone. Where there is no watch the checkpoint moves to the listing; where there is
// one, what the listing lacks may still be on its way.
func (p *pass) listPods(ctx context.Context, namespace string, alone bool) error {
	began := p.now().UTC()
	before := p.done.Versions[namespace]
	listed := map[string]bool{}
	version, err := kube.List(ctx, p.client, kube.In(kube.Pods, namespace), func(page []*kube.Pod, bad []*kube.BadObject) error {
		return p.applyPage(ctx, namespace, page, bad, listed)
	})
	if err != nil {
		return markServerError(ctx, err)
	}
	if versionNumber(version) < versionNumber(before) {
		return p.resetToOlder(version, before)
	}
	if err := p.checkVanished(ctx, namespace, listed, versionNumber(version), alone); err != nil {
		return err
	}
	p.present[namespace] = listed
	if p.behind[namespace] == math.MaxUint64 {
		p.behind[namespace] = versionNumber(version)
	}
	if alone {
		delete(p.behind, namespace)
		if p.lost[namespace] {
			p.gaps = append(p.gaps, p.changesGap(namespace, began))
		}
		if p.lost[namespace] || p.isFirst() {
			if err := p.recoverJobs(ctx, namespace, began); err != nil {
				return err
			}
		}
		p.done.Versions[namespace], p.moved = version, true
		p.advanceScope(namespace, began)
	}
	p.Batch.Gaps = append(p.Batch.Gaps, p.gaps...)
	if err := p.flush(ctx); err != nil {
		return err
	}
	p.gaps = nil
	delete(p.lost, namespace)
	return nil
}

// versionNumber is a resource version as a number; 0 where it is not one.
func versionNumber(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64) // 0 is the answer
	return n
}

// inScope reports whether a pod belongs to a scope.
func inScope(namespace string, e *run.Entry) bool {
	return namespace == "" || e.Pod.Metadata.Namespace == namespace
}

// applyPage takes the pods of a page of a listing that have news.
func (p *pass) applyPage(ctx context.Context, namespace string, page []*kube.Pod, bad []*kube.BadObject, listed map[string]bool) error {
	for _, b := range bad {
		listed[b.UID] = true
		p.refusePod(b)
	}
	for _, pod := range page {
		listed[pod.Metadata.UID] = true
		if err := p.applyListed(pod, versionNumber(p.start.Versions[namespace])); err != nil {
			return err
		}
	}
	if len(p.Touched()) > 0 && len(page) > 0 { // else they wait from before
		p.Batch.Progress = &sdk.Progress{Done: int64(len(listed)), Unit: "pods", At: page[0].Metadata.Namespace}
	}
	return p.finishTouched(ctx)
}

// applyListed takes a pod of a listing when it has news: it has changed since the pass
// began at that version, or it goes on.
func (p *pass) applyListed(pod *kube.Pod, start uint64) error {
	uid, version := pod.Metadata.UID, pod.Metadata.Version()
	again := p.renew && (!pod.Status.Over() || !lastContainerEnd(pod).Before(p.since))
	old, known := p.Settled[uid]
	if known && old.Version == version && version != 0 && !again {
		return nil
	}
	if !known && p.Open[uid] == nil && pod.Status.Over() && version != 0 && version <= start && !again && !hasFinalizer(pod) {
		p.Settled[uid] = journal.Settled{Version: version, Changed: lastContainerEnd(pod)} // it was sent by a source with another journal
		return nil
	}
	e, err := p.Entry(uid)
	if err != nil || !again && e.UID() != "" && version != 0 && version <= e.Pod.Metadata.Version() {
		return err
	}
	if again {
		e.Untell()
	}
	p.observePod(e, pod)
	return nil
}

// lastContainerEnd is when the last container of a pod ended.
func lastContainerEnd(pod *kube.Pod) (last time.Time) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if t := s.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt
		}
	}
	return last
}

// resetToOlder starts over with a Kubernetes whose state is of before, as after its etcd was
// restored from a backup.
func (p *pass) resetToOlder(version, before string) error {
	p.log.Warn("Kubernetes' state is older than it was, as after a restore of etcd; everything is taken again", "version", version, "before", before)
	for uid, s := range p.Settled {
		s.Version = 0
		p.Settled[uid] = s
	}
	for _, e := range p.Open {
		e.Pod.Metadata.ResourceVersion = ""
	}
	for namespace := range p.done.Versions {
		p.lost[namespace] = true
	}
	clear(p.done.Versions)
	p.start.Versions = nil
	return fmt.Errorf("%w: %w", errServer, errOlder)
}

var errOlder = errors.New("its state is older than it was")

// checkVanished asks for pods that were expected in a listing and are not in it. While a watch
// may still tell what became of them, they are asked for when the next listing lacks them
// too.
func (p *pass) checkVanished(ctx context.Context, namespace string, listed map[string]bool, version uint64, alone bool) error {
	for _, uid := range slices.Sorted(maps.Keys(p.Open)) {
		e := p.Open[uid]
		m := &e.Pod.Metadata
		if !inScope(namespace, e) || !e.GoneAt.IsZero() || e.UID() == "" || m.Version() > version {
			continue
		}
		if listed[uid] {
			delete(p.absent, uid)
			continue
		}
		if !alone && !p.absent[uid] {
			p.absent[uid] = true
			continue
		}
		pod, err := kube.Get[kube.Pod](ctx, p.client, kube.Pods, m.Namespace, m.Name)
		switch {
		case kube.Missing(err), err == nil && pod.Metadata.UID != uid:
			p.closeForgotten(e)
		case err != nil:
			return markServerError(ctx, err)
		default:
			p.observePod(e, pod)
		}
	}
	return p.finishTouched(ctx)
}

// closeForgotten closes what went on in a pod that Kubernetes does not have any more.
func (p *pass) closeForgotten(e *run.Entry) {
	seen := p.LastSeen(e.UID())
	lost := slices.ContainsFunc(p.runViews(e), func(v run.View) bool { return v.Open() })
	e.Pod.Metadata.Finalizers = nil
	e.Gone(false, seen, p.now().UTC())
	p.Touch(e)
	if lost {
		m := &e.Pod.Metadata
		p.log.Warn("a pod that was running is no longer in Kubernetes; its end is estimated", "namespace", m.Namespace, "pod", m.Name, "end", e.GoneAt)
		e.Holes = append(e.Holes, journal.Hole{From: seen, To: p.now().UTC()})
	}
}

// changesGap is the gap of a scope whose changes Kubernetes no longer has.
func (p *pass) changesGap(namespace string, until time.Time) sdk.Gap {
	where := "Kubernetes"
	if namespace != "" {
		where = "the namespace " + namespace
	}
	return sdk.Gap{From: earlier(p.done.Look, until), To: until,
		Reason: "the changes of pods of " + where + " were no longer available (410 Gone): pods that came and went meanwhile are missing, unless their jobs tell of them"}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
