package run

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/proto/text"
)

// Entry is what is known of one allocation.
type Entry struct {
	Alloc nomad.Allocation `json:"alloc"` // its newest state, without events
	Job   *nomad.Job       `json:"job,omitempty"`
	Node  Node             `json:"node"`
	Tasks map[string]*Task `json:"tasks,omitempty"`

	LostAt    time.Time `json:"lost,omitzero"`    // when Nomad gave it up
	AwayAt    time.Time `json:"away,omitzero"`    // since when its node cannot be reached
	GoneAt    time.Time `json:"gone,omitzero"`    // until when it was seen, where Nomad has forgotten it
	Purged    bool      `json:"purged,omitempty"` // GoneAt is when it was purged
	NoJob     bool      `json:"nojob,omitempty"`
	Unstarted bool      `json:"unstarted,omitempty"` // the daemon has the number of tasks that never started

	journal.Once
}

// Node is what is known of the node of an allocation.
type Node struct {
	Datacenter string `json:"dc,omitempty"`
	Pool       string `json:"pool,omitempty"`
	Class      string `json:"class,omitempty"`
}

// New makes an entry of which nothing is known yet.
func New() *Entry { return &Entry{Tasks: map[string]*Task{}} }

// Observe adds what an allocation tells. Seen is when the entry was last known to
// be as it is. Starts that were missed are added to Holes.
func (e *Entry) Observe(a *nomad.Allocation, seen time.Time) {
	if a.ModifyIndex < e.Alloc.ModifyIndex {
		return // older than what is known
	}
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		state := a.TaskStates[name]
		if state == nil {
			continue
		}
		t := e.Tasks[name]
		if t == nil {
			t = new(Task)
			e.Tasks[name] = t
		}
		if h := t.Observe(state, nanoTime(a.CreateTime), seen); h != nil {
			e.Holes = append(e.Holes, *h)
		}
	}
	e.estimateEnds(a)
	e.storeState(a)
}

// estimateEnds ends the runs of tasks that are over without a time of their end.
func (e *Entry) estimateEnds(a *nomad.Allocation) {
	for name, t := range e.Tasks {
		state := a.TaskStates[name]
		if hasEnded(a) || state != nil && state.State == dead {
			t.estimateEnd(nanoTime(a.ModifyTime))
		}
	}
}

// hasEnded reports whether Nomad says that all tasks of an allocation have ended.
func hasEnded(a *nomad.Allocation) bool {
	return a.ClientStatus == nomad.Complete || a.ClientStatus == nomad.Failed
}

// storeState keeps the newest state.
func (e *Entry) storeState(a *nomad.Allocation) {
	next := *a
	next.Job, next.TaskStates, next.AllocStates = nil, nil, nil
	if next.PreviousAllocation == "" { // listings do not have it
		next.PreviousAllocation = e.Alloc.PreviousAllocation
	}
	if next.AllocatedResources == nil {
		next.AllocatedResources = e.Alloc.AllocatedResources
	}
	e.LostAt = stateSince(e.LostAt, a, nomad.Lost)
	e.AwayAt = stateSince(e.AwayAt, a, nomad.Unknown)
	e.Alloc, e.GoneAt, e.Purged = next, time.Time{}, false
	if a.Job != nil {
		e.SetJob(a.Job)
	}
}

// stateSince is when the allocation came into a state in which it is.
func stateSince(known time.Time, a *nomad.Allocation, state string) time.Time {
	if a.ClientStatus != state {
		return time.Time{}
	}
	for _, s := range slices.Backward(a.AllocStates) {
		if s.Field == "ClientStatus" && s.Value == state && s.Time.Year() > 1 {
			return s.Time.UTC()
		}
	}
	if known.IsZero() {
		return nanoTime(a.ModifyTime)
	}
	return known
}

