package accounting

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// derived are the attributes that are computed.
func (s *Site) derived() []attribute {
	return append(identity(), s.amounts()...)
}

func identity() []attribute {
	return []attribute{
		str("id", "id of the run: \"<job>[.<array task>]-<start>[-<pe_taskid>]\", the start as it is in the file", (*Line).ID),
		str("qualified_id", "id, with the cell and a dash before it when several cells are configured", (*Line).QualifiedID),
		str("cell", "the cell, as the configuration names it", func(l *Line) string { return l.Cell }),
		str("job_id", "number of the job, with a dot and the number in the array: 7 or 7.3", (*Line).jobID),
		num("array_task_id", "number in the array; null for other jobs", func(l *Line) (int64, bool, error) { return l.Task, l.Task > 0, nil }),
		{sdk.Attribute{Name: "slave", Type: sdk.TypeBool, Doc: "the line is of a slave task of a parallel job, whose slots are counted in the line of the job"},
			func(l *Line) (sdk.Value, error) { return sdk.Bool(l.IsSlave()), nil }},
		told("state", "how the run ended: COMPLETED, FAILED, KILLED, CANCELLED, TIMEOUT or REQUEUED", func(l *Line) (string, error) { return l.State(), l.readable(failed, exitStatus) }),
		told("failure", "what failed means, as qacct prints it; null when the run did not fail", func(l *Line) (string, error) { return l.Failure(), l.readable(failed) }),
		num("exit_signal", "signal that ended the run, 0 for none", func(l *Line) (int64, bool, error) { return l.Signal(), true, l.readable(failed, exitStatus) }),
		{sdk.Attribute{Name: "requests", Type: sdk.TypeMap, Doc: "what the job asked for by -l, for example { h_rt = \"600\", h_vmem = \"2G\" }"},
			func(l *Line) (sdk.Value, error) { return sdk.StringMap(l.asked()), nil }},
		{sdk.Attribute{Name: "extra", Type: sdk.TypeList, Doc: "columns behind ioops, as far as the line has any"},
			func(l *Line) (sdk.Value, error) { return sdk.Strings(l.extra...), nil }},
		num("columns", "how many columns the line has", func(l *Line) (int64, bool, error) { return int64(l.count), true, nil }),
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

func (s *Site) amounts() []attribute {
	return []attribute{
		num("cores", "slots of the run; 0 for slave tasks, whose slots are in the line of the job", func(l *Line) (int64, bool, error) { return l.cores(), true, l.readable(slots) }),
		num("cpu_seconds", "CPU seconds that were used, rounded half to even: cpu", func(l *Line) (int64, bool, error) { return l.rounded(cpu, 1) }),
		num("memory_mb", "requested memory of the whole job in MB of 2^20 bytes; null when none was requested, and for slave tasks", func(l *Line) (int64, bool, error) {
			n, ok, err := s.Memory.bytes(l)
			return (n + 1<<19) >> 20, ok, err
		}),
		num("req_memory_bytes", "requested memory of the whole job in bytes", s.Memory.bytes),
		num("gpus", "requested GPUs of the whole job; null when none were requested, and for slave tasks", s.GPUs.units),
		str("gpu_model", "requested model of the GPUs; null when none or no single one was requested", s.gpuModel),
		num("max_rss_bytes", "largest resident memory in bytes: maxrss where there is one, else ru_maxrss, which is that of the largest process", (*Line).rss),
		num("max_vmem_bytes", "largest virtual memory in bytes: maxvmem", func(l *Line) (int64, bool, error) { return l.rounded(maxvmem, 1) }),
		num("io_bytes", "data moved in bytes of io, whose GB are 2^30 bytes", func(l *Line) (int64, bool, error) { return l.rounded(io, 1<<30) }),
		num("runtime_seconds", "seconds from start to end", func(l *Line) (int64, bool, error) { return int64(l.End.Sub(l.Start).Seconds()), true, nil }),
		num("wait_seconds", "seconds from submission to start", (*Line).waited),
		num("h_rt_seconds", "run time that the job asked for, in seconds", func(l *Line) (int64, bool, error) { return l.asks("h_rt", Seconds) }),
		num("h_vmem_bytes", "h_vmem that the job asked for, in bytes, as it is written: usually for a slot", func(l *Line) (int64, bool, error) { return l.asks("h_vmem", Bytes) }),
	}
}

// cores are the slots, once for each job.
func (l *Line) cores() int64 {
	if l.IsSlave() {
		return 0
	}
	return l.slots
}

// asked are the requests of the job.
func (l *Line) asked() map[string]string {
	if l.requests == nil {
		l.requests = Requests(l.field(category))
		if l.requests == nil {
			l.requests = map[string]string{}
		}
	}
	return l.requests
}

func (l *Line) request(name string) string {
	if l.field(category) == "" {
		return ""
	}
	return l.asked()[name]
}

// asks is the amount of a resource that the job asked for; not known without, or for
// INFINITY.
func (l *Line) asks(name string, read func(string) (int64, bool)) (n int64, known bool, err error) {
	s := l.request(name)
	if n, known = read(s); !known && s != "" && !strings.EqualFold(s, "INFINITY") {
		err = fmt.Errorf("column category: %s=%s is not an amount", name, s)
	}
	return n, known, err
}

// bytes is the memory that the job asked for.
func (a *Ask) bytes(l *Line) (int64, bool, error) {
	if l.IsSlave() {
		return 0, false, nil
	}
	for _, name := range a.Requests {
		n, known, err := l.asks(name, Bytes)
		switch {
		case err != nil:
			return 0, false, err
		case !known:
			continue
		}
		times, err := a.times(l)
		if err != nil {
			return 0, false, err
		}
		if n > (1<<62)/times {
			return 0, false, fmt.Errorf("column category: %s=%s for %d slots is too much", name, l.request(name), times)
		}
		return n * times, true, nil
	}
	return 0, false, nil
}

// times is how often the job has what it asked for.
func (a *Ask) times(l *Line) (int64, error) {
	pe := l.field(grantedPE)
	switch {
	case a.PerJob, a.PerHost && (pe == "" || slices.Contains(a.OneHost, pe)):
		return 1, nil
	case a.PerHost && l.slots > 1:
		return 0, fmt.Errorf("column granted_pe: unknown number of hosts of a job in %q: add it to one_host_pe where its jobs run on one host", pe)
	}
	return max(1, l.slots), l.readable(slots)
}

// units are what the job asked for by number, a fraction for each slot among them. The error
// names a request that is not a number, as of a complex that is a truth value or a text, and
// one of which the job has no whole number.
func (a *Ask) units(l *Line) (int64, bool, error) {
	if l.IsSlave() {
		return 0, false, nil
	}
	for _, name := range a.Requests {
		s := l.request(name)
		if s == "" {
			continue
		}
		n, ok := new(big.Rat).SetString(s)
		if strings.Trim(s, "0123456789.") != "" || len(s) > 18 || !ok {
			return 0, false, fmt.Errorf("column category: %s=%s is not a number", name, s)
		}
		times, err := a.times(l)
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
	if n, known, err := s.GPUs.units(l); n == 0 || !known || err != nil {
		return ""
	}
	for _, name := range s.GPUModels {
		if model := l.request(name); model != "" {
			if model == "TRUE" || strings.ContainsAny(model, "*?[]|&!()") {
				return ""
			}
			return model
		}
	}
	return ""
}

// rounded is a column times a unit.
func (l *Line) rounded(column int, unit float64) (int64, bool, error) {
	s := l.fields[column]
	if s == "" || s == none {
		return 0, false, nil
	}
	f, err := decimal(s)
	n := int64(0)
	if err == nil {
		n, err = rounded(f * unit)
	}
	if err != nil {
		return 0, false, fmt.Errorf("column %s: %w", Name(column), err)
	}
	measured, err := l.measured(column)
	return n, measured, err
}

func (l *Line) rss() (int64, bool, error) {
	if n, known, err := l.rounded(maxrss, 1); known || err != nil {
		return n, known, err
	}
	return l.rounded(ruMaxrss, 1024)
}

func (l *Line) waited() (int64, bool, error) {
	s := l.fields[submissionTime]
	if s == "" || s == none {
		return 0, false, nil
	}
	n, err := integer(s)
	if err == nil && (n > lastTime || !l.millis && n >= firstMilli) {
		err = fmt.Errorf("%q is not a time", s)
	}
	if err != nil || n == 0 {
		return 0, false, err
	}
	return max(0, int64(l.Start.Sub(l.time(n)).Seconds())), true, nil
}
