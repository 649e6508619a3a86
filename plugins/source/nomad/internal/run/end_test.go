package run

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// An allocation is over, and Nomad does not tell when one of its tasks ended. It is
// touched any number of times, the agent restarts in between, and Nomad forgets it.
func TestEnd_NotTold_IsLastEventAndStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := func(n int) int64 { return int64(n+1_778_000_000) * 1e9 }
		start := rapid.IntRange(1, 1000).Draw(t, "start")
		events := []nomad.TaskEvent{{Type: received, Time: second(0)}, {Type: started, Time: second(start)}}
		last := start
		for n := rapid.IntRange(0, 3).Draw(t, "events"); n > 0; n-- {
			last += rapid.IntRange(1, 5000).Draw(t, "passes")
			events = append(events, nomad.TaskEvent{Type: rapid.SampledFrom([]string{"Signaling", "Driver Failure", "Not Restarting", killing}).Draw(t, "type"), Time: second(last)})
		}
		touched := last + rapid.IntRange(1, 5000).Draw(t, "ends")
		client := rapid.SampledFrom([]string{nomad.Complete, nomad.Failed, nomad.Lost, nomad.Running}).Draw(t, "client")
		state := dead
		if client != nomad.Running {
			state = rapid.SampledFrom([]string{dead, running}).Draw(t, "state")
		}
		want := second(last)
		if last == start || client == nomad.Lost && state == running {
			want = second(touched) // nothing tells of the task behind its start: when it was first seen to be over
		}
		entry, index := New(), uint64(1)
		observe := func(client, state string, at int) {
			index++
			entry.Observe(&nomad.Allocation{
				ID: "a", ClientStatus: client, CreateTime: second(0), ModifyTime: second(at), ModifyIndex: index,
				TaskStates: map[string]*nomad.TaskState{"main": {State: state, StartedAt: nanoTime(second(start)), Events: events}},
			}, nanoTime(second(at)))
		}
		if rapid.Bool().Draw(t, "seen running") {
			observe(nomad.Running, running, start)
		}
		observe(client, state, touched)
		for n := rapid.IntRange(0, 4).Draw(t, "touches"); n >= 0; n-- {
			views := entry.Views(Ends{AtDisconnect: rapid.Bool().Draw(t, "rule")})
			if len(views) != 1 || !views[0].Stop.Equal(nanoTime(want)) || !views[0].Estimated {
				t.Fatalf("%+v\nends at %s, want %s", views, views[0].Stop, nanoTime(want))
			}
			switch rapid.SampledFrom([]string{"touch", "new event", "restart", "forget"}).Draw(t, "then") {
			case "new event":
				touched += rapid.IntRange(1, 50_000).Draw(t, "later")
				events = append(events, nomad.TaskEvent{Type: "Alloc Unhealthy", Time: second(touched)})
				observe(client, state, touched)
			case "touch":
				touched += rapid.IntRange(1, 50_000).Draw(t, "later")
				observe(client, state, touched)
			case "restart":
				entry = again(t, entry)
			case "forget":
				entry.Forgotten(nanoTime(second(touched + 7)))
			}
		}
	})
}

// again is an entry as a journal gives it back.
func again(t *rapid.T, e *Entry) *Entry {
	text, err := json.Marshal(e)
	out := New()
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What Nomad tells later of an end replaces what stood for it.
func TestEnd_ToldLater_ReplacesEstimate(t *testing.T) {
	minute := func(n int) int64 { return int64(n) * 60e9 }
	alloc := func(index uint64, events ...nomad.TaskEvent) *nomad.Allocation {
		return &nomad.Allocation{ID: "a", ClientStatus: nomad.Failed, ModifyTime: minute(100), ModifyIndex: index, TaskStates: map[string]*nomad.TaskState{"main": {State: dead, Events: events}}}
	}
	e := New()
	begin := nomad.TaskEvent{Type: started, Time: minute(1)}
	e.Observe(alloc(1, begin, nomad.TaskEvent{Type: killing, Time: minute(5)}), nanoTime(minute(100)))
	e.Observe(alloc(2, begin, nomad.TaskEvent{Type: killing, Time: minute(5)}, nomad.TaskEvent{Type: terminated, Time: minute(7)}), nanoTime(minute(100)))
	if v := e.Views(Ends{})[0]; !v.Stop.Equal(nanoTime(minute(7))) || v.Estimated {
		t.Errorf("%+v", v.Run)
	}
}
