package run

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// Task is what is known of a task of an allocation.
type Task struct {
	Runs      []Run  `json:"runs,omitempty"`
	State     string `json:"state,omitempty"`
	Restarts  uint64 `json:"restarts,omitempty"` // that are accounted for
	LastEvent int64  `json:"last,omitempty"`     // time of the newest event that was seen, ns since 1970
	Failed    bool   `json:"failed,omitempty"`
}

// Run is one start of a task.
type Run struct {
	Start     time.Time `json:"start"`
	Stop      time.Time `json:"stop,omitzero"` // zero while it goes on
	First     bool      `json:"first,omitempty"`
	Exit      *Exit     `json:"exit,omitempty"`
	Killed    bool      `json:"killed,omitempty"`    // Nomad ended it
	Estimated bool      `json:"estimated,omitempty"` // no one saw when it stopped
	Told      time.Time `json:"told,omitzero"`       // the end that the daemon has; zero for none
}

// Exit is how a run ended.
type Exit struct {
	Code   int  `json:"code"`
	Signal int  `json:"signal,omitempty"`
	OOM    bool `json:"oom,omitempty"`
}

// segment is what the events tell of one run.
type segment struct {
	start, stop time.Time // zero: the events do not say
	later       uint64    // restarts behind it
	exit        *Exit
	killed      bool
	rough       bool // the start is the task's StartedAt, a little behind the event's time
	guess       bool // the stop is the restart that followed it
}

// Observe adds what a task's state tells. Seen is when the task was last known to
// be as it was remembered, born when its allocation was made; they bound what was
// missed.
func (t *Task) Observe(s *nomad.TaskState, born, seen time.Time) *journal.Hole {
	events := slices.Clone(s.Events)
	slices.SortStableFunc(events, func(a, b nomad.TaskEvent) int { return cmp.Compare(a.Time, b.Time) })
	hole := t.missedRestarts(s, events, born)
	for _, g := range readSegments(s, events) {
		switch {
		case !g.start.IsZero():
			t.mergeSegment(g, s.Restarts)
		case hole == nil && t.findRun(g) >= 0: // else no one knows which run ended
			t.mergeSegment(g, s.Restarts)
		case hole == nil && g.stop.UnixNano() > t.LastEvent:
			hole = &journal.Hole{From: t.lastEvent(born), To: g.stop, Starts: 1}
		}
	}
	t.closeEarlier(seen)
	t.State, t.Failed, t.Restarts = s.State, s.Failed, max(t.Restarts, s.Restarts)
	if n := len(events); n > 0 {
		t.LastEvent = max(t.LastEvent, events[n-1].Time)
	}
	return hole
}

// missedRestarts says which restarts neither the events nor memory have.
func (t *Task) missedRestarts(s *nomad.TaskState, events []nomad.TaskEvent, born time.Time) *journal.Hole {
	known := t.Restarts
	for _, e := range events {
		if e.Type == restarting && e.Time > t.LastEvent {
			known++
		}
	}
	if s.Restarts <= known || len(events) == 0 {
		return nil
	}
	from, to := t.lastEvent(born), nanoTime(events[0].Time)
	if !to.After(from) {
		return nil
	}
	return &journal.Hole{From: from, To: to, Starts: int64(s.Restarts - known)} //nolint:gosec // a count of restarts
}

// lastEvent is the time of the newest event that was seen, or born.
func (t *Task) lastEvent(born time.Time) time.Time {
	if t.LastEvent > 0 {
		return nanoTime(t.LastEvent)
	}
	return born
}

// The types of events that matter.
const (
	received   = "Received"
	started    = "Started"
	terminated = "Terminated"
	restarting = "Restarting"
	killing    = "Killing"
	killed     = "Killed"
)

// The states of a task.
const (
	running = "running"
	dead    = "dead"
)

// readSegments reads the events from the oldest on.
func readSegments(s *nomad.TaskState, events []nomad.TaskEvent) []segment {
	var out []segment
	goesOn, kill := false, false
	failed := len(events) > 0 && events[0].Type == received // whether no start was before the events
	for _, e := range events {
		last := len(out) - 1
		switch e.Type {
		case "Driver Failure", "Setup Failure", "Failed Validation", "Failed Artifact Download", "Task hook failed":
			failed = true
		case started:
			out = append(out, segment{start: nanoTime(e.Time)})
			goesOn, kill = true, false
		case killing:
			kill = true
		case terminated, killed:
			if !goesOn && len(out) == 0 && e.Type == terminated { // its start is no longer among the events
				out, goesOn, last = append(out, segment{}), true, 0
			}
			if goesOn {
				g := &out[last]
				g.stop, g.killed, goesOn = nanoTime(e.Time), kill || e.Type == killed, false
				if e.Type == terminated {
					g.exit = exitOf(e)
				}
			}
		case restarting:
			if len(out) == 0 && !failed {
				out = append(out, segment{stop: nanoTime(e.Time), guess: true})
			}
			for i := range out {
				out[i].later++
			}
			goesOn, kill = false, false
		}
	}
	return addState(s, out)
}

