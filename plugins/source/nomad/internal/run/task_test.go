package run

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// story is what really happened to a task: what each state would have told.
type story struct {
	runs   []Run
	states []nomad.TaskState // with all events
	times  []time.Time
}

const kept = 10 // events, by Nomad

// tell draws a story: starts that succeed or fail, with other events in between.
func tell(t *rapid.T) *story {
	s := new(story)
	now := int64(1_778_000_000_000_000_000)
	state := nomad.TaskState{State: "pending"}
	event := func(typ string) {
		now += rapid.Int64Range(1_000_000, 1_000_000_000_000).Draw(t, "passes")
		state.Events = append(slices.Clone(state.Events), nomad.TaskEvent{Type: typ, Time: now})
		if typ == restarting {
			state.Restarts++
		}
	}
	note := func() {
		s.states, s.times = append(s.states, state), append(s.times, time.Unix(0, now+1).UTC())
	}
	event("Received")
	event("Task Setup")
	note()
	for n, starts := 0, rapid.IntRange(1, 12).Draw(t, "starts"); n < starts; n++ {
		if rapid.IntRange(0, 5).Draw(t, "fails") == 0 {
			event("Driver Failure")
		} else {
			event(started)
			r := Run{Start: nanoTime(now), First: state.Restarts == 0}
			state.State, state.StartedAt = running, nanoTime(now+20_000)
			note()
			for range rapid.IntRange(0, 4).Draw(t, "signals") {
				event("Signaling")
				note()
			}
			event(terminated)
			r.Stop, r.Exit = nanoTime(now), new(Exit)
			s.runs = append(s.runs, r)
		}
		if n == starts-1 {
			event("Not Restarting")
			now++
			state.State, state.FinishedAt = dead, nanoTime(now)
			note()
			break
		}
		event(restarting)
		state.State = "pending"
		note()
		now += int64(roughly)
	}
	return s
}

// at is what Nomad tells of the story after n changes.
func (s *story) at(n int) *nomad.TaskState {
	state := s.states[n]
	state.Events = state.Events[max(0, len(state.Events)-kept):]
	return &state
}

func TestATaskThatIsSeenAtEachChangeHasItsTrueRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, task := tell(t), new(Task)
		seen := s.times[0]
		for n := range s.states {
			if hole := task.Observe(s.at(n), s.times[0], seen); hole != nil {
				t.Fatalf("a hole %+v", hole)
			}
			seen = s.times[n]
		}
		if diff := cmp.Diff(s.runs, task.Runs); diff != "" {
			t.Fatalf("(-truth +seen)\n%s", diff)
		}
	})
}

func TestATaskThatIsSeenNowAndThenHasNoRunThatWasNotAndNoTimeThatWasNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, task := tell(t), new(Task)
		seen, missed := s.times[0], int64(0)
		for n := range s.states {
			if n < len(s.states)-1 && !rapid.Bool().Draw(t, "sees") {
				continue
			}
			if hole := task.Observe(s.at(n), s.times[0], seen); hole != nil {
				missed += hole.Starts
			}
			seen = s.times[n]
		}
		for _, r := range task.Runs {
			at := slices.IndexFunc(s.runs, func(o Run) bool { return o.Start.Equal(r.Start) || o.Start.Equal(r.Start.Add(-20*time.Microsecond)) })
			if at < 0 {
				t.Fatalf("there was no start at %s", r.Start)
			}
			truth, latest := s.runs[at], s.times[len(s.times)-1]
			if at < len(s.runs)-1 {
				latest = s.runs[at+1].Start
			}
			// Where only FinishedAt is left, it is a little late.
			wrong := !r.Estimated && r.Exit != nil && !r.Stop.Equal(truth.Stop)
			if r.First != truth.First || r.Stop.IsZero() || r.Stop.After(latest) || wrong {
				t.Fatalf("%+v, in truth %+v", r, truth)
			}
		}
		if missed == 0 && len(task.Runs) != len(s.runs) {
			t.Fatalf("%d runs instead of %d, and no hole", len(task.Runs), len(s.runs))
		}
	})
}

func TestLookingAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, task := tell(t), new(Task)
		n := rapid.IntRange(0, len(s.states)-1).Draw(t, "when")
		task.Observe(s.at(n), s.times[0], s.times[0])
		before := slices.Clone(task.Runs)
		if hole := task.Observe(s.at(n), s.times[0], s.times[n]); hole != nil {
			t.Fatalf("a hole %+v", hole)
		}
		if diff := cmp.Diff(before, task.Runs); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAPrestartTaskThatIsRunAgainByAnOperatorIsALaterRun(t *testing.T) {
	task := new(Task)
	at := func(s int64) int64 { return s * 1e9 }
	first := nomad.TaskState{State: dead, Events: []nomad.TaskEvent{{Type: started, Time: at(1)}, {Type: terminated, Time: at(2)}}}
	task.Observe(&first, nanoTime(0), nanoTime(2))
	again := nomad.TaskState{State: running, Events: append(first.Events, nomad.TaskEvent{Type: "Restart Signaled", Time: at(5)}, nomad.TaskEvent{Type: started, Time: at(6)})}
	task.Observe(&again, nanoTime(0), nanoTime(6))
	if len(task.Runs) != 2 || !task.Runs[0].First || task.Runs[1].First || !task.Runs[1].Stop.IsZero() {
		t.Errorf("%+v", task.Runs)
	}
}

// The recording has a job that fails, restarts and is rescheduled, one that is
// dispatched, a service that is updated and stopped, and prestart tasks.
func TestTheRecordedAllocationsBecomeTheirRuns(t *testing.T) {
	text, err := os.ReadFile("../nomad/testdata/event-stream.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]*Entry{}
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		events, err := nomad.ParseEvents(line)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Allocation == nil {
				continue
			}
			entry := entries[e.Allocation.ID]
			if entry == nil {
				entry = New()
				entries[e.Allocation.ID] = entry
			}
			if entry.Observe(e.Allocation, nanoTime(e.Allocation.ModifyTime)); len(entry.Holes) > 0 {
				t.Errorf("%s: %+v", e.Allocation.JobID, entry.Holes)
			}
		}
	}
	type row struct {
		Job, Task, State, Start, Stop string
		First                         bool
	}
	var got []row
	for _, e := range entries {
		for _, v := range e.Views(Ends{}) {
			if e.Alloc.JobID == "batch-fail" || e.Alloc.JobID == "websvc" {
				got = append(got, row{e.Alloc.JobID, v.Task, v.state(), v.Start.Format("15:04:05.000000"), v.Stop.Format("15:04:05.000000"), v.First})
			}
			if v.Stop.IsZero() || v.Estimated {
				t.Errorf("%s %s has no end: %+v", e.Alloc.JobID, v.Task, v.Run)
			}
		}
	}
	slices.SortFunc(got, func(a, b row) int { return bytes.Compare([]byte(a.Start), []byte(b.Start)) })
	want := []row{
		{"batch-fail", "main", "failed", "05:44:11.109151", "05:44:11.109821", true},
		{"batch-fail", "main", "failed", "05:44:12.193223", "05:44:12.194371", false},
		{"batch-fail", "main", "failed", "05:44:17.293067", "05:44:17.294832", true},
		{"batch-fail", "main", "failed", "05:44:18.440654", "05:44:18.441490", false},
		{"websvc", "srv", "killed", "05:45:21.111557", "05:45:26.182684", true},
		{"websvc", "srv", "killed", "05:45:26.267180", "05:45:35.221886", true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(entries) != 13 {
		t.Errorf("%d allocations", len(entries))
	}
}

func TestALongNameIsShortenedAndStaysOne(t *testing.T) {
	e := New()
	e.Alloc.ID = "a"
	task := string(bytes.Repeat([]byte("t"), 300))
	e.Tasks[task+"1"], e.Tasks[task+"2"] = &Task{Runs: []Run{{Start: nanoTime(1), First: true}}}, &Task{Runs: []Run{{Start: nanoTime(1), First: true}}}
	views := e.Views(Ends{})
	a, b := views[0].Name(), views[1].Name()
	if a == b || len(a) > maxName || a != views[0].Name() {
		t.Errorf("%q and %q", a, b)
	}
}

func TestATaskThatEndsBeforeItStartsKeepsBothTimes(t *testing.T) {
	start := time.Unix(1_778_414_400, 0).UTC()
	var task Task
	task.Observe(&nomad.TaskState{State: dead, StartedAt: start, FinishedAt: start.Add(-time.Hour)}, start.Add(-time.Minute), start.Add(time.Minute))
	if len(task.Runs) != 1 || !task.Runs[0].Start.Equal(start) || !task.Runs[0].Stop.Equal(start.Add(-time.Hour)) {
		t.Errorf("%+v; a clock was set back, so how long it ran is unknown and not 0", task.Runs)
	}
}
