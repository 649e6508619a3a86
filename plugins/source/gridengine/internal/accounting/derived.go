package accounting

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	spelling "github.com/bursar-accounting/bursar/proto/text"
)

// derivedAttributes are the attributes that are computed.
func (s *Site) derivedAttributes() []attribute {
	return append(identityAttributes(), s.amountAttributes()...)
}

func identityAttributes() []attribute {
	return []attribute{
		stringAttribute("id", "id of the run: \"<job>[.<array task>]-<start>[-<pe_taskid>]\", the start as it is in the file", (*Line).ID),
		stringAttribute("qualified_id", "id, with the cell and a dash before it when several cells are configured", (*Line).QualifiedID),
		stringAttribute("cell", "the cell, as the configuration names it", func(l *Line) string { return l.Cell }),
		stringAttribute("job_id", "number of the job, with a dot and the number in the array: 7 or 7.3", (*Line).jobID),
		intAttribute("array_task_id", "number in the array; null for other jobs", func(l *Line) (int64, bool, error) { return l.Task, l.Task > 0, nil }),
		{sdk.Attribute{Name: "slave", Type: sdk.TypeBool, Doc: "the line is of a slave task of a parallel job, whose slots are counted in the line of the job"},
			func(l *Line) (sdk.Value, error) { return sdk.Bool(l.IsSlave()), nil }},
		textAttribute("state", "how the run ended: COMPLETED, FAILED, KILLED, CANCELLED, TIMEOUT or REQUEUED", func(l *Line) (string, error) { return l.State(), l.readError(failed, exitStatus) }),
		textAttribute("failure", "what failed means, as qacct prints it; null when the run did not fail", func(l *Line) (string, error) { return l.Failure(), l.readError(failed) }),
		intAttribute("exit_signal", "signal that ended the run, 0 for none", func(l *Line) (int64, bool, error) { return l.Signal(), true, l.readError(failed, exitStatus) }),
		{sdk.Attribute{Name: "requests", Type: sdk.TypeMap, Doc: "what the job asked for by -l, for example { h_rt = \"600\", h_vmem = \"2G\" }"},
			func(l *Line) (sdk.Value, error) { return sdk.StringMap(l.requestMap()), nil }},
		{sdk.Attribute{Name: "extra", Type: sdk.TypeList, Doc: "columns behind ioops, as far as the line has any"},
			func(l *Line) (sdk.Value, error) { return sdk.Strings(l.extra...), nil }},
		intAttribute("columns", "how many columns the line has", func(l *Line) (int64, bool, error) { return int64(l.count), true, nil }),
	}
}

func (l *Line) jobID() string {
	if l.Task > 0 {
		return l.fields[jobNumber] + "." + l.fields[taskNumber]
	}
	return l.fields[jobNumber]
}

// Site says how jobs of a site ask for what they need.
type Site struct {
	Memory, GPUs Ask
	GPUModels    []string // resources by which jobs ask for a model of GPU; the first that a job asked for counts
}

// Ask says how jobs ask for something.
type Ask struct {
	Requests []string // resources by which it is; the first that a job asked for counts
	PerJob   bool     // the amount is for the whole job, not for each slot
	PerHost  bool     // the amount is for each host, of which the line does not have the number
	OneHost  []string // parallel environments whose jobs run on one host
}

func (s *Site) amountAttributes() []attribute {
	return []attribute{
		intAttribute("cores", "slots of the run; 0 for slave tasks, whose slots are in the line of the job", func(l *Line) (int64, bool, error) { return l.coreCount(), true, l.readError(slots) }),
		intAttribute("cpu_seconds", "CPU seconds that were used, rounded half to even: cpu", func(l *Line) (int64, bool, error) { return l.roundedColumn(cpu, 1) }),
		intAttribute("memory_mb", "requested memory of the whole job in MB of 2^20 bytes; null when none was requested, and for slave tasks", func(l *Line) (int64, bool, error) {
			n, ok, err := s.Memory.memoryBytes(l)
			return (n + 1<<19) >> 20, ok, err
		}),
		intAttribute("req_memory_bytes", "requested memory of the whole job in bytes", s.Memory.memoryBytes),
		intAttribute("gpus", "requested GPUs of the whole job; null when none were requested, and for slave tasks", s.GPUs.unitCount),
		stringAttribute("gpu_model", "requested model of the GPUs; null when none or no single one was requested", s.gpuModel),
		intAttribute("max_rss_bytes", "largest resident memory in bytes: maxrss where there is one, else ru_maxrss, which is that of the largest process", (*Line).maxRSS),
		intAttribute("max_vmem_bytes", "largest virtual memory in bytes: maxvmem", func(l *Line) (int64, bool, error) { return l.roundedColumn(maxvmem, 1) }),
		intAttribute("io_bytes", "data moved in bytes of io, whose GB are 2^30 bytes", func(l *Line) (int64, bool, error) { return l.roundedColumn(io, 1<<30) }),
		intAttribute("runtime_seconds", "seconds from start to end", func(l *Line) (int64, bool, error) { return int64(l.End.Sub(l.Start).Seconds()), true, nil }),
		intAttribute("wait_seconds", "seconds from submission to start", (*Line).waitSeconds),
		intAttribute("h_rt_seconds", "run time that the job asked for, in seconds", func(l *Line) (int64, bool, error) { return l.requestAmount("h_rt", Seconds) }),
		intAttribute("h_vmem_bytes", "h_vmem that the job asked for, in bytes, as it is written: usually for a slot", func(l *Line) (int64, bool, error) { return l.requestAmount("h_vmem", Bytes) }),
	}
}

