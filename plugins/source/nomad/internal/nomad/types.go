package nomad

import (
	"encoding/json"
	"time"

	"github.com/bursar-accounting/bursar/proto/text"
)

// Allocation is an allocation as listings, GET /v1/allocation and events have it.
// What one of them lacks is empty.
type Allocation struct {
	ID, Namespace, Name string
	NodeID, NodeName    string
	JobID, TaskGroup    string
	JobVersion          *uint64 `json:",omitempty"` // in listings only
	Job                 *Job    `json:",omitempty"` // in GET /v1/allocation only
	AllocatedResources  *Resources
	DesiredStatus       string
	DesiredDescription  string
	ClientStatus        string
	ClientDescription   string
	AllocStates         []AllocState          `json:",omitempty"`
	TaskStates          map[string]*TaskState `json:",omitempty"`
	PreviousAllocation  string                `json:",omitempty"`
	NextAllocation      string                `json:",omitempty"`
	PreemptedBy         string                `json:"PreemptedByAllocation,omitempty"`
	CreateIndex         uint64
	ModifyIndex         uint64
	CreateTime          int64 // ns since 1970
	ModifyTime          int64
}

// The client states of an allocation.
const (
	Pending  = "pending"
	Running  = "running"
	Complete = "complete"
	Failed   = "failed"
	Lost     = "lost"    // Nomad has given it up
	Unknown  = "unknown" // its node cannot be reached, and Nomad waits
)

// Over reports whether the allocation has come to its end.
func (a *Allocation) Over() bool {
	return a.ClientStatus == Complete || a.ClientStatus == Failed || a.ClientStatus == Lost
}

// AllocState is a change of an allocation's state.
type AllocState struct {
	Field string
	Value string
	Time  time.Time
}

// Resources are what an allocation was given.
type Resources struct {
	Tasks          map[string]*TaskResources
	TaskLifecycles map[string]*Lifecycle
	Shared         struct{ DiskMB int64 }
}

// TaskResources are what a task was given.
type TaskResources struct {
	Cpu struct { //nolint:revive // the name is Nomad's
		CpuShares     int64 //nolint:revive // the name is Nomad's
		ReservedCores []uint16
	}
	Memory  struct{ MemoryMB, MemoryMaxMB int64 }
	Devices []Device
}

// Device is a group of like devices that a task was given.
type Device struct {
	Vendor, Type, Name string
	DeviceIDs          []string
}

// Lifecycle says when a task runs beside the main ones; nil for a main one.
type Lifecycle struct {
	Hook    string
	Sidecar bool
}

// TaskState is what Nomad knows of a task. Only the last ten events are kept.
type TaskState struct {
	State      string // pending, running, dead
	Failed     bool
	Restarts   uint64
	StartedAt  time.Time // of the last start
	FinishedAt time.Time
	Events     []TaskEvent
}

// TaskEvent is something that happened to a task.
type TaskEvent struct {
	Type     string
	Time     int64 // ns since 1970
	ExitCode int
	Signal   int
	Details  map[string]string
}

// Job is a version of a job.
type Job struct {
	ID, ParentID, Name, Namespace string
	Type, NodePool                string
	Priority                      int
	Version                       uint64
	CreateIndex, JobModifyIndex   uint64
	SubmitTime                    int64 // ns since 1970
	Meta                          map[string]string
	TaskGroups                    []Group
}

// Group is a group of a job's tasks.
type Group struct {
	Name  string
	Meta  map[string]string
	Tasks []Task
}

// Task is a task of a group.
type Task struct {
	Name, Driver, User string
	Meta               map[string]string
	Leader             bool
	Lifecycle          *Lifecycle
	Config             TaskConfig
}

// TaskConfig is what of a driver's configuration says what ran.
type TaskConfig struct {
	Image   Text  `json:"image,omitempty"`
	Command Text  `json:"command,omitempty"`
	Args    Texts `json:"args,omitempty"`
}

const (
	maxText  = 1 << 10
	maxTexts = 64
)

// Text is a text of at most a KiB; what is none is empty.
type Text string

// UnmarshalJSON takes anything.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = Text(text.Cut(s, maxText))
	}
	return nil
}

// Texts are up to 64 texts; what is no list of texts is empty.
type Texts []string

// UnmarshalJSON takes anything.
func (t *Texts) UnmarshalJSON(b []byte) error {
	var list []Text
	if json.Unmarshal(b, &list) == nil {
		for _, s := range list[:min(len(list), maxTexts)] {
			*t = append(*t, string(s))
		}
	}
	return nil
}

// Group returns a group's copy of j: j with no other group.
func (j *Job) Group(name string) *Job {
	only := *j
	only.TaskGroups = nil
	for _, g := range j.TaskGroups {
		if g.Name == name {
			only.TaskGroups = []Group{g}
		}
	}
	return &only
}

// JobStub is a job as the listing has it.
type JobStub struct {
	ID, ParentID, Name, Namespace, NodePool string
	Status                                  string
	Meta                                    map[string]string
	JobSummary                              *struct {
		Summary map[string]struct{ Queued, Running, Starting, Unknown int64 }
	}
	CreateIndex uint64
}

// Node is a node as the listing has it.
type Node struct {
	ID, Name, Datacenter, NodePool, NodeClass, Status string
	NodeResources                                     *NodeResources
}

// NodeResources are what a node has.
type NodeResources struct {
	Cpu struct { //nolint:revive // the name is Nomad's
		CpuShares     int64 //nolint:revive // the name is Nomad's
		TotalCpuCores int64 //nolint:revive // the name is Nomad's
	}
	Memory  struct{ MemoryMB int64 }
	Disk    struct{ DiskMB int64 }
	Devices []struct {
		Vendor, Type, Name string
		Instances          []struct{ ID string }
	}
}
