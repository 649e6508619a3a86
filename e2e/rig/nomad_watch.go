//go:build e2e

package rig

import (
	"maps"
	"sync"
	"time"
)

// NomadWatch asks Nomad again and again what its allocations do, and remembers every
// start and end of every task.
type NomadWatch struct {
	cluster *NomadCluster
	stop    chan struct{}
	done    sync.WaitGroup

	mu     sync.Mutex
	starts map[NomadTask]map[int64]bool // ns since 1970
	ends   map[NomadTask]map[int64]bool
	allocs map[string]NomadAllocation
}

// NomadTask names a task of an allocation.
type NomadTask struct{ Allocation, Task string }

// NomadAllocation is what a watch saw last of an allocation.
type NomadAllocation struct {
	ID, Namespace, JobID, ClientStatus, DesiredStatus string
	TaskStates                                        map[string]struct {
		State  string
		Events []struct {
			Type string
			Time int64
		}
	}
	AllocatedResources struct {
		Tasks map[string]struct {
			Cpu struct { //nolint:revive // the name is Nomad's
				CpuShares     int64 //nolint:revive // the name is Nomad's
				ReservedCores []int
			}
			Memory struct{ MemoryMB int64 }
		}
	}
}

// Over reports whether the allocation has come to its end.
func (a NomadAllocation) Over() bool {
	return a.ClientStatus == "complete" || a.ClientStatus == "failed" || a.ClientStatus == "lost"
}

// NomadStart is one start of a task, in truth. Stop is 0 while it runs.
type NomadStart struct {
	NomadTask
	Start, Stop int64 // ns since 1970
	First       bool  // of the task in its allocation
}

// Watch begins to watch, until the end of the test.
func (c *NomadCluster) Watch() *NomadWatch {
	w := &NomadWatch{cluster: c, stop: make(chan struct{}), starts: map[NomadTask]map[int64]bool{}, ends: map[NomadTask]map[int64]bool{}, allocs: map[string]NomadAllocation{}}
	w.done.Go(func() {
		for {
			w.askOnce()
			select {
			case <-w.stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	c.t.Cleanup(func() {
		close(w.stop)
		w.done.Wait()
	})
	return w
}

// askOnce asks once. A server that is away is asked again later.
func (w *NomadWatch) askOnce() {
	var all []NomadAllocation
	if w.cluster.Get("/v1/allocations?namespace=*&resources=true&task_states=true", &all) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range all {
		w.allocs[a.ID] = a
		for task, state := range a.TaskStates {
			key := NomadTask{a.ID, task}
			for _, e := range state.Events {
				switch e.Type {
				case "Started":
					noteTime(w.starts, key, e.Time)
				case "Terminated":
					noteTime(w.ends, key, e.Time)
				}
			}
		}
	}
}

func noteTime(m map[NomadTask]map[int64]bool, key NomadTask, at int64) {
	if m[key] == nil {
		m[key] = map[int64]bool{}
	}
	m[key][at] = true
}

// Allocations are all that were ever seen.
func (w *NomadWatch) Allocations() map[string]NomadAllocation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.allocs)
}

// Of are the allocations of a job.
func (w *NomadWatch) Of(job string) (out []NomadAllocation) {
	for _, a := range w.Allocations() {
		if a.JobID == job {
			out = append(out, a)
		}
	}
	return out
}

// Starts are all starts that were ever seen.
func (w *NomadWatch) Starts() (out []NomadStart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, starts := range w.starts {
		for at := range starts {
			s := NomadStart{NomadTask: key, Start: at, First: true}
			for other := range starts {
				s.First = s.First && other >= at
			}
			for end := range w.ends[key] {
				if end >= at && (s.Stop == 0 || end < s.Stop) {
					s.Stop = end
				}
			}
			out = append(out, s)
		}
	}
	return out
}