// coreCount is the number of slots, once for each job.
func (l *Line) coreCount() int64 {
	if l.IsSlave() {
		return 0
	}
	return l.slots
}

// requestMap are the requests of the job.
func (l *Line) requestMap() map[string]string {
	if l.requests == nil {
		l.requests = Requests(l.fieldOrEmpty(category))
		if l.requests == nil {
			l.requests = map[string]string{}
		}
	}
	return l.requests
}

func (l *Line) requestOf(name string) string {
	if l.fieldOrEmpty(category) == "" {
		return ""
	}
	return l.requestMap()[name]
}

// requestAmount is the amount of a resource that the job asked for; not known without, or for
// INFINITY.
func (l *Line) requestAmount(name string, read func(string) (int64, bool)) (n int64, known bool, err error) {
	s := l.requestOf(name)
	if n, known = read(s); !known && s != "" && !strings.EqualFold(s, "INFINITY") {
		err = fmt.Errorf("column category: %s=%s is not an amount", name, s)
	}
	return n, known, err
}

// memoryBytes is the memory that the job asked for.
func (a *Ask) memoryBytes(l *Line) (int64, bool, error) {
	if l.IsSlave() {
		return 0, false, nil
	}
	for _, name := range a.Requests {
		n, known, err := l.requestAmount(name, Bytes)
		switch {
		case err != nil:
			return 0, false, err
		case !known:
			continue
		}
		times, err := a.multiplier(l)
		if err != nil {
			return 0, false, err
		}
		if n > (1<<62)/times {
			return 0, false, fmt.Errorf("column category: %s=%s for %d slots is too much", name, l.requestOf(name), times)
		}
		return n * times, true, nil
	}
	return 0, false, nil
}

// multiplier is how often the job has what it asked for.
func (a *Ask) multiplier(l *Line) (int64, error) {
	pe := l.fieldOrEmpty(grantedPE)
	switch {
	case a.PerJob, a.PerHost && (pe == "" || slices.Contains(a.OneHost, pe)):
		return 1, nil
	case a.PerHost && l.slots > 1:
		return 0, fmt.Errorf("column granted_pe: unknown number of hosts of a job in %q: add it to one_host_pe where its jobs run on one host", pe)
	}
	return max(1, l.slots), l.readError(slots)
}

// unitCount is what the job asked for by number, a fraction for each slot among them. The error
// names a request that is not a number, as of a complex that is a truth value or a text, and
// one of which the job has no whole number.
func (a *Ask) unitCount(l *Line) (int64, bool, error) {
	if l.IsSlave() {
		return 0, false, nil
	}
	for _, name := range a.Requests {
		s := l.requestOf(name)
		if s == "" {
			continue
		}
		n, ok := new(big.Rat).SetString(s)
		if strings.Trim(s, "0123456789.") != "" || len(s) > 18 || !ok {
			return 0, false, fmt.Errorf("column category: %s=%s is not a number", name, s)
		}
		times, err := a.multiplier(l)
		if err != nil {
			return 0, false, err
		}
		n.Mul(n, big.NewRat(times, 1))
		if !n.IsInt() || !n.Num().IsInt64() {
			return 0, false, fmt.Errorf("column category: %s=%s times %d is not a whole number", name, s, times)
		}
		return n.Num().Int64(), true, nil
	}
	return 0, false, nil
}

// gpuModel is the model of GPU that the job asked for; "" where it may have got another: it
// did not ask, or for a pattern, which others match too.
func (s *Site) gpuModel(l *Line) string {
	if n, known, err := s.GPUs.unitCount(l); n == 0 || !known || err != nil {
		return ""
	}
	for _, name := range s.GPUModels {
		if model := l.requestOf(name); model != "" {
			if model == "TRUE" || strings.ContainsAny(model, "*?[]|&!()") {
				return ""
			}
			return model
		}
	}
	return ""
}

// roundedColumn is a column times a unit.
func (l *Line) roundedColumn(column int, unit float64) (int64, bool, error) {
	s := l.fields[column]
	if s == "" || s == none {
		return 0, false, nil
	}
	f, err := parseDecimal(s)
	n := int64(0)
	if err == nil {
		n, err = spelling.RoundToEven(f * unit)
	}
	if err != nil {
		return 0, false, fmt.Errorf("column %s: %w", Name(column), err)
	}
	measured, err := l.isMeasured(column)
	return n, measured, err
}

func (l *Line) maxRSS() (int64, bool, error) {
	if n, known, err := l.roundedColumn(maxrss, 1); known || err != nil {
		return n, known, err
	}
	return l.roundedColumn(ruMaxrss, 1024)
}

func (l *Line) waitSeconds() (int64, bool, error) {
	s := l.fields[submissionTime]
	if s == "" || s == none {
		return 0, false, nil
	}
	n, err := parseInteger(s)
	if err == nil && (n > lastTime || !l.millis && n >= firstMilli) {
		err = fmt.Errorf("%q is not a time", s)
	}
	if err != nil || n == 0 {
		return 0, false, err
	}
	return max(0, int64(l.Start.Sub(l.toTime(n)).Seconds())), true, nil
}
