package run

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// Entry is what is known of a pod.
type Entry struct {
	Pod        kube.Pod              `json:"pod"`
	Node       map[string]string     `json:"node,omitzero"`        // labels of the pod's node; nil: not read
	Namespace  *Labelled             `json:"namespace,omitempty"`  // of the pod
	Job        *Job                  `json:"job,omitempty"`        // that the pod belongs to
	Claims     map[string]*Claim     `json:"claims,omitempty"`     // of devices, by the name of the ResourceClaim
	Containers map[string]*Container `json:"containers,omitempty"` // by kind and name
	GoneAt     time.Time             `json:"gone,omitzero"`        // when the pod was deleted, or last seen
	Deleted    bool                  `json:"deleted,omitempty"`    // Kubernetes told that it was
	OverAt     time.Time             `json:"over,omitzero"`        // when the pod was first known to be over
	Counted    bool                  `json:"counted,omitempty"`    // what never started has been counted
	Whole      *Run                  `json:"whole,omitempty"`      // the pod as one run: only what was sent of it
	FromJob    bool                  `json:"from_job,omitempty"`   // made of its job, since no one saw the pod

	journal.Once
}

// Labelled are labels and annotations of a namespace.
type Labelled struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Job is the job of a pod.
type Job struct {
	UID  string     `json:"uid"`
	Name string     `json:"name"`
	Cron string     `json:"cron,omitempty"` // the CronJob that has made it
	Top  kube.Owner `json:"top,omitzero"`   // its owner of another kind
	// Queue is the queue of Kueue that the job was submitted to.
	Queue string `json:"queue,omitempty"`
}

// Container is what is known of a container.
type Container struct {
	Runs   []Run `json:"runs,omitempty"`   // in the order of their starts
	Failed int64 `json:"failed,omitempty"` // starts that came to nothing
	Missed int64 `json:"missed,omitempty"` // starts that were told as a hole
}

// Run is a start of a container.
type Run struct {
	Start     time.Time `json:"start"`
	Stop      time.Time `json:"stop,omitzero"`
	ID        string    `json:"id,omitempty"` // of the container's instance
	Exit      *Exit     `json:"exit,omitempty"`
	Guessed   bool      `json:"guessed,omitempty"` // the start is not what Kubernetes said
	Estimated bool      `json:"estimated,omitempty"`
	Usage     *Usage    `json:"usage,omitempty"`
	Told      string    `json:"told,omitempty"` // what the daemon has of it; see View.Told
	Twin      int       `json:"twin,omitempty"` // how many runs before it started in the same second
}

// Exit is how a run ended.
type Exit struct {
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Usage is what Prometheus says of a run.
type Usage struct {
	CPU    *float64 `json:"cpu,omitempty"`    // seconds
	Memory *int64   `json:"memory,omitempty"` // bytes, at most
	Given  bool     `json:"given,omitempty"`  // it is known, or given up
	Tries  int      `json:"tries,omitempty"`  // that had no answer
}

// New is an entry of which nothing is known.
func New() *Entry { return &Entry{Containers: map[string]*Container{}} }

// UID is the pod's.
func (e *Entry) UID() string { return e.Pod.Metadata.UID }

// The kinds of containers.
const (
	Main      = "main"
	Init      = "init"
	Sidecar   = "sidecar"
	Ephemeral = "ephemeral"
)

// Observe takes the pod as it is now, after it was last seen as it was. Starts that were
// missed are added to Holes.
func (e *Entry) Observe(p *kube.Pod, seen, now time.Time) {
	e.Pod = *p
	e.GoneAt, e.Deleted = time.Time{}, false
	if p.Status.Over() && e.OverAt.IsZero() {
		e.OverAt = now
	}
	for _, group := range [][]kube.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for i := range group {
			c := e.Containers[group[i].Name]
			if c == nil {
				c = &Container{}
			}
			if hole, some := c.observeStatus(&group[i], p, seen); some {
				e.Holes = append(e.Holes, hole)
			}
			if len(c.Runs) > 0 || c.Failed > 0 {
				e.Containers[group[i].Name] = c
			}
		}
	}
	if p.Metadata.Removed() { // but for its finalizers
		e.Gone(true, now, now)
	}
}

// observeStatus takes what the status of a container says of its last two runs.
func (c *Container) observeStatus(s *kube.ContainerStatus, p *kube.Pod, seen time.Time) (journal.Hole, bool) {
	known := len(c.Runs)
	c.addTerminated(s.LastState.Terminated, p, seen)
	c.addTerminated(s.State.Terminated, p, seen)
	if r := s.State.Running; r != nil {
		c.findOrBeginRun(r.StartedAt, s.ContainerID, seen)
	}
	starts := s.RestartCount
	if s.State.Waiting == nil && (s.State.Running != nil || s.State.Terminated != nil) {
		starts++
	}
	missed := starts - int64(len(c.Runs)) - c.Failed - c.Missed
	if missed > 0 && (neverRan(s.State.Terminated) || s.State.Running == nil && neverRan(s.LastState.Terminated)) {
		c.Failed, missed = c.Failed+missed, 0 // so did the ones before it, as far as is known
	}
	if missed <= 0 || len(c.Runs) == 0 {
		return journal.Hole{}, false
	}
	c.Missed += missed
	hole := journal.Hole{Starts: missed, From: p.Metadata.CreationTimestamp, To: c.Runs[min(known, len(c.Runs)-1)].Start}
	if known > 0 {
		hole.From = cmp.Or(c.Runs[known-1].Stop, c.Runs[known-1].Start)
	}
	return hole, true
}

