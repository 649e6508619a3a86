package job

import (
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// derivedAttributes are the attributes that are computed.
func derivedAttributes() []attribute {
	return append(identityAttributes(), amountAttributes()...)
}

func identityAttributes() []attribute {
	return []attribute{
		{sdk.Attribute{Name: "id", Type: sdk.TypeString, Doc: "id of the run: the JobID for a job's first run, \"<JobID>-<Submit in seconds since 1970>\" for later ones"}, nil,
			func(r *Run) (sdk.Value, error) { return sdk.String(r.Name()), nil }},
		{sdk.Attribute{Name: "cluster", Type: sdk.TypeString, Doc: "name of the cluster, as Cluster"}, []string{"Cluster"},
			func(r *Run) (sdk.Value, error) { return sdk.String(r.Cluster), nil }},
		{sdk.Attribute{Name: "qualified_id", Type: sdk.TypeString, Doc: "id, with the cluster and a dash before it when several clusters are configured; ids of two clusters never meet"}, nil,
			func(r *Run) (sdk.Value, error) { return sdk.String(r.qualifiedName()), nil }},
		{sdk.Attribute{Name: "user", Type: sdk.TypeString, Doc: "user name, or the user's number where the machine does not know the name"}, []string{"User", "UID"},
			func(r *Run) (sdk.Value, error) { return r.nameOr("User", "UID") }},
		{sdk.Attribute{Name: "group", Type: sdk.TypeString, Doc: "name of the user's group, or its number where the machine does not know the name"}, []string{"Group", "GID"},
			func(r *Run) (sdk.Value, error) { return r.nameOr("Group", "GID") }},
		{sdk.Attribute{Name: "state", Type: sdk.TypeString, Doc: "state in one word, for example CANCELLED"}, nil,
			func(r *Run) (sdk.Value, error) { return sdk.String(r.State.Word), nil }},
		{sdk.Attribute{Name: "cancelled_by", Type: sdk.TypeInt, Doc: "number of the user who cancelled the job"}, nil,
			func(r *Run) (sdk.Value, error) { return numberValue(r.State.By, r.State.By >= 0, nil) }},
		{sdk.Attribute{Name: "exit_code", Type: sdk.TypeInt, Doc: "exit code; null while it runs"}, []string{"ExitCode"},
			func(r *Run) (sdk.Value, error) { return r.exitValue(false) }},
		{sdk.Attribute{Name: "exit_signal", Type: sdk.TypeInt, Doc: "signal that ended the job, 0 for none; null while it runs"}, []string{"ExitCode"},
			func(r *Run) (sdk.Value, error) { return r.exitValue(true) }},
		{sdk.Attribute{Name: "array_job_id", Type: sdk.TypeInt, Doc: "id of the array; null for other jobs"}, nil,
			func(r *Run) (sdk.Value, error) { return numberValue(r.ID.Number, r.ID.Task >= 0, nil) }},
		{sdk.Attribute{Name: "array_task_id", Type: sdk.TypeInt, Doc: "number in the array; null for other jobs"}, nil,
			func(r *Run) (sdk.Value, error) { return numberValue(r.ID.Task, r.ID.Task >= 0, nil) }},
		{sdk.Attribute{Name: "het_job_id", Type: sdk.TypeInt, Doc: "id of the heterogeneous job; null for other jobs"}, nil,
			func(r *Run) (sdk.Value, error) { return numberValue(r.ID.Number, r.ID.Offset >= 0, nil) }},
		{sdk.Attribute{Name: "het_job_offset", Type: sdk.TypeInt, Doc: "number in the heterogeneous job; null for other jobs"}, nil,
			func(r *Run) (sdk.Value, error) { return numberValue(r.ID.Offset, r.ID.Offset >= 0, nil) }},
		{sdk.Attribute{Name: "flags", Type: sdk.TypeList, Doc: "Flags as a list"}, []string{"Flags"},
			func(r *Run) (sdk.Value, error) { return r.flagsValue(), nil }},
		{sdk.Attribute{Name: "steps", Type: sdk.TypeInt, Doc: "number of steps: batch, extern, interactive and numbered ones"}, nil,
			func(r *Run) (sdk.Value, error) { return sdk.Int(r.steps.count), nil }},
	}
}

func amountAttributes() []attribute {
	return []attribute{
		{sdk.Attribute{Name: "cpu_seconds", Type: sdk.TypeInt, Doc: "CPU time that the job used, in seconds, rounded half to even: TotalCPU, or the sum of the steps; null when neither was measured"}, []string{"TotalCPU"}, (*Run).cpuSeconds},
		{sdk.Attribute{Name: "memory_mb", Type: sdk.TypeInt, Doc: "requested memory of the whole job in MB of 2^20 bytes; the allocated memory when the request is not known or 0; null when neither is"},
			[]string{"ReqMem", "ReqTRES", "AllocTRES", "AllocCPUS"}, (*Run).memoryMB},
		{sdk.Attribute{Name: "req_memory_bytes", Type: sdk.TypeInt, Doc: "requested memory of the whole job in bytes; null when it is not known or 0, by which all memory of the nodes is meant"},
			[]string{"ReqMem", "ReqTRES", "AllocCPUS"}, func(r *Run) (sdk.Value, error) {
				n, known, err := r.requestedMemory()
				return numberValue(n, wasMeasured(n, known), err)
			}},
		{sdk.Attribute{Name: "alloc_memory_bytes", Type: sdk.TypeInt, Doc: "allocated memory of the whole job in bytes"},
			[]string{"AllocTRES"}, func(r *Run) (sdk.Value, error) { return numberValue(r.amountOf("AllocTRES", "mem")) }},
		{sdk.Attribute{Name: "max_rss_bytes", Type: sdk.TypeInt, Doc: "resident memory of the largest task of any step, in bytes"},
			[]string{"MaxRSS"}, func(r *Run) (sdk.Value, error) { return r.largestOfSteps("MaxRSS") }},
		{sdk.Attribute{Name: "max_rss_sum_bytes", Type: sdk.TypeInt, Doc: "sum over the steps of the resident memory of each one's largest task, in bytes"},
			[]string{"MaxRSS"}, func(r *Run) (sdk.Value, error) { return r.steps.rss.sumValue() }},
		{sdk.Attribute{Name: "total_rss_bytes", Type: sdk.TypeInt, Doc: "resident memory of all tasks of the largest step together, in bytes"},
			[]string{"TRESUsageInTot"}, func(r *Run) (sdk.Value, error) { return r.steps.tasks.sumValue() }},
		{sdk.Attribute{Name: "disk_read_bytes", Type: sdk.TypeInt, Doc: "bytes that all tasks of all steps read; null when no step was sampled"},
			[]string{"TRESUsageInTot", "MaxRSS"}, func(r *Run) (sdk.Value, error) { return r.steps.read.sumValue() }},
		{sdk.Attribute{Name: "disk_write_bytes", Type: sdk.TypeInt, Doc: "bytes that all tasks of all steps wrote; null when no step was sampled"},
			[]string{"TRESUsageOutTot", "MaxRSS"}, func(r *Run) (sdk.Value, error) { return r.steps.wrote.sumValue() }},
		{sdk.Attribute{Name: "gpus", Type: sdk.TypeInt, Doc: "allocated GPUs of all types; 0 also where Slurm does not account GPUs"}, []string{"AllocTRES"},
			func(r *Run) (sdk.Value, error) { n, _, err := r.gpusOf(); return numberValue(n, true, err) }},
		{sdk.Attribute{Name: "gpus_by_type", Type: sdk.TypeMap, Doc: "allocated GPUs by type, as far as Slurm reports types"}, []string{"AllocTRES"},
			func(r *Run) (sdk.Value, error) { _, m, err := r.gpusOf(); return countsValue(m, err) }},
		{sdk.Attribute{Name: "gpu_model", Type: sdk.TypeString, Doc: "types of the allocated GPUs, or of their shards and shares by MPS, as far as Slurm reports types; several are joined by commas"},
			[]string{"AllocTRES"}, (*Run).gpuModel},
		{sdk.Attribute{Name: "milli_gpus", Type: sdk.TypeInt, Doc: "thousandths of allocated cards: 1000 for a whole GPU, less for slices (MIG), shards and shares by MPS; null where it is not known how much of a card they are; 0 also where Slurm does not account GPUs"},
			[]string{"AllocTRES", "NodeList"}, (*Run).milliGPUs},
		{sdk.Attribute{Name: "partial_gpus", Type: sdk.TypeBool, Doc: "whether it has parts of cards: slices (MIG), shards or shares by MPS"},
			[]string{"AllocTRES", "NodeList"}, (*Run).partialGPUs},
		{sdk.Attribute{Name: "alloc_tres", Type: sdk.TypeMap, Doc: "allocated resources by name, for example cpu, mem (bytes), node, billing, gres/gpu"}, []string{"AllocTRES"},
			func(r *Run) (sdk.Value, error) { return r.resourcesValue("AllocTRES") }},
		{sdk.Attribute{Name: "req_tres", Type: sdk.TypeMap, Doc: "requested resources by name"}, []string{"ReqTRES"},
			func(r *Run) (sdk.Value, error) { return r.resourcesValue("ReqTRES") }},
		{sdk.Attribute{Name: "energy_joules", Type: sdk.TypeInt, Doc: "energy in joules that the job's nodes consumed while it ran, with that of other jobs on them; null when it was not measured"}, []string{"ConsumedEnergyRaw"}, (*Run).energyValue},
		{sdk.Attribute{Name: "runtime_seconds", Type: sdk.TypeInt, Doc: "seconds from start to stop, suspended ones included; null while it runs"}, nil,
			func(r *Run) (sdk.Value, error) { return numberValue(r.End.Unix()-r.Start.Unix(), r.Ended(), nil) }},
		{sdk.Attribute{Name: "suspended_seconds", Type: sdk.TypeInt, Doc: "seconds of the run in which it was suspended"}, []string{"Suspended"},
			func(r *Run) (sdk.Value, error) {
				m, known, err := r.durationOf("Suspended")
				return numberValue(m.Seconds(), known, err)
			}},
		{sdk.Attribute{Name: "wait_seconds", Type: sdk.TypeInt, Doc: "seconds from submission to start"}, nil,
			func(r *Run) (sdk.Value, error) {
				return numberValue(r.Start.Unix()-r.Submit, !r.Start.IsZero() && r.Submit > 0, nil)
			}},
		{sdk.Attribute{Name: "eligible_wait_seconds", Type: sdk.TypeInt, Doc: "seconds from when the job could have started to its start"}, []string{"Eligible"}, (*Run).eligibleWait},
		{sdk.Attribute{Name: "time_limit_seconds", Type: sdk.TypeInt, Doc: "time limit in seconds; null for UNLIMITED and for the partition's"}, []string{"Timelimit"},
			func(r *Run) (sdk.Value, error) {
				m, known, err := r.durationOf("Timelimit")
				return numberValue(m.Seconds(), known, err)
			}},
		{sdk.Attribute{Name: "node_count", Type: sdk.TypeInt, Doc: "allocated nodes"}, []string{"AllocNodes", "NNodes"}, (*Run).nodesValue},
	}
}

func (r *Run) qualifiedName() string {
	if r.Qualified {
		return r.Cluster + "-" + r.Name()
	}
	return r.Name()
}

func (r *Run) nameOr(name, number string) (sdk.Value, error) {
	if s, ok := r.textOf(name); ok && s != "" {
		return sdk.String(s), nil
	}
	s, ok := r.textOf(number)
	if _, _, err := r.countOf(number); err != nil || !ok {
		return sdk.Null(), err
	}
	return sdk.String(s), nil
}

func (r *Run) exitValue(signal bool) (sdk.Value, error) {
	code, sig, known, err := field.Exit(r.Text("ExitCode"))
	if err != nil {
		return sdk.Null(), fmt.Errorf("ExitCode: %w", err)
	}
	if !r.Ended() {
		return sdk.Null(), nil
	}
	if signal {
		return numberValue(sig, known, nil)
	}
	return numberValue(code, known, nil)
}

func (r *Run) flagsValue() sdk.Value {
	s, ok := r.textOf("Flags")
	if !ok {
		return sdk.Null()
	}
	if s == "" {
		return sdk.Strings()
	}
	return sdk.Strings(strings.Split(s, ",")...)
}

func (r *Run) cpuSeconds() (sdk.Value, error) {
	m, _, err := r.durationOf("TotalCPU")
	switch {
	case err != nil:
		return sdk.Null(), err
	case m > 0:
		return sdk.Int(m.Seconds()), nil
	}
	cpu := r.steps.cpu
	return numberValue(field.Micros(cpu.n).Seconds(), cpu.known, cpu.err)
}

func (r *Run) energyValue() (sdk.Value, error) {
	n, known, err := r.sizeOf("ConsumedEnergyRaw")
	if err != nil || wasMeasured(n, known) {
		return numberValue(n, known, err)
	}
	return r.steps.energy.sumValue()
}

func (r *Run) memoryMB() (sdk.Value, error) {
	n, known, err := r.requestedMemory()
	if err == nil && (!known || n == 0) {
		var m int64
		var ok bool
		if m, ok, err = r.amountOf("AllocTRES", "mem"); ok {
			n, known = m, ok
		}
	}
	return numberValue(field.MB(n), wasMeasured(n, known), err)
}

// requestedMemory returns the memory that was asked for, in bytes for the whole job.
func (r *Run) requestedMemory() (n int64, known bool, err error) {
	n, per, known, err := field.Memory(r.Text("ReqMem"))
	if err != nil {
		return 0, false, fmt.Errorf("ReqMem: %w", err)
	}
	if !known {
		return r.amountOf("ReqTRES", "mem")
	}
	times := int64(1)
	switch per {
	case field.PerNode:
		times, known, err = r.countOf("AllocNodes")
	case field.PerCore:
		times, known, err = r.countOf("AllocCPUS")
	}
	if times < 0 || (times > 0 && n > maxBytes/times) {
		return 0, false, fmt.Errorf("ReqMem: %s for %d is too much", r.Text("ReqMem"), times)
	}
	return n * times, known, err
}

const maxBytes = 1 << 62

func (r *Run) amountOf(column, name string) (n int64, known bool, err error) {
	list, err := r.tresOf(column)
	if err != nil {
		return 0, false, err
	}
	n, known, err = field.Amount(list, name)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %s: %w", column, name, err)
	}
	return n, known, nil
}