// SetJob sets the job, of which only the allocation's group is kept.
func (e *Entry) SetJob(j *nomad.Job) {
	if e.Job == nil || e.NoJob {
		e.Untell()
	}
	e.Job, e.NoJob = j.Group(e.Alloc.TaskGroup), false
}

// Untell has all runs sent again.
func (e *Entry) Untell() {
	for _, t := range e.Tasks {
		for i := range t.Runs {
			t.Runs[i].Told = time.Time{}
		}
	}
}

// Forgotten notes that Nomad has forgotten the allocation, which was last seen as
// it is at that time.
func (e *Entry) Forgotten(seen time.Time) { e.GoneAt = seen }

// Purge notes that the job was purged at that time, which ends all of its tasks and
// has Nomad forget the allocation.
func (e *Entry) Purge(at time.Time) { e.GoneAt, e.Purged = at, true }

// GoesOn reports whether a run has no end that Nomad has told.
func (e *Entry) GoesOn() bool {
	for _, t := range e.Tasks {
		if t.GoesOn() {
			return true
		}
	}
	return false
}

// Settled reports whether nothing more is expected of the allocation.
func (e *Entry) Settled() bool {
	return (e.Alloc.Over() || !e.GoneAt.IsZero()) && !e.NoJob
}

// Untold reports whether the daemon lacks something beside runs: holes, or the number of tasks
// that never started.
func (e *Entry) Untold() bool { return len(e.Holes) > 0 || e.Alloc.Over() && !e.Unstarted }

// TellOnce notes that the daemon has been told of them.
func (e *Entry) TellOnce() { e.Once, e.Unstarted = journal.Once{}, e.Unstarted || e.Alloc.Over() }

// Ends are the rules for runs whose end Nomad does not tell.
type Ends struct {
	// AtDisconnect: a run ends when its node can no longer be reached. Otherwise it
	// goes on until Nomad gives it up.
	AtDisconnect bool
}

// View is a run of a task of an allocation.
type View struct {
	*Entry
	Task string
	Run
	Last bool // of its task
	at   *Run
}

// Views are the runs of all tasks, in the order of their names and starts.
func (e *Entry) Views(rule Ends) []View {
	var out []View
	for _, name := range slices.Sorted(maps.Keys(e.Tasks)) {
		runs := e.Tasks[name].Runs
		for i := range runs {
			v := View{Entry: e, Task: name, Run: runs[i], Last: i == len(runs)-1, at: &runs[i]}
			if v.Stop.IsZero() {
				v.estimateEnd(rule)
			}
			out = append(out, v)
		}
	}
	return out
}

// estimateEnd gives a run an end that Nomad does not tell, where it has one.
func (v *View) estimateEnd(rule Ends) {
	var stop time.Time
	switch {
	case !v.LostAt.IsZero() && rule.AtDisconnect && !v.AwayAt.IsZero() && v.AwayAt.Before(v.LostAt):
		stop = v.AwayAt
	case !v.LostAt.IsZero():
		stop = v.LostAt
	case !v.AwayAt.IsZero() && rule.AtDisconnect:
		stop = v.AwayAt
	case !v.GoneAt.IsZero():
		stop = v.GoneAt
	default:
		return
	}
	if stop.Before(v.Start) {
		stop = v.Start
	}
	v.Stop, v.Estimated = stop, true
}

// Told reports whether the daemon has the run with the end that the view shows.
func (v *View) Told() bool { return !v.Stop.IsZero() && v.at.Told.Equal(v.Stop) }

// Tell notes that the daemon has the run as the view shows it, and says whether
// that is news.
func (v *View) Tell() bool {
	news := !v.at.Told.Equal(v.Stop)
	v.at.Told = v.Stop
	return news
}

const maxName = 200

// Name names the run: allocation and task for the first start, with the start's
// time for later ones.
func (v *View) Name() string {
	name := v.Alloc.ID + "-" + v.Task
	if !v.First {
		name += fmt.Sprintf("@%d", v.Start.UnixMilli())
	}
	return text.ShortName(name, maxName)
}
