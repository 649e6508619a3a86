package main

import (
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// jobAttributes are the columns of a job.
func jobAttributes() []sdk.Attribute {
	return []sdk.Attribute{
		{Name: "id", Type: sdk.TypeString, Doc: "id of the run, as the source nomad gives it: \"<allocation>-main\" for the first start, with \"@<start in ms since 1970>\" for later ones"},
		{Name: "start", Type: sdk.TypeTime, Doc: "when the main task began"},
		{Name: "stop", Type: sdk.TypeTime, Doc: "when it ended; where that is not known, the best that the snapshots tell"},
		{Name: "submit", Type: sdk.TypeTime, Doc: "when the job was submitted"},
		{Name: "create", Type: sdk.TypeTime, Doc: "when its allocation was made, as far as the snapshots show: when the first one saw it waiting for its start, or when the job was submitted where none saw it wait; null: unknown"},
		{Name: "estimated", Type: sdk.TypeBool, Doc: "the end is not known: stop is when the run was last seen, or when the task was restarted"},
		{Name: "state", Type: sdk.TypeString, Doc: "the last status: running, dead, complete, failed, lost, down; restarted where the task was started again"},
		{Name: "namespace", Type: sdk.TypeString, Doc: "namespace, which stands for a virtual organization"},
		{Name: "owner", Type: sdk.TypeString, Doc: "owner in the job's meta"},
		{Name: "job_id", Type: sdk.TypeString, Doc: "id of the job"},
		{Name: "alloc_id", Type: sdk.TypeString, Doc: "id of the allocation"},
		{Name: "job_name", Type: sdk.TypeString, Doc: "name of the job"},
		{Name: "task", Type: sdk.TypeString, Doc: "name of the task, which is always main: the snapshots have no other"},
		{Name: "title", Type: sdk.TypeString, Doc: "title of the deployment"},
		{Name: "description", Type: sdk.TypeString, Doc: "description of the deployment"},
		{Name: "image", Type: sdk.TypeString, Doc: "image of the container"},
		{Name: "command", Type: sdk.TypeString, Doc: "command in the container"},
		{Name: "datacenter", Type: sdk.TypeString, Doc: "datacenter of the node"},
		{Name: "error", Type: sdk.TypeString, Doc: "error message, if there was one"},
		{Name: "cores", Type: sdk.TypeInt, Doc: "reserved cores of the main task"},
		{Name: "cpu_mhz", Type: sdk.TypeInt, Doc: "CPU share of the main task, MHz"},
		{Name: "memory_mb", Type: sdk.TypeInt, Doc: "memory of the main task, MiB"},
		{Name: "disk_mb", Type: sdk.TypeInt, Doc: "disk of the allocation, MiB"},
		{Name: "gpus", Type: sdk.TypeInt, Doc: "GPUs of the main task; the model is not in the snapshots"},
		{Name: "first_seen", Type: sdk.TypeTime, Doc: "time of the first snapshot with the run"},
		{Name: "last_seen", Type: sdk.TypeTime, Doc: "time of the last snapshot in which it ran; null: in none"},
		{Name: "sightings", Type: sdk.TypeInt, Doc: "number of snapshots with the run"},
	}
}

// defaultMapping makes a record of a run.
const defaultMapping = `
id     = "${source.label}-${job.id}"
start  = job.start
stop   = job.stop
submit = job.submit
state  = job.state
meta = {
  site_id    = source.label
  user_id    = job.owner
  group_id   = job.namespace
  namespace  = job.namespace
  job        = job.job_name
  job_name   = job.job_name # the key that all schedulers have
  task       = job.task
  datacenter = job.datacenter
  allocated  = job.create

  # No snapshot saw the end.
  estimated = job.estimated ? "true" : null
}
component "Cores" {
  amount = job.cores
  when   = try(job.cores > 0, false)
}
component "MHz" {
  amount = job.cpu_mhz
  when   = job.cpu_mhz != null
}
component "Memory" {
  amount = job.memory_mb
  when   = job.memory_mb != null
}
component "Disk" {
  amount = job.disk_mb
  when   = try(job.disk_mb > 0, false)
}
component "GPUs" {
  amount = job.gpus
  when   = try(job.gpus > 0, false)
}
`

// toJob gives a run as the daemon gets it.
func (r *run) toJob(create time.Time, excluded bool) sdk.Job {
	names := r.possibleIDs()
	job := r.jobNamed(names[0], create)
	job.Excluded = excluded
	for _, other := range names[1:] {
		job.Formerly = append(job.Formerly, r.jobNamed(other, create))
	}
	return job
}

// jobNamed is the run with an id.
func (r *run) jobNamed(id string, create time.Time) sdk.Job {
	stop, state := r.endAndState()
	unread := r.unread
	if r.undated != "" && create.IsZero() {
		unread = append(slices.Clip(unread), sdk.Unread{Attribute: "create", Problem: r.undated})
	}
	return sdk.Job{Run: id, Ended: true, Unread: unread, Values: []sdk.Value{
		sdk.String(id), sdk.Time(r.start), sdk.Time(stop), sdk.Time(r.submit), sdk.Time(create), sdk.Bool(r.isEstimated()), sdk.String(state),
		sdk.String(r.namespace), textOrNull(r.owner), sdk.String(r.job), sdk.String(r.alloc), textOrNull(r.name), sdk.String("main"), textOrNull(r.title), textOrNull(r.description),
		textOrNull(r.image), textOrNull(r.command), textOrNull(r.datacenter), textOrNull(r.problem),
		intOrNull(r.use.cores), intOrNull(r.use.mhz), intOrNull(r.use.memory), intOrNull(r.use.disk), intOrNull(r.use.gpus),
		sdk.Time(r.first), sdk.Time(r.last), sdk.Int(int64(r.seen)),
	}}
}

// textOrNull is null where there is none.
func textOrNull(s string) sdk.Value {
	if s == "" {
		return sdk.Null()
	}
	return sdk.String(s)
}

func intOrNull(n *int64) sdk.Value {
	if n == nil {
		return sdk.Null()
	}
	return sdk.Int(*n)
}

// inWindow reports whether a Collect wants a run that ended then.
func inWindow(w *sdk.Window, stop time.Time) bool { return w == nil || w.Holds(stop) }
