package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// pass is one Collect.
type pass struct {
	*Source
	*journal.Tracker[*run.Entry] // of pods
	client                       *kube.Client
	done                         checkpoint // that is in effect once what was sent is acknowledged
	start                        checkpoint // with which the pass began

	absent  map[string]bool            // open ones that the last listing lacked
	present map[string]map[string]bool // pods that the last listing of a scope had
	alive   map[string]time.Time       // when a scope was last known to be whole
	lost    map[string]bool            // scopes of which changes are missing
	behind  map[string]uint64          // scopes whose watch still replays: the version that it has to reach
	refused map[string]bool            // versions of pods that were told to be none
	cluster cluster
	// regained says that a right has come back, and that pods may lack what it is needed for.
	regained bool

	moved    bool // the checkpoint, since the last batch
	gaps     []sdk.Gap
	renew    bool // send also what was sent before, of what ended since
	since    time.Time
	listings int
	told     bool // the facts, in this pass
	listed   time.Time
	usage    *usage
	holding  holding
}

// Timings of a pass.
const (
	gather   = 100 * time.Millisecond // events that come within it go together
	patience = 30 * time.Second       // how long a server may be away before it is an error
	again    = 500 * time.Millisecond // pause before the next try
	tick     = time.Second            // how often it is looked for what is due
	ahead    = 1000                   // events that are read ahead
	together = 1000                   // events that are sent at once, at most
)

// Collect follows Kubernetes until ctx ends.
func (s *Source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) (err error) {
	client, err := kube.NewClient(s.config.server)
	if err != nil {
		return err
	}
	defer client.Close()
	if from.Window != nil {
		return s.collectWindow(ctx, client, from.Window, out)
	}
	p, err := s.beginPass(ctx, from, client, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return p.runWithRetries(ctx)
}

// runWithRetries follows Kubernetes, and starts over when that breaks off.
func (p *pass) runWithRetries(ctx context.Context) error {
	if err := p.restoreJournal(ctx); err != nil {
		return err
	}
	well := time.Time{}
	for {
		listed := p.listings
		err := p.followPods(ctx)
		if err == nil {
			return nil
		}
		if p.listings > listed {
			well = time.Now()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, errServer) || kube.Unauthorized(err) || time.Since(well) > patience {
			return err
		}
		p.log.Debug("the connection to Kubernetes broke off", "error", err)
		if !pauseBeforeRetry(ctx) {
			return ctx.Err()
		}
	}
}

// pauseBeforeRetry waits before the next try. It is false when ctx has ended.
func pauseBeforeRetry(ctx context.Context) bool {
	defer sdk.Idle(ctx)()
	select {
	case <-ctx.Done():
		return false
	case <-time.After(again):
		return true
	}
}

// errServer marks errors of the API server, which may pass.
var errServer = errors.New("kubernetes")

// markServerError marks an error as one of the API server's, unless it is the daemon's.
func markServerError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, journal.ErrDaemon) || errors.Is(err, errServer) {
		return err
	}
	return fmt.Errorf("%w: %w", errServer, err)
}

// beginPass makes ready for a pass.
func (s *Source) beginPass(ctx context.Context, from sdk.Start, client *kube.Client, out *sdk.Stream) (*pass, error) {
	done, err := decodeCheckpoint(from.Checkpoint)
	if err != nil {
		return nil, err
	}
	tracker, err := journal.OpenTracker(ctx, journalForm(), s.dir, s.now(), from.Checkpoint)
	if err != nil {
		return nil, err
	}
	p := &pass{Source: s, Tracker: tracker, client: client, done: done, start: done, absent: map[string]bool{}, present: map[string]map[string]bool{},
		alive: map[string]time.Time{}, lost: map[string]bool{}, behind: map[string]uint64{}, refused: map[string]bool{}}
	p.Way = p.journalWay(out)
	for _, what := range done.Granted {
		s.granted[what] = true
	}
	if done.Journal != p.ID() && !p.isFirst() {
		p.gaps = append(p.gaps, sdk.Gap{From: done.Look, To: s.now().UTC(),
			Reason: "the source's folder is not the one it had: what ran when it was last seen and is no longer in Kubernetes could not be closed"})
	}
	if from.Rewind > 0 {
		p.renew, p.since = true, s.now().Add(-from.Rewind)
		if !p.isFirst() {
			p.since = done.Look.Add(-from.Rewind)
		}
		p.done.Told = facts.Told{}
	}
	p.done.Journal = p.ID()
	versions := map[string]string{}
	for _, namespace := range s.scopes() {
		if v := done.Versions[namespace]; v != "" {
			versions[namespace] = v
		}
	}
	p.done.Versions = versions
	if s.config.Prometheus != nil {
		p.usage = newUsage(s.config.Prometheus)
	}
	return p, nil
}