// addTerminated takes a run that is over.
func (c *Container) addTerminated(t *kube.Terminated, p *kube.Pod, seen time.Time) {
	if t == nil || neverRan(t) {
		return
	}
	var r *Run
	if t.StartedAt.IsZero() { // the node has lost the container
		r = c.lostRun(p)
	} else {
		r = c.findOrBeginRun(t.StartedAt, t.ContainerID, seen)
	}
	r.Exit = &Exit{Code: t.ExitCode, Signal: t.Signal, Reason: t.Reason}
	switch {
	case !t.FinishedAt.IsZero():
		r.Stop, r.Estimated = t.FinishedAt.UTC(), false // before the start where a clock was set back: the mapping refuses that
		if t.StartedAt.IsZero() {                       // the start is an estimate
			r.Stop = later(r.Stop, r.Start)
		}
	case r.Stop.IsZero():
		r.Stop, r.Estimated = later(seen, r.Start), true
	}
}

// neverRan reports whether a container ended without having run: its runtime gives 1970 as
// the time of its start.
func neverRan(t *kube.Terminated) bool {
	return t != nil && !t.StartedAt.IsZero() && t.StartedAt.Unix() <= 0
}

// lostRun finds the run of which the node has lost the container: that which goes on.
func (c *Container) lostRun(p *kube.Pod) *Run {
	if n := len(c.Runs); n > 0 {
		return &c.Runs[n-1]
	}
	start := p.Metadata.CreationTimestamp
	if p.Status.StartTime != nil {
		start = *p.Status.StartTime
	}
	c.Runs = append(c.Runs, Run{Start: start.UTC(), Guessed: true})
	return &c.Runs[0]
}

// findOrBeginRun finds the run that started then, or begins it. The ones before it are over.
func (c *Container) findOrBeginRun(start time.Time, id string, seen time.Time) *Run {
	start = start.UTC()
	same := func(r *Run) bool { return r.ID == "" || id == "" || r.ID == id }
	twin := 0
	for i := range c.Runs {
		r := &c.Runs[i]
		switch {
		case r.Start.Equal(start) && same(r):
			r.ID = cmp.Or(r.ID, id)
			return r
		case r.Start.Equal(start):
			twin++
		}
	}
	at := len(c.Runs)
	for at > 0 && c.Runs[at-1].Start.After(start) {
		at--
	}
	c.Runs = slices.Insert(c.Runs, at, Run{Start: start, ID: id, Twin: twin})
	for i := range at {
		if r := &c.Runs[i]; r.Stop.IsZero() {
			r.Stop, r.Estimated = later(earlier(seen, start), r.Start), true
		}
	}
	return &c.Runs[at]
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Gone notes that the pod is no longer there: that Kubernetes told that it was deleted,
// or that it was not found any more. It was last seen as it was.
func (e *Entry) Gone(deleted bool, seen, now time.Time) {
	if d := e.Pod.Metadata.DeletionTimestamp; d != nil {
		seen = earlier(now, d.UTC())
	}
	e.GoneAt, e.Deleted = seen, deleted
}

// Over reports whether nothing more is expected of the pod's containers.
func (e *Entry) Over() bool { return !e.GoneAt.IsZero() || e.Pod.Status.Over() }

// Untold reports whether the daemon is to be told of holes, or of what never started.
func (e *Entry) Untold() bool { return len(e.Holes) > 0 || e.Over() && !e.Counted }

// TellOnce notes that the daemon has been told of them.
func (e *Entry) TellOnce() { e.Once, e.Counted = journal.Once{}, e.Counted || e.Over() }

// Untell has all runs sent again. What they used stays known.
func (e *Entry) Untell() {
	if e.Whole != nil {
		e.Whole.Told = ""
	}
	for _, c := range e.Containers {
		for i := range c.Runs {
			c.Runs[i].Told = ""
		}
	}
}

// Find returns the description of a container and its kind; nil when the pod has none of
// that name.
func (e *Entry) Find(name string) (*kube.Container, string) {
	for kind, list := range map[string][]kube.Container{Main: e.Pod.Spec.Containers, Init: e.Pod.Spec.InitContainers, Ephemeral: e.Pod.Spec.EphemeralContainers} {
		for i := range list {
			if list[i].Name != name {
				continue
			}
			if kind == Init && list[i].RestartPolicy == "Always" {
				kind = Sidecar
			}
			return &list[i], kind
		}
	}
	return nil, ""
}

// Unstarted counts the containers of a pod that is over which never ran.
func (e *Entry) Unstarted() (n int64) {
	for _, list := range [][]kube.Container{e.Pod.Spec.InitContainers, e.Pod.Spec.Containers} {
		for i := range list {
			if c := e.Containers[list[i].Name]; c == nil || len(c.Runs) == 0 {
				n++
			}
		}
	}
	return n
}

// Check mends an entry that was read.
func (e *Entry) Check() error {
	maps.DeleteFunc(e.Containers, func(_ string, c *Container) bool { return c == nil })
	maps.DeleteFunc(e.Claims, func(_ string, c *Claim) bool { return c == nil })
	if e.Containers == nil {
		e.Containers = map[string]*Container{}
	}
	return nil
}