// addState adds what the state tells beside the events, about the last start.
func addState(s *nomad.TaskState, out []segment) []segment {
	hasStart := slices.ContainsFunc(out, func(g segment) bool { return !g.start.IsZero() })
	if !hasStart && !s.StartedAt.IsZero() && s.StartedAt.Year() > 1 {
		if len(out) == 0 {
			out = append(out, segment{})
		}
		g := &out[len(out)-1]
		if g.stop.IsZero() || !g.stop.Before(s.StartedAt) {
			g.start, g.rough = s.StartedAt.UTC(), true
		}
	}
	if n := len(out); n > 0 && s.State == dead && out[n-1].stop.IsZero() && s.FinishedAt.Year() > 1 {
		out[n-1].stop = s.FinishedAt.UTC()
	}
	return out
}

// mergeSegment adds a segment to what is remembered.
func (t *Task) mergeSegment(g segment, restarts uint64) {
	at := t.findRun(g)
	if at < 0 {
		t.Runs = append(t.Runs, Run{Start: g.start, First: len(t.Runs) == 0 && g.later == restarts})
		slices.SortStableFunc(t.Runs, func(a, b Run) int { return a.Start.Compare(b.Start) })
		at = slices.IndexFunc(t.Runs, func(r Run) bool { return r.Start.Equal(g.start) })
	}
	r := &t.Runs[at]
	stop := g.stop // before the start where a clock was set back: the mapping refuses that
	same := stop.Equal(r.Stop) && !r.Estimated
	worse := g.exit == nil && r.Exit != nil // its event is no longer there
	if stop.IsZero() || same || worse || g.guess && !r.Stop.IsZero() {
		return
	}
	r.Stop, r.Exit, r.Killed, r.Estimated, r.Told = stop, g.exit, g.killed, g.guess, time.Time{}
}

// roughly is by how much StartedAt may be behind the event of the start.
const roughly = time.Second

// findRun finds the run of a segment, and -1 when it is a new one.
func (t *Task) findRun(g segment) int {
	for i := len(t.Runs) - 1; i >= 0; i-- {
		r := &t.Runs[i]
		switch {
		case g.start.IsZero():
			// The run that went on, unless a later one is known.
			if i == len(t.Runs)-1 && !r.Start.After(g.stop) && (r.Stop.IsZero() || r.Estimated || r.Stop.Equal(g.stop)) {
				return i
			}
		case r.Start.Equal(g.start):
			return i
		case g.rough && !r.Start.After(g.start) && g.start.Sub(r.Start) < roughly && (r.Stop.IsZero() || r.Estimated || !r.Stop.Before(g.start)):
			return i
		}
	}
	return -1
}

// closeEarlier ends runs that went on when a later one began and whose end no one
// saw: when they were last seen.
func (t *Task) closeEarlier(seen time.Time) {
	for i := range len(t.Runs) - 1 {
		r, next := &t.Runs[i], &t.Runs[i+1]
		if !r.Stop.IsZero() {
			continue
		}
		stop := seen
		if t.LastEvent > 0 && nanoTime(t.LastEvent).After(stop) {
			stop = nanoTime(t.LastEvent)
		}
		if stop.After(next.Start) {
			stop = next.Start
		}
		if stop.Before(r.Start) {
			stop = r.Start
		}
		r.Stop, r.Estimated, r.Told = stop, true, time.Time{}
	}
}

// estimateEnd gives the last run, which is over, an end that Nomad does not tell: the newest
// event behind its start, or when its allocation was changed to what says that it is over.
// Later events and changes do not move it; an end that Nomad tells later replaces it.
func (t *Task) estimateEnd(changed time.Time) {
	if !t.GoesOn() {
		return
	}
	r := &t.Runs[len(t.Runs)-1]
	r.Estimated = true
	switch event := nanoTime(t.LastEvent); {
	case event.After(r.Start):
		r.Stop = event
	case changed.After(r.Start):
		r.Stop = changed
	default:
		r.Stop = r.Start
	}
}

// GoesOn reports whether the task's last run has no end.
func (t *Task) GoesOn() bool {
	n := len(t.Runs)
	return n > 0 && t.Runs[n-1].Stop.IsZero()
}

func exitOf(e nomad.TaskEvent) *Exit {
	x := &Exit{Code: e.ExitCode, Signal: e.Signal, OOM: e.Details["oom_killed"] == "true"}
	if n, err := strconv.Atoi(e.Details["exit_code"]); err == nil && x.Code == 0 {
		x.Code = n
	}
	if n, err := strconv.Atoi(strings.TrimSpace(e.Details["signal"])); err == nil && x.Signal == 0 {
		x.Signal = n
	}
	return x
}

func nanoTime(n int64) time.Time { return time.Unix(0, n).UTC() }