// isFirst reports whether nothing was collected before the pass.
func (p *pass) isFirst() bool { return p.start.Look.IsZero() }

// scopes are the namespaces that are asked for, each by itself; "" is all of them.
func (s *Source) scopes() []string {
	if len(s.config.Namespaces) == 0 {
		return []string{""}
	}
	return s.config.Namespaces
}

// restoreJournal takes over what the journal has, and sends what the daemon may lack.
func (p *pass) restoreJournal(ctx context.Context) error {
	err := p.Restore(p.renew, func(e *run.Entry) {
		whole := p.isOver(e) && !e.Untold()
		for _, v := range p.runViews(e) {
			if whole && !v.Told() && (!p.renew || !v.Stop.Before(p.since)) {
				whole = false
			}
		}
		p.cluster.noteUnplaced(e)
		if whole {
			p.closePod(e)
			return
		}
		p.Open[e.UID()] = e
		p.Seen[e.UID()] = p.done.Look
		if len(e.Containers) > 0 || e.Over() {
			p.Touch(e)
		}
	})
	if err != nil {
		return err
	}
	return p.flush(ctx)
}

// runViews are the runs of a pod.
func (s *Source) runViews(e *run.Entry) []run.View { return e.Views(s.config.Runs == "pods") }

// isOver reports whether nothing more is expected of a pod: its containers have ended, what
// they used is known or given up, and this source does not hold it.
func (p *pass) isOver(e *run.Entry) bool {
	return e.Over() && !isHeld(e) && p.usage.isComplete(p.runViews(e))
}

func (p *pass) closePod(e *run.Entry) {
	p.Settle(e, e.Pod.Metadata.Version(), lastChange(e))
	delete(p.absent, e.UID())
}

// lastChange is when a pod was last known to change.
func lastChange(e *run.Entry) time.Time {
	out := e.Pod.Metadata.CreationTimestamp
	for _, t := range []time.Time{e.GoneAt, e.OverAt} {
		if t.After(out) {
			out = t
		}
	}
	return out
}

// event is what a watch says. One with an end is its last.
type event struct {
	kube.Event
	namespace string
	end       error
}