func (r *Run) gpusOf() (int64, map[string]int64, error) {
	list, err := r.tresOf("AllocTRES")
	if err != nil {
		return 0, nil, err
	}
	total, types, err := field.GPUs(list)
	if err != nil {
		return 0, nil, fmt.Errorf("AllocTRES: %w", err)
	}
	return total, types, nil
}

func countsValue(m map[string]int64, err error) (sdk.Value, error) {
	if err != nil {
		return sdk.Null(), err
	}
	out := make(map[string]sdk.Value, len(m))
	for k, n := range m {
		out[k] = sdk.Int(n)
	}
	return sdk.Map(out), nil
}

// resourcesValue makes a map of a TRES list; times stay text. An entry that cannot be read is
// left out.
func (r *Run) resourcesValue(column string) (sdk.Value, error) {
	list, err := r.tresOf(column)
	if err != nil {
		return sdk.Null(), err
	}
	out := make(map[string]sdk.Value, len(list))
	for _, e := range list {
		n, known, bad := field.Size(e.Value)
		_, _, odd := field.Duration(e.Value)
		switch {
		case known:
			out[e.Name] = sdk.Int(n)
		case bad != nil && odd == nil:
			out[e.Name] = sdk.String(e.Value)
		case bad != nil && err == nil:
			err = fmt.Errorf("%s: %s: %w", column, e.Name, bad)
		}
	}
	return sdk.Map(out), err
}

func (r *Run) eligibleWait() (sdk.Value, error) {
	eligible, err := r.timeOf("Eligible")
	return numberValue(r.Start.Unix()-eligible.Unix(), !eligible.IsZero() && !r.Start.IsZero(), err)
}

func (r *Run) nodesValue() (sdk.Value, error) {
	n, known, err := r.countOf("AllocNodes")
	if err == nil && !known {
		n, known, err = r.countOf("NNodes")
	}
	return numberValue(n, known, err)
}
