package job

import (
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// textAttributes are the columns that are passed on as sacct writes them.
func textAttributes() []attribute {
	var out []attribute
	for _, c := range []struct{ name, doc string }{
		{"JobID", "the job's id as sacct shows it: 7, 7_3 for an array task, 7+1 for a part of a heterogeneous job"},
		{"JobIDRaw", "the job's id without array and heterogeneous notation"},
		{"DBIndex", "slurmdbd's number of the row; text, as it can be greater than an int"},
		{"SLUID", "Slurm's unique id of the run (since 24.11)"},
		{"JobName", "name of the job"},
		{"User", "user name"},
		{"Group", "the user's group"},
		{"Account", "account that the job is charged to"},
		{"Partition", "partition"},
		{"QOS", "quality of service"},
		{"QOSREQ", "quality of service that was asked for (since 24.11)"},
		{"Cluster", "name of the cluster"},
		{"State", "state as sacct writes it, for example \"CANCELLED by 1002\"; see state"},
		{"Reason", "why the job last waited"},
		{"Flags", "flags, joined by commas"},
		{"Comment", "the user's comment"},
		{"AdminComment", "the administrator's comment"},
		{"SystemComment", "the system's comment"},
		{"Extra", "the job's extra text (since 23.11)"},
		{"Licenses", "licenses (since 23.02)"},
		{"Constraints", "features that were asked for"},
		{"Container", "path of the OCI bundle"},
		{"Reservation", "name of the reservation"},
		{"WCKey", "workload characterization key"},
		{"McsLabel", "MCS label"},
		{"NodeList", "nodes in Slurm's short form, for example n[1-2]"},
		{"FailedNode", "node that made the job fail (since 24.05)"},
		{"BlockID", "block of a Blue Gene"},
		{"WorkDir", "working directory"},
		{"SubmitLine", "command line of the submission (since 20.11)"},
		{"StdErr", "file of standard error (since 24.05)"},
		{"StdIn", "file of standard input (since 24.05)"},
		{"StdOut", "file of standard output (since 24.05)"},
		{"AllocTRES", "allocated resources as sacct writes them; see alloc_tres"},
		{"ReqTRES", "requested resources as sacct writes them; see req_tres"},
		{"ReqMem", "requested memory as sacct writes it, for example 600M; see memory_mb"},
		{"ReqCPUFreqMin", "lowest CPU frequency that was asked for"},
		{"ReqCPUFreqMax", "highest CPU frequency that was asked for"},
		{"ReqCPUFreqGov", "frequency governor that was asked for"},
		{"ExitCode", "exit code and signal as code:signal; see exit_code and exit_signal"},
		{"DerivedExitCode", "highest exit code of the steps, as code:signal"},
		{"Timelimit", "time limit as sacct writes it, also UNLIMITED or Partition_Limit; see time_limit_seconds"},
	} {
		out = append(out, attribute{sdk.Attribute{Name: c.name, Type: sdk.TypeString, Doc: c.doc}, []string{c.name},
			func(r *Run) (sdk.Value, error) {
				s, ok := r.textOf(c.name)
				if !ok {
					return sdk.Null(), nil
				}
				return sdk.String(s), nil
			}})
	}
	return out
}

// numberAttributes are the columns with a whole number. Those that grow while a run goes
// on are null until it has ended, so that a running job is not a new one at
// every look.
func numberAttributes() []attribute {
	var out []attribute
	for _, c := range []struct {
		name, doc string
		grows     bool
		other     string // the name in older versions
	}{
		{name: "UID", doc: "the user's number"},
		{name: "GID", doc: "the group's number"},
		{name: "AllocCPUS", doc: "allocated CPUs; the requested ones while the job waits"},
		{name: "NCPUS", doc: "allocated CPUs, as AllocCPUS"},
		{name: "ReqCPUS", doc: "requested CPUs"},
		{name: "AllocNodes", doc: "allocated nodes"},
		{name: "NNodes", doc: "allocated nodes, or requested ones before the start"},
		{name: "ReqNodes", doc: "requested nodes"},
		{name: "Priority", doc: "priority"},
		{name: "AssocID", doc: "number of the association"},
		{name: "QOSRAW", doc: "number of the quality of service"},
		{name: "WCKeyID", doc: "number of the workload characterization key"},
		{name: "ReservationId", doc: "number of the reservation"},
		{name: "Restarts", doc: "how often the job was requeued before this run (since 24.05)"},
		{name: "ElapsedRaw", doc: "seconds of the run without those suspended; null while it runs", grows: true},
		{name: "CPUTimeRAW", doc: "allocated CPUs times elapsed time, in CPU seconds; null while it runs", grows: true},
		{name: "PlannedCPURAW", doc: "CPU seconds that were reserved for the job while it waited", other: "ResvCPURAW"},
		{name: "TimelimitRaw", doc: "time limit in minutes; null for none and for the partition's"},
	} {
		out = append(out, attribute{sdk.Attribute{Name: c.name, Type: sdk.TypeInt, Doc: c.doc}, firstNamed(c.name, c.other),
			func(r *Run) (sdk.Value, error) {
				if c.grows && !r.Ended() {
					return sdk.Null(), nil
				}
				return numberValue(r.countOf(eitherText(r, c.name, c.other)))
			}})
	}
	return out
}

func firstNamed(name, other string) []string {
	if other == "" {
		return []string{name}
	}
	return []string{name, other}
}

func eitherText(r *Run, name, other string) string {
	if _, ok := r.textOf(name); !ok && other != "" {
		return other
	}
	return name
}

// timeAttributes are points in time, and durations in seconds.
func timeAttributes() []attribute {
	var out []attribute
	for _, c := range []struct{ name, doc string }{
		{"Submit", "when this run was submitted; of a requeued run, when it was requeued"},
		{"Eligible", "when it could have started; null when it never could"},
		{"Start", "when it started"},
		{"End", "when it ended; null while it runs"},
	} {
		out = append(out, attribute{sdk.Attribute{Name: c.name, Type: sdk.TypeTime, Doc: c.doc}, []string{c.name},
			func(r *Run) (sdk.Value, error) { t, err := r.timeOf(c.name); return sdk.Time(t), err }})
	}
	for _, c := range []struct{ name, other, doc string }{
		{"Suspended", "", "time that the job was suspended, in seconds; see suspended_seconds"},
		{"Planned", "Reserved", "time that the job waited after it could have started, in seconds"},
	} {
		out = append(out, attribute{sdk.Attribute{Name: c.name, Type: sdk.TypeFloat, Doc: c.doc}, firstNamed(c.name, c.other),
			func(r *Run) (sdk.Value, error) {
				m, known, err := r.durationOf(eitherText(r, c.name, c.other))
				if !known || err != nil {
					return sdk.Null(), err
				}
				return sdk.Float(m.Float()), nil
			}})
	}
	return out
}

// cpuTimes are null where TotalCPU is 0: then nothing was measured.
func cpuTimes() []attribute {
	var out []attribute
	for _, c := range []struct{ name, doc string }{
		{"TotalCPU", "CPU time that the job used, in seconds; null when it was not measured; see cpu_seconds"},
		{"UserCPU", "CPU time in user mode, in seconds; null where TotalCPU is"},
		{"SystemCPU", "CPU time in the kernel, in seconds; null where TotalCPU is"},
	} {
		out = append(out, attribute{sdk.Attribute{Name: c.name, Type: sdk.TypeFloat, Doc: c.doc}, []string{c.name, "TotalCPU"},
			func(r *Run) (sdk.Value, error) {
				total, _, err := r.durationOf("TotalCPU")
				if err != nil || total == 0 {
					return sdk.Null(), err
				}
				m, known, err := r.durationOf(c.name)
				if !known || err != nil {
					return sdk.Null(), err
				}
				return sdk.Float(m.Float()), nil
			}})
	}
	return out
}

// largestAttributes are the columns of steps, of which the largest value counts.
func largestAttributes() []attribute {
	docs := map[string]string{
		"MaxRSS":       "largest resident memory of a task, in bytes; as max_rss_bytes",
		"MaxVMSize":    "largest virtual memory of a task, in bytes; null when it was not measured, as under cgroup/v2",
		"MaxPages":     "most page faults of a task",
		"MaxDiskRead":  "most bytes that a task read",
		"MaxDiskWrite": "most bytes that a task wrote",
		"NTasks":       "tasks of the step that had most of them",
	}
	var out []attribute
	for _, name := range largestColumns() {
		out = append(out, attribute{sdk.Attribute{Name: name, Type: sdk.TypeInt, Doc: docs[name]}, []string{name, "MaxRSS"}, // which tells whether it was sampled
			func(r *Run) (sdk.Value, error) { return r.largestOfSteps(name) }})
	}
	return out
}

// largestOfSteps is the greatest value over the steps, or that of the job's row.
func (r *Run) largestOfSteps(column string) (sdk.Value, error) {
	if s := r.steps.largestOf(column); s.known || s.err != nil {
		return s.sumValue()
	}
	n, known, err := r.sizeOf(column)
	return numberValue(n, wasMeasured(n, known), err)
}

func numberValue(n int64, known bool, err error) (sdk.Value, error) {
	if err != nil || !known {
		return sdk.Null(), err
	}
	return sdk.Int(n), nil
}