// followPods watches all pods from where it was, lists them now and then, until something
// breaks.
func (p *pass) followPods(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer p.leaveUsage()
	defer cancel()
	events := make(chan event, ahead)
	watch := func(namespace string) {
		version := p.done.Versions[namespace]
		watches.Go(func() {
			put := func(e event) error {
				select {
				case events <- e:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			err := p.client.Watch(ctx, namespace, version, func(e kube.Event) error { return put(event{Event: e, namespace: namespace}) })
			_ = put(event{namespace: namespace, end: err}) // without a reader it is over anyhow
		})
	}
	for namespace := range p.done.Versions {
		p.behind[namespace] = math.MaxUint64 // until the listing says it
		watch(namespace)
	}
	if err := p.listAll(ctx, watch); err != nil || p.oneLook {
		return err
	}
	return p.handleEvents(ctx, events, watch)
}

// listAll lists the pods of all scopes and tells what is due. A scope that had no watch
// gets one, from its listing on.
func (p *pass) listAll(ctx context.Context, watch func(string)) error {
	p.cluster.resetListings()
	for _, namespace := range p.scopes() {
		_, watched := p.done.Versions[namespace]
		if err := p.listPods(ctx, namespace, !watched); err != nil {
			return err
		}
		if !watched {
			watch(namespace)
		}
	}
	p.renew, p.listed = false, time.Now()
	p.listings++
	if err := p.Prune(p.now(), p.config.Remember, p.listedLast); err != nil {
		return err
	}
	return p.sendFacts(ctx)
}

// handleEvents takes events until a watch ends for good.
func (p *pass) handleEvents(ctx context.Context, events <-chan event, watch func(string)) error {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	broken := map[string]time.Time{} // since when a watch has brought nothing but ends
	for {
		busy := sdk.Idle(ctx)
		var some []event
		select {
		case <-ctx.Done():
			busy()
			return ctx.Err()
		case e := <-events:
			some = append(some, e)
			time.Sleep(gather)
		case <-p.usage.roundDone():
		case <-ticks.C:
		}
		busy()
		for len(events) > 0 && len(some) < together {
			some = append(some, <-events)
		}
		if err := p.applyEvents(ctx, some, len(events) == 0); err != nil {
			return err
		}
		for _, e := range some {
			if err := p.handleWatchEnd(ctx, e, broken, watch); err != nil {
				return err
			}
		}
		if err := p.runDueTasks(ctx, watch); err != nil {
			return err
		}
	}
}

// applyEvents takes what watches say, and moves the checkpoint. All says that nothing waits.
func (p *pass) applyEvents(ctx context.Context, events []event, all bool) error {
	for _, e := range events {
		switch {
		case e.Bad != nil:
			p.refusePod(e.Bad)
		case e.Pod != nil:
			if err := p.applyPod(e.Pod, e.Deleted); err != nil {
				return err
			}
		}
		if e.Version != "" {
			p.done.Versions[e.namespace], p.moved = e.Version, true
			if bookmark := e.Pod == nil && e.Bad == nil; bookmark || versionNumber(e.Version) >= p.behind[e.namespace] {
				delete(p.behind, e.namespace)
			}
		}
		if all && e.end == nil && p.behind[e.namespace] == 0 {
			p.advanceScope(e.namespace, p.now().UTC())
		}
	}
	return p.finishTouched(ctx)
}

// advanceScope notes that everything of a scope is known up to then.
func (p *pass) advanceScope(namespace string, at time.Time) {
	p.alive[namespace] = at
	for _, other := range p.scopes() {
		at = earlier(at, p.alive[other])
	}
	if at.After(p.done.Look) {
		p.done.Advance(at)
		p.Batch.Watermark, p.Batch.CompleteFrom, p.moved = at.Add(-p.config.Lag), p.done.CompleteFrom(p.config.Earliest.Time), true
	}
}

// handleWatchEnd goes on after the end of a watch.
func (p *pass) handleWatchEnd(ctx context.Context, e event, broken map[string]time.Time, watch func(string)) error {
	switch {
	case e.end == nil:
		delete(broken, e.namespace)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case kube.Expired(e.end):
		p.log.Info("Kubernetes no longer has all changes since the last one that was seen; all pods are listed", "error", e.end)
		delete(p.done.Versions, e.namespace)
		p.lost[e.namespace] = true
		if err := p.listPods(ctx, e.namespace, true); err != nil {
			return err
		}
	case kube.Unauthorized(e.end):
		return markServerError(ctx, e.end)
	default:
		if broken[e.namespace].IsZero() {
			broken[e.namespace] = time.Now()
		}
		if time.Since(broken[e.namespace]) > patience {
			return markServerError(ctx, e.end)
		}
		if !pauseBeforeRetry(ctx) {
			return ctx.Err()
		}
		p.behind[e.namespace] = math.MaxUint64 // until a bookmark, or a listing says it
	}
	watch(e.namespace)
	return nil
}

// runDueTasks does what is due beside the watch.
func (p *pass) runDueTasks(ctx context.Context, watch func(string)) error {
	if err := p.askUsage(ctx); err != nil {
		return err
	}
	if err := p.applyHolds(ctx); err != nil {
		return err
	}
	if err := p.placeLate(ctx); err != nil {
		return err
	}
	if time.Since(p.listed) < p.config.ListInterval {
		return p.sendFacts(ctx)
	}
	return p.listAll(ctx, watch)
}

// applyPod takes a pod as a watch shows it.
func (p *pass) applyPod(pod *kube.Pod, deleted bool) error {
	uid, version := pod.Metadata.UID, pod.Metadata.Version()
	if old, known := p.Settled[uid]; known && (version <= old.Version || deleted) {
		return nil
	}
	e, err := p.Entry(uid)
	if err != nil {
		return err
	}
	if e.UID() == "" || version == 0 || version > e.Pod.Metadata.Version() {
		p.observePod(e, pod)
	}
	if deleted {
		e.Pod.Metadata.Finalizers = nil
		p.Touch(e)
	}
	if deleted && e.GoneAt.IsZero() {
		seen := p.now().UTC()
		if p.listings == 0 { // it happened some time since
			seen = p.LastSeen(uid)
		}
		e.Gone(true, seen, p.now().UTC())
	}
	return nil
}

// observePod adds what a pod tells to its entry.
func (p *pass) observePod(e *run.Entry, pod *kube.Pod) {
	now := p.now().UTC()
	e.Observe(pod, p.LastSeen(pod.Metadata.UID), now)
	p.Seen[pod.Metadata.UID] = now
	p.Touch(e)
	p.holding.updateHold(p, e)
}

// listedLast reports whether Kubernetes had a pod when it was listed last.
func (p *pass) listedLast(uid string) bool {
	for _, listed := range p.present {
		if listed[uid] {
			return true
		}
	}
	return false
}
