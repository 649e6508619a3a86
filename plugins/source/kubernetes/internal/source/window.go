package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// batchRuns is how many runs of a window go together.
const batchRuns = 1000

// collectWindow sends the runs that ended in a window, and those that go on if it reaches to
// now, from what Kubernetes and the journal have.
func (s *Source) collectWindow(ctx context.Context, client *kube.Client, w *sdk.Window, out *sdk.Stream) (err error) {
	known, err := journalForm().ReadOnly(ctx, s.dir) // without it a window has what Kubernetes has
	if err != nil {
		return err
	}
	p := &pass{Source: s, client: client, Tracker: new(journal.Tracker[*run.Entry])}
	r := &recollection{pass: p, window: w, out: out, now: s.now(), journal: known, listed: map[string]bool{}}
	defer func() { err = errors.Join(err, known.Close()) }()
	return r.sendWindow(ctx)
}

// recollection is one Collect of a window.
type recollection struct {
	*pass
	window  *sdk.Window
	out     *sdk.Stream
	now     time.Time
	journal *journal.Journal[*run.Entry]
	listed  map[string]bool // pods that Kubernetes has
	batch   sdk.Batch
	done    int64
}

func (r *recollection) sendWindow(ctx context.Context) error {
	for _, namespace := range r.scopes() {
		if _, err := kube.List(ctx, r.client, kube.In(kube.Pods, namespace), func(page []*kube.Pod, _ []*kube.BadObject) error { return r.sendPage(ctx, page) }); err != nil {
			return err
		}
	}
	err := r.journal.Each(func(e *run.Entry) error {
		if r.listed[e.UID()] {
			return nil
		}
		return r.sendRuns(ctx, []*run.Entry{e}, false)
	})
	if err != nil {
		return err
	}
	return r.sendRuns(ctx, nil, true)
}

func (r *recollection) sendPage(ctx context.Context, page []*kube.Pod) error {
	var entries []*run.Entry
	for _, pod := range page {
		if r.listed[pod.Metadata.UID] {
			continue
		}
		r.listed[pod.Metadata.UID] = true
		e, found, err := r.journal.Get(pod.Metadata.UID)
		if err != nil {
			return err
		}
		if !found {
			e = run.New()
		}
		e.Observe(pod, r.now, r.now)
		if slices.ContainsFunc(r.runViews(e), func(v run.View) bool { return r.wantsRun(&v) }) {
			entries = append(entries, e)
		}
	}
	if err := r.cluster.completePods(ctx, r.pass, entries); err != nil {
		return err
	}
	return r.sendRuns(ctx, entries, false)
}

// wantsRun reports whether a run belongs to the window.
func (r *recollection) wantsRun(v *run.View) bool {
	if v.Open() {
		return v.Start.Before(r.window.To) && r.window.To.After(r.now)
	}
	return r.window.Holds(v.Stop)
}

// sendRuns puts the runs of pods into the batch, and sends it when it is large or the last one.
func (r *recollection) sendRuns(ctx context.Context, entries []*run.Entry, last bool) error {
	for _, e := range entries {
		for _, v := range r.runViews(e) {
			if !r.wantsRun(&v) {
				continue
			}
			if job, ok := r.jobOf(&v); ok {
				r.batch.Jobs = append(r.batch.Jobs, job)
			}
		}
	}
	r.done += int64(len(entries))
	if n := len(r.batch.Jobs); n == 0 || n < batchRuns && !last {
		return nil
	}
	b := r.batch
	b.Progress = &sdk.Progress{Done: r.done, Unit: "pods"}
	r.batch = sdk.Batch{}
	return r.out.Send(ctx, b)
}

// Count returns how many runs ended in a window as a listing of Kubernetes has them now,
// before any filter but that of namespaces. Pods that were deleted, and restarts before
// the last one, are not in it, so the count is a lower bound.
func (s *Source) Count(ctx context.Context, w sdk.Window) (int64, error) {
	client, err := kube.NewClient(s.config.server)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	counted := map[string]int64{} // by pod: a listing that starts over gives pods again
	for _, namespace := range s.scopes() {
		_, err := kube.List(ctx, client, kube.In(kube.Pods, namespace), func(page []*kube.Pod, _ []*kube.BadObject) error {
			now := s.now()
			for _, pod := range page {
				e := run.New()
				e.Observe(pod, now, now)
				n := int64(0)
				for _, v := range s.runViews(e) {
					if !v.Open() && w.Holds(v.Stop) {
						n++
					}
				}
				counted[pod.Metadata.UID] = n
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("count pods: %w", err)
		}
	}
	var n int64
	for _, of := range counted {
		n += of
	}
	return n, nil
}
