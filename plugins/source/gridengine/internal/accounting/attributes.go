package accounting

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// attribute is one line of the table.
type attribute struct {
	sdk.Attribute
	value func(*Line) (sdk.Value, error)
}

// Name is what accounting(5) calls a column.
func Name(column int) string { return fileColumns()[column].name }

// kind says how a column is written.
type kind uint8

const (
	text    kind = iota // NONE is null
	word                // as it is
	masked              // text in which colons are byte 255
	count               // a whole number
	number              // with a fraction
	instant             // seconds or milliseconds since 1970; 0 is null
)

type column struct {
	name string
	kind kind
	doc  string
}

// fileColumns are those of accounting(5), in their order.
func fileColumns() []column {
	return []column{
		{"qname", text, "cluster queue"},
		{"hostname", text, "host of the run; of a parallel job, of its master"},
		{"group", text, "the user's Unix group"},
		{"owner", text, "user"},
		{"job_name", word, "name of the job"},
		{"job_number", count, "number of the job, which all its tasks and runs share; numbers begin again some day"},
		{"account", text, "account string of qsub -A; \"sge\" when there was none"},
		{"priority", word, "priority that was given to the queue (nice value)"},
		{"submission_time", instant, "when the job was submitted; of a run after a requeue, in some versions, when it was requeued"},
		{"start_time", instant, "when the run started"},
		{"end_time", instant, "when the run ended"},
		{"failed", count, "why the run failed, 0 when it did not; see failure and state"},
		{"exit_status", count, "exit status of the job, 128 + the signal when one ended it"},
		{"ru_wallclock", number, "seconds of the run as Grid Engine writes them; see runtime_seconds"},
		{"ru_utime", number, "CPU seconds in user mode"},
		{"ru_stime", number, "CPU seconds in the kernel"},
		{"ru_maxrss", number, "largest resident memory in kB of 1024 bytes; see max_rss_bytes"},
		{"ru_ixrss", number, "of getrusage(2)"},
		{"ru_ismrss", number, "of getrusage(2)"},
		{"ru_idrss", number, "of getrusage(2)"},
		{"ru_isrss", number, "of getrusage(2)"},
		{"ru_minflt", number, "page faults without I/O"},
		{"ru_majflt", number, "page faults with I/O"},
		{"ru_nswap", number, "times that it was swapped out"},
		{"ru_inblock", number, "blocks read"},
		{"ru_oublock", number, "blocks written"},
		{"ru_msgsnd", number, "messages sent"},
		{"ru_msgrcv", number, "messages received"},
		{"ru_nsignals", number, "signals received"},
		{"ru_nvcsw", number, "voluntary context switches"},
		{"ru_nivcsw", number, "involuntary context switches"},
		{"project", text, "project; null for none"},
		{"department", text, "department"},
		{"granted_pe", text, "parallel environment; null for none"},
		{"slots", count, "slots of the whole job, in the lines of slave tasks too; see cores"},
		{"task_number", count, "number in the array, 0 for other jobs; see array_task_id"},
		{"cpu", number, "CPU seconds that were used; see cpu_seconds"},
		{"mem", number, "memory use over time, in GB × CPU seconds"},
		{"io", number, "data moved, in GB"},
		{"category", text, "what the job asked for, for example \"-l h_rt=600,h_vmem=2G -pe smp 2\"; see requests"},
		{"iow", number, "seconds that it waited for I/O"},
		{"pe_taskid", text, "slave task of a parallel job; null in the line of the job itself"},
		{"maxvmem", number, "largest virtual memory in bytes; see max_vmem_bytes"},
		{"arid", count, "advance reservation, 0 for none (since 6.2)"},
		{"ar_submission_time", instant, "when the advance reservation was made (since 6.2)"},
		{"job_class", text, "job class (Univa, Altair)"},
		{"qdel_info", text, "who deleted the job, as user@host (Univa, Altair)"},
		{"maxrss", number, "largest resident memory of all of the run, in bytes (Univa, Altair)"},
		{"maxpss", number, "largest proportional memory of all of the run, in bytes (Univa, Altair)"},
		{"submit_host", text, "host of the submission (Univa, Altair)"},
		{"cwd", masked, "working directory (Univa, Altair)"},
		{"submit_cmd", masked, "command line of the submission (Univa, Altair)"},
		{"wallclock", number, "seconds of the run without those suspended (Univa, Altair)"},
		{"ioops", number, "I/O operations (Univa, Altair)"},
	}
}

// typeOf is the type of an attribute for a column of that kind.
func (k kind) typeOf() sdk.Type {
	switch k {
	case count:
		return sdk.TypeInt
	case number:
		return sdk.TypeFloat
	case instant:
		return sdk.TypeTime
	}
	return sdk.TypeString
}

func rawAttributes() []attribute {
	var out []attribute
	for i, c := range fileColumns() {
		out = append(out, attribute{sdk.Attribute{Name: c.name, Type: c.kind.typeOf(), Doc: c.doc}, columnReader(i, c)})
	}
	return out
}

// columnReader reads a column. One that the line does not have, or that is empty, is null.
func columnReader(i int, c column) func(*Line) (sdk.Value, error) {
	read := func(s string, l *Line) (sdk.Value, error) {
		switch c.kind {
		case word:
			return sdk.String(s), nil
		case count:
			n, err := parseRounded(s)
			return sdk.Int(n), cmp.Or(l.readError(i), err)
		case number:
			f, err := parseDecimal(s)
			if err != nil {
				return sdk.Null(), err
			}
			measured, err := l.isMeasured(i)
			if err != nil || !measured {
				return sdk.Null(), err
			}
			return sdk.Float(f), nil
		case instant:
			n, err := parseInteger(s)
			if err == nil && (n > lastTime || !l.millis && n >= firstMilli) {
				err = fmt.Errorf("%q is not a time", s)
			}
			return sdk.Time(l.toTime(n)), err
		case masked:
			s = strings.ReplaceAll(s, "\xff", ":")
		}
		if s == none {
			return sdk.Null(), nil
		}
		return sdk.String(s), nil
	}
	return func(l *Line) (sdk.Value, error) {
		s := l.fields[i]
		if s == "" || (s == none && c.kind != word) {
			return sdk.Null(), nil
		}
		v, err := read(s, l)
		if err != nil {
			return sdk.Null(), fmt.Errorf("column %s: %w", c.name, err)
		}
		return v, nil
	}
}

func stringAttribute(name, doc string, f func(*Line) string) attribute {
	return attribute{sdk.Attribute{Name: name, Type: sdk.TypeString, Doc: doc}, func(l *Line) (sdk.Value, error) {
		s := f(l)
		if s == "" {
			return sdk.Null(), nil
		}
		return sdk.String(s), nil
	}}
}

// textAttribute is a text, or why it cannot be told.
func textAttribute(name, doc string, f func(*Line) (string, error)) attribute {
	return attribute{sdk.Attribute{Name: name, Type: sdk.TypeString, Doc: doc}, func(l *Line) (sdk.Value, error) {
		s, err := f(l)
		if s == "" || err != nil {
			return sdk.Null(), err
		}
		return sdk.String(s), nil
	}}
}

func intAttribute(name, doc string, f func(*Line) (n int64, known bool, err error)) attribute {
	return attribute{sdk.Attribute{Name: name, Type: sdk.TypeInt, Doc: doc}, func(l *Line) (sdk.Value, error) {
		n, known, err := f(l)
		if err != nil || !known {
			return sdk.Null(), err
		}
		return sdk.Int(n), nil
	}}
}
