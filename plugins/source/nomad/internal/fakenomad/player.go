package fakenomad

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// World is the truth about a cluster: its jobs and allocations with their times.
type World struct {
	Jobs []struct {
		ID, NS, Name string
		Submit       time.Time
		Gone         *time.Time
		Meta         map[string]string
	}
	Allocs []struct {
		ID, Job           string
		Created           time.Time
		Starts            []time.Time
		End               *time.Time
		Cores, GPUs, Mem  int64
		Disk, MHz         int64
		GPUModel          string     `json:"gpu_model"`
		NoTaskStatesUntil *time.Time `json:"no_taskstates_until"`
		UnknownFrom       *time.Time `json:"unknown_from"`
	}
}

// ReadWorld reads a world from a file.
func ReadWorld(path string) (*World, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w := new(World)
	return w, json.Unmarshal(text, w)
}

// Player plays a world on a server.
type Player struct {
	server  *Server
	changes []change
	now     time.Time
}

type change struct {
	at time.Time
	do func()
}

// NewPlayer makes a player of w on s that has played nothing yet.
func NewPlayer(s *Server, w *World) *Player {
	p := &Player{server: s}
	s.PutNode(nomad.Node{ID: "n1", Name: "n1", Datacenter: "dc1", NodePool: "default", Status: "ready"})
	where := map[string]string{}
	for _, j := range w.Jobs {
		where[j.ID] = j.NS
		p.addChange(j.Submit, func() {
			s.Register(nomad.Job{ID: j.ID, Name: j.Name, Namespace: j.NS, Type: "service", NodePool: "default", Meta: j.Meta,
				SubmitTime: j.Submit.UnixNano(), TaskGroups: []nomad.Group{{Name: "g", Tasks: []nomad.Task{{Name: "main", Driver: "docker"}}}}})
		})
		if j.Gone != nil {
			p.addChange(*j.Gone, func() { s.Purge(j.NS, j.ID, *j.Gone) })
		}
	}
	for i := range w.Allocs {
		p.planAllocation(w, i, where)
	}
	slices.SortStableFunc(p.changes, func(a, b change) int { return a.at.Compare(b.at) })
	return p
}

func (p *Player) addChange(at time.Time, do func()) { p.changes = append(p.changes, change{at, do}) }

// planAllocation plans all changes of one allocation.
func (p *Player) planAllocation(w *World, i int, where map[string]string) {
	a := &w.Allocs[i]
	now := nomad.Allocation{ID: a.ID, Namespace: where[a.Job], JobID: a.Job, Name: a.Job + ".g[0]", TaskGroup: "g", NodeID: "n1", NodeName: "n1",
		AllocatedResources: newResources(a.Cores, a.GPUs, a.Mem, a.Disk, a.MHz, cmp.Or(a.GPUModel, "Tesla T4")), DesiredStatus: "run",
		ClientStatus: nomad.Pending, CreateTime: a.Created.UnixNano()}
	put := func(at time.Time) {
		now.ModifyTime = at.UnixNano()
		p.server.Put(now)
	}
	p.addChange(a.Created, func() { put(a.Created) })
	state := nomad.TaskState{State: "pending"}
	event := func(at time.Time, typ string) {
		e := nomad.TaskEvent{Type: typ, Time: at.UnixNano()}
		if typ == "Terminated" {
			e.Details = map[string]string{"exit_code": "0", "signal": "0", "oom_killed": "false"}
		}
		state.Events = append(slices.Clone(state.Events), e)
		state.Events = state.Events[max(0, len(state.Events)-10):]
	}
	set := func(at time.Time, client, task string) {
		s := state
		s.State = task
		now.ClientStatus, now.TaskStates = client, map[string]*nomad.TaskState{"main": &s}
		put(at)
	}
	for n, start := range a.Starts {
		p.addChange(start, func() {
			if n == 0 {
				event(a.Created, "Received")
				event(a.Created, "Task Setup")
			} else {
				event(start, "Terminated")
				event(start, "Restarting")
				state.Restarts++
			}
			event(start, "Started")
			state.StartedAt = start
			set(start, nomad.Running, "running")
		})
	}
	if a.UnknownFrom != nil {
		p.addChange(*a.UnknownFrom, func() { set(*a.UnknownFrom, nomad.Unknown, "running") })
	}
	if a.End != nil {
		p.addChange(*a.End, func() {
			event(*a.End, "Terminated")
			state.FinishedAt = *a.End
			set(*a.End, nomad.Complete, "dead")
		})
	}
}

func newResources(cores, gpus, memory, disk, mhz int64, model string) *nomad.Resources {
	r := &nomad.Resources{Tasks: map[string]*nomad.TaskResources{"main": new(nomad.TaskResources)}}
	t := r.Tasks["main"]
	for i := range cores {
		t.Cpu.ReservedCores = append(t.Cpu.ReservedCores, uint16(i))
	}
	t.Cpu.CpuShares, t.Memory.MemoryMB, r.Shared.DiskMB = mhz, memory, disk
	var ids []string
	for i := range gpus {
		ids = append(ids, fmt.Sprintf("gpu-%d", i))
	}
	if gpus > 0 {
		t.Devices = []nomad.Device{{Vendor: "nvidia", Type: "gpu", Name: model, DeviceIDs: ids}}
	}
	return r
}

// Step plays the next changes, all of one moment, and returns it; false when there
// are none any more.
func (p *Player) Step() (time.Time, bool) {
	if len(p.changes) == 0 {
		return p.now, false
	}
	p.now = p.changes[0].at
	for len(p.changes) > 0 && p.changes[0].at.Equal(p.now) {
		p.changes[0].do()
		p.changes = p.changes[1:]
	}
	return p.now, true
}
