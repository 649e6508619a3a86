package run

import (
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// jobColumns are the columns that come from the job.
func jobColumns() []attribute {
	of := func(name, doc string, value func(*nomad.Job) string) attribute {
		return textColumn(name, doc, func(v *View) string {
			if v.Job == nil {
				return ""
			}
			return value(v.Job)
		})
	}
	meta := func(name, doc string, value func(*View) map[string]string) attribute {
		return newColumn(name, sdk.TypeMap, doc, func(v *View, _ Owner) sdk.Value { return sdk.StringMap(value(v)) })
	}
	owner := func(name, doc string, key func(Owner) string) attribute {
		return newColumn(name, sdk.TypeString, doc, func(v *View, o Owner) sdk.Value { return stringOrNull(v.jobMeta()[key(o)]) })
	}
	return []attribute{
		textColumn("job_id", "id of the job", func(v *View) string { return v.Alloc.JobID }),
		of("job_name", "name of the job", func(j *nomad.Job) string { return j.Name }),
		of("job_type", "type of the job: batch, service, system or sysbatch", func(j *nomad.Job) string { return j.Type }),
		of("parent_job", "job that a dispatched or periodic one comes from", func(j *nomad.Job) string { return j.ParentID }),
		newColumn("job_version", sdk.TypeInt, "version of the job", func(v *View, _ Owner) sdk.Value {
			if v.Job == nil {
				return sdk.Null()
			}
			return sdk.Int(int64(v.Job.Version))
		}),
		newColumn("priority", sdk.TypeInt, "priority of the job", func(v *View, _ Owner) sdk.Value {
			if v.Job == nil {
				return sdk.Null()
			}
			return sdk.Int(int64(v.Job.Priority))
		}),
		owner("owner", "owner of the job, from its meta", func(o Owner) string { return o.ID }),
		owner("owner_name", "name of the owner, from the job's meta", func(o Owner) string { return o.Name }),
		owner("owner_email", "address of the owner, from the job's meta", func(o Owner) string { return o.Email }),
		meta("meta", "meta of the job, for example job.meta[\"title\"]; a dispatched job has that of its dispatch too", (*View).jobMeta),
		meta("group_meta", "meta of the task group", func(v *View) map[string]string {
			if v.Job == nil || len(v.Job.TaskGroups) == 0 {
				return nil
			}
			return v.Job.TaskGroups[0].Meta
		}),
		meta("task_meta", "meta of the task", func(v *View) map[string]string { return v.taskSpec().Meta }),
		textColumn("driver", "driver of the task, for example docker", func(v *View) string { return v.taskSpec().Driver }),
		textColumn("task_user", "user that the task runs as, where the job says one", func(v *View) string { return v.taskSpec().User }),
		textColumn("image", "image of the container", func(v *View) string { return string(v.taskSpec().Config.Image) }),
		textColumn("command", "command of the task", func(v *View) string { return string(v.taskSpec().Config.Command) }),
		newColumn("args", sdk.TypeList, "arguments of the command", func(v *View, _ Owner) sdk.Value { return sdk.Strings(v.taskSpec().Config.Args...) }),
	}
}

func (v *View) jobMeta() map[string]string {
	if v.Job == nil {
		return nil
	}
	return v.Job.Meta
}

// taskSpec is the task's description, empty when it is not known.
func (v *View) taskSpec() nomad.Task {
	if t := v.findTask(); t != nil {
		return *t
	}
	return nomad.Task{}
}

// amountColumns are the columns of what the task was given.
func amountColumns() []attribute {
	number := func(name, doc string, value func(*View, *nomad.TaskResources) int64) attribute {
		return newColumn(name, sdk.TypeInt, doc, func(v *View, _ Owner) sdk.Value {
			r := v.taskResources()
			if r == nil {
				return sdk.Null()
			}
			return sdk.Int(value(v, r))
		})
	}
	return []attribute{
		number("cores", "reserved cores; 0 for a task that asked for MHz", func(_ *View, r *nomad.TaskResources) int64 { return int64(len(r.Cpu.ReservedCores)) }),
		number("cpu_mhz", "CPU in MHz; of a task with reserved cores, theirs", func(_ *View, r *nomad.TaskResources) int64 { return r.Cpu.CpuShares }),
		number("memory_mb", "memory in MB of 2^20 bytes", func(_ *View, r *nomad.TaskResources) int64 { return r.Memory.MemoryMB }),
		number("memory_max_mb", "memory that the task may use while others leave it, in MB; 0 where there is no such limit", func(_ *View, r *nomad.TaskResources) int64 { return r.Memory.MemoryMaxMB }),
		number("disk_mb", "disk of the allocation in MB, with its leading task; 0 for the others", func(v *View, _ *nomad.TaskResources) int64 {
			if v.Task == v.leadingTask() {
				return v.Alloc.AllocatedResources.Shared.DiskMB
			}
			return 0
		}),
		newColumn("devices", sdk.TypeMap, "devices of all kinds by vendor/type/model", func(v *View, _ Owner) sdk.Value {
			if v.taskResources() == nil {
				return sdk.Null()
			}
			return countMap(sumDevices(v.taskResources(), func(d nomad.Device) string { return d.Vendor + "/" + d.Type + "/" + d.Name }))
		}),
	}
}

// sumDevices adds up devices by key; those without one are left out.
func sumDevices(r *nomad.TaskResources, key func(nomad.Device) string) map[string]int64 {
	out := map[string]int64{}
	for _, d := range r.Devices {
		if k := key(d); k != "" {
			out[k] += int64(len(d.DeviceIDs))
		}
	}
	return out
}

func countMap(m map[string]int64) sdk.Value {
	out := make(map[string]sdk.Value, len(m))
	for k, n := range m {
		out[k] = sdk.Int(n)
	}
	return sdk.Map(out)
}

// taskResources is what the task was given; nil when it is not known.
func (v *View) taskResources() *nomad.TaskResources {
	if v.Alloc.AllocatedResources == nil {
		return nil
	}
	return v.Alloc.AllocatedResources.Tasks[v.Task]
}

// leadingTask is the task that the disk of the allocation goes with: the leader, or the
// first main task, or the first.
func (e *Entry) leadingTask() string {
	if e.Job != nil {
		for _, g := range e.Job.TaskGroups {
			for _, good := range []func(*nomad.Task) bool{
				func(t *nomad.Task) bool { return t.Leader },
				func(t *nomad.Task) bool { return t.Lifecycle == nil },
			} {
				if i := slices.IndexFunc(g.Tasks, func(t nomad.Task) bool { return good(&t) }); i >= 0 {
					return g.Tasks[i].Name
				}
			}
		}
	}
	names := slices.Sorted(maps.Keys(e.Alloc.AllocatedResources.Tasks))
	for _, name := range names {
		if e.Alloc.AllocatedResources.TaskLifecycles[name] == nil {
			return name
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// endColumns are the columns about how it went.
func endColumns() []attribute {
	number := func(name, doc string, value func(*Exit) int) attribute {
		return newColumn(name, sdk.TypeInt, doc, func(v *View, _ Owner) sdk.Value {
			if v.Exit == nil {
				return sdk.Null()
			}
			return sdk.Int(int64(value(v.Exit)))
		})
	}
	return []attribute{
		textColumn("state", "running, complete, failed, oom, killed (Nomad ended it), lost (Nomad gave it up) or forgotten (Nomad knows it no longer)", (*View).state),
		number("exit_code", "exit code; null while it runs and when unknown", func(x *Exit) int { return x.Code }),
		number("exit_signal", "signal that ended it, 0 for none", func(x *Exit) int { return x.Signal }),
		newColumn("oom", sdk.TypeBool, "whether it was ended for want of memory", func(v *View, _ Owner) sdk.Value { return sdk.Bool(v.Exit != nil && v.Exit.OOM) }),
		textColumn("client_status", "state of the allocation as its node says: pending, running, complete, failed, lost or unknown", func(v *View) string { return v.Alloc.ClientStatus }),
		textColumn("desired_status", "what Nomad wants of the allocation: run, stop or evict", func(v *View) string { return v.Alloc.DesiredStatus }),
		textColumn("description", "why the allocation is in its state", func(v *View) string {
			if v.Alloc.DesiredDescription != "" {
				return v.Alloc.DesiredDescription
			}
			return v.Alloc.ClientDescription
		}),
	}
}

// state is how the run went, in one word.
func (v *View) state() string {
	switch {
	case v.Stop.IsZero():
		return "running"
	case v.Exit != nil && v.Exit.OOM:
		return "oom"
	case v.Killed:
		return "killed"
	case v.Exit != nil && v.Exit.Code == 0 && v.Exit.Signal == 0:
		return "complete"
	case v.Exit != nil:
		return "failed"
	case v.Purged:
		return "killed"
	case !v.GoneAt.IsZero():
		return "forgotten"
	case !v.LostAt.IsZero() || !v.AwayAt.IsZero():
		return "lost"
	case v.Alloc.ClientStatus == nomad.Complete:
		return "complete"
	}
	return "failed"
}
