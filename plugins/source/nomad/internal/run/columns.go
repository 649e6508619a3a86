package run

import (
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// jobs are the columns that come from the job.
func jobs() []attribute {
	of := func(name, doc string, value func(*nomad.Job) string) attribute {
		return text(name, doc, func(v *View) string {
			if v.Job == nil {
				return ""
			}
			return value(v.Job)
		})
	}
	meta := func(name, doc string, value func(*View) map[string]string) attribute {
		return column(name, sdk.TypeMap, doc, func(v *View, _ Owner) sdk.Value { return sdk.StringMap(value(v)) })
	}
	owner := func(name, doc string, key func(Owner) string) attribute {
		return column(name, sdk.TypeString, doc, func(v *View, o Owner) sdk.Value { return some(v.meta()[key(o)]) })
	}
	return []attribute{
		text("job_id", "id of the job", func(v *View) string { return v.Alloc.JobID }),
		of("job_name", "name of the job", func(j *nomad.Job) string { return j.Name }),
		of("job_type", "type of the job: batch, service, system or sysbatch", func(j *nomad.Job) string { return j.Type }),
		of("parent_job", "job that a dispatched or periodic one comes from", func(j *nomad.Job) string { return j.ParentID }),
		column("job_version", sdk.TypeInt, "version of the job", func(v *View, _ Owner) sdk.Value {
			if v.Job == nil {
				return sdk.Null()
			}
			return sdk.Int(int64(v.Job.Version))
		}),
		column("priority", sdk.TypeInt, "priority of the job", func(v *View, _ Owner) sdk.Value {
			if v.Job == nil {
				return sdk.Null()
			}
			return sdk.Int(int64(v.Job.Priority))
		}),
		owner("owner", "owner of the job, from its meta", func(o Owner) string { return o.ID }),
		owner("owner_name", "name of the owner, from the job's meta", func(o Owner) string { return o.Name }),
		owner("owner_email", "address of the owner, from the job's meta", func(o Owner) string { return o.Email }),
		meta("meta", "meta of the job, for example job.meta[\"title\"]; a dispatched job has that of its dispatch too", (*View).meta),
		meta("group_meta", "meta of the task group", func(v *View) map[string]string {
			if v.Job == nil || len(v.Job.TaskGroups) == 0 {
				return nil
			}
			return v.Job.TaskGroups[0].Meta
		}),
		meta("task_meta", "meta of the task", func(v *View) map[string]string { return v.spec().Meta }),
		text("driver", "driver of the task, for example docker", func(v *View) string { return v.spec().Driver }),
		text("task_user", "user that the task runs as, where the job says one", func(v *View) string { return v.spec().User }),
		text("image", "image of the container", func(v *View) string { return string(v.spec().Config.Image) }),
		text("command", "command of the task", func(v *View) string { return string(v.spec().Config.Command) }),
		column("args", sdk.TypeList, "arguments of the command", func(v *View, _ Owner) sdk.Value { return sdk.Strings(v.spec().Config.Args...) }),
	}
}

func (v *View) meta() map[string]string {
	if v.Job == nil {
		return nil
	}
	return v.Job.Meta
}

// spec is the task's description, empty when it is not known.
func (v *View) spec() nomad.Task {
	if t := v.task(); t != nil {
		return *t
	}
	return nomad.Task{}
}

// amounts are what the task was given.
func amounts() []attribute {
	number := func(name, doc string, value func(*View, *nomad.TaskResources) int64) attribute {
		return column(name, sdk.TypeInt, doc, func(v *View, _ Owner) sdk.Value {
			r := v.given()
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
			if v.Task == v.leading() {
				return v.Alloc.AllocatedResources.Shared.DiskMB
			}
			return 0
		}),
		column("devices", sdk.TypeMap, "devices of all kinds by vendor/type/model", func(v *View, _ Owner) sdk.Value {
			if v.given() == nil {
				return sdk.Null()
			}
			return counts(sum(v.given(), func(d nomad.Device) string { return d.Vendor + "/" + d.Type + "/" + d.Name }))
		}),
	}
}

// sum adds up devices by key; those without one are left out.
func sum(r *nomad.TaskResources, key func(nomad.Device) string) map[string]int64 {
	out := map[string]int64{}
	for _, d := range r.Devices {
		if k := key(d); k != "" {
			out[k] += int64(len(d.DeviceIDs))
		}
	}
	return out
}

func counts(m map[string]int64) sdk.Value {
	out := make(map[string]sdk.Value, len(m))
	for k, n := range m {
		out[k] = sdk.Int(n)
	}
	return sdk.Map(out)
}

// given is what the task was given; nil when it is not known.
func (v *View) given() *nomad.TaskResources {
	if v.Alloc.AllocatedResources == nil {
		return nil
	}
	return v.Alloc.AllocatedResources.Tasks[v.Task]
}

// leading is the task that the disk of the allocation goes with: the leader, or the
// first main task, or the first.
func (e *Entry) leading() string {
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

// ends are the columns about how it went.
func ends() []attribute {
	number := func(name, doc string, value func(*Exit) int) attribute {
		return column(name, sdk.TypeInt, doc, func(v *View, _ Owner) sdk.Value {
			if v.Exit == nil {
				return sdk.Null()
			}
			return sdk.Int(int64(value(v.Exit)))
		})
	}
	return []attribute{
		text("state", "running, complete, failed, oom, killed (Nomad ended it), lost (Nomad gave it up) or forgotten (Nomad knows it no longer)", (*View).state),
		number("exit_code", "exit code; null while it runs and when unknown", func(x *Exit) int { return x.Code }),
		number("exit_signal", "signal that ended it, 0 for none", func(x *Exit) int { return x.Signal }),
		column("oom", sdk.TypeBool, "whether it was ended for want of memory", func(v *View, _ Owner) sdk.Value { return sdk.Bool(v.Exit != nil && v.Exit.OOM) }),
		text("client_status", "state of the allocation as its node says: pending, running, complete, failed, lost or unknown", func(v *View) string { return v.Alloc.ClientStatus }),
		text("desired_status", "what Nomad wants of the allocation: run, stop or evict", func(v *View) string { return v.Alloc.DesiredStatus }),
		text("description", "why the allocation is in its state", func(v *View) string {
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
