package event

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrNoJob is the error of an environment that is not that of an epilog.
var ErrNoJob = errors.New("SLURM_JOB_ID is not set: this is to be called by Slurm, as Epilog or EpilogSlurmctld")

// ErrNoEnd is the error of an environment in which Slurm says nothing of the end of a
// run, for example that of a prolog.
var ErrNoEnd = errors.New("this is no epilog of a job")

// FromEnvironment makes an event of what Slurm gives to an epilog; get is os.Getenv. A
// number that cannot be read is in Unread of the event; of the job's id it is an error, and
// the end is then that of the epilog.
func FromEnvironment(get func(string) string, host string, now time.Time) (Event, error) {
	id := either(get, "SLURM_JOB_ID", "SLURM_JOBID")
	if id == "" {
		return Event{}, ErrNoJob
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 || number > maxJob {
		return Event{}, fmt.Errorf("SLURM_JOB_ID is %.40q, which is not a job id", id)
	}
	r := numberReader{get: get}
	e := Event{
		ID: newID(), At: now.UnixMicro(), Context: text(get("SLURM_SCRIPT_CONTEXT")), Host: text(host),
		Cluster: text(get("SLURM_CLUSTER_NAME")), Job: number, Restarts: r.count("restarts", "SLURM_JOB_RESTART_COUNT", "SLURM_RESTART_COUNT"),
		Name: text(get("SLURM_JOB_NAME")), User: text(get("SLURM_JOB_USER")), UID: r.count("uid", "SLURM_JOB_UID", "SLURM_UID"),
		Group: text(get("SLURM_JOB_GROUP")), GID: r.count("gid", "SLURM_JOB_GID", ""), Account: text(get("SLURM_JOB_ACCOUNT")),
		Partition: text(get("SLURM_JOB_PARTITION")), QOS: text(get("SLURM_JOB_QOS")), Nodes: text(either(get, "SLURM_JOB_NODELIST", "SLURM_NODELIST")),
		NodeCount: r.count("node_count", "SLURM_JOB_NUM_NODES", ""), CPUs: r.cpus("SLURM_JOB_CPUS_PER_NODE"),
		Start: r.start("SLURM_JOB_START_TIME"), End: seconds(get("SLURM_JOB_END_TIME")), Exit: r.exit(),
	}
	if !e.OfEnd() {
		return Event{}, fmt.Errorf("%w: SLURM_SCRIPT_CONTEXT is %.40q, want %s or %s; call it as Epilog or EpilogSlurmctld", ErrNoEnd, e.Context, OfNode, OfController)
	}
	if node := get("SLURMD_NODENAME"); node != "" {
		e.Host = text(node)
	}
	e.ArrayJob, e.ArrayTask = both(get, "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID")
	e.HetJob, e.HetOffset = both(get, "SLURM_HET_JOB_ID", "SLURM_HET_JOB_OFFSET")
	if e.NodeCount == nil || *e.NodeCount == 0 {
		e.CPUs = nil // the count of CPUs says nothing then
	}
	e.Unread = r.unread
	return e, nil
}

func newID() string {
	b := make([]byte, idBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func either(get func(string) string, name, other string) string {
	if s := get(name); s != "" {
		return s
	}
	return get(other)
}

// text cuts what is too long and replaces what is not UTF-8.
func text(s string) string {
	return shorten(s, maxText)
}

// shorten is s as UTF-8 of at most so many bytes.
func shorten(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// numberReader reads variables that are numbers.
type numberReader struct {
	get    func(string) string
	unread map[string]string // see [Event.Unread]
}

// note remembers what cannot be read; nothing is only not said.
func (r *numberReader) note(field, value string) {
	if value == "" {
		return
	}
	if r.unread == nil {
		r.unread = map[string]string{}
	}
	r.unread[field] = shorten(value, maxUnread)
}

// count reads the number that one of two variables has.
func (r *numberReader) count(field, name, other string) *int64 {
	value := either(r.get, name, other)
	n := count(value)
	if n == nil {
		r.note(field, value)
	}
	return n
}

func (r *numberReader) start(name string) int64 {
	n := seconds(r.get(name))
	if n == 0 && r.get(name) != "0" {
		r.note("start", r.get(name))
	}
	return n
}

// cpus adds up Slurm's list of CPUs per node, for example 72(x2),36.
func (r *numberReader) cpus(name string) *int64 {
	total := int64(0)
	for part := range strings.SplitSeq(r.get(name), ",") {
		number, rest, repeated := strings.Cut(part, "(x")
		n, times := count(number), count("1")
		if repeated {
			times = count(strings.TrimSuffix(rest, ")"))
		}
		if n == nil || times == nil || *times > 0 && *n > (maxJob-total) / *times {
			r.note("cpus", r.get(name))
			return nil
		}
		total += *n * *times
	}
	return &total
}

// exit reads the exit code as code:signal; older ways to say it are a wait status.
func (r *numberReader) exit() string {
	code, status := r.get("SLURM_JOB_EXIT_CODE2"), count(r.get("SLURM_JOB_EXIT_CODE"))
	switch {
	case isExit(code):
		return code
	case status == nil:
		r.note("exit", either(r.get, "SLURM_JOB_EXIT_CODE2", "SLURM_JOB_EXIT_CODE"))
		return ""
	}
	return fmt.Sprintf("%d:%d", *status>>8&0xff, *status&0x7f)
}

func count(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > maxJob {
		return nil
	}
	return &n
}

func both(get func(string) string, first, second string) (*int64, *int64) {
	a, b := count(get(first)), count(get(second))
	if a == nil || b == nil {
		return nil, nil
	}
	return a, b
}

func seconds(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > maxTime {
		return 0
	}
	return n
}
