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

// FromEnvironment makes an event of what Slurm gives to an epilog; get is os.Getenv.
// Irregularities in it is left out, but for the job's id.
func FromEnvironment(get func(string) string, host string, now time.Time) (Event, error) {
	id := either(get, "SLURM_JOB_ID", "SLURM_JOBID")
	if id == "" {
		return Event{}, ErrNoJob
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 || number > maxJob {
		return Event{}, fmt.Errorf("SLURM_JOB_ID is %.40q, which is not a job id", id)
	}
	e := Event{
		ID: newID(), At: now.UnixMicro(), Context: text(get("SLURM_SCRIPT_CONTEXT")), Host: text(host),
		Cluster: text(get("SLURM_CLUSTER_NAME")), Job: number, Restarts: count(either(get, "SLURM_JOB_RESTART_COUNT", "SLURM_RESTART_COUNT")),
		Name: text(get("SLURM_JOB_NAME")), User: text(get("SLURM_JOB_USER")), UID: count(either(get, "SLURM_JOB_UID", "SLURM_UID")),
		Group: text(get("SLURM_JOB_GROUP")), GID: count(get("SLURM_JOB_GID")), Account: text(get("SLURM_JOB_ACCOUNT")),
		Partition: text(get("SLURM_JOB_PARTITION")), QOS: text(get("SLURM_JOB_QOS")), Nodes: text(either(get, "SLURM_JOB_NODELIST", "SLURM_NODELIST")),
		NodeCount: count(get("SLURM_JOB_NUM_NODES")), CPUs: cpus(get("SLURM_JOB_CPUS_PER_NODE")),
		Start: seconds(get("SLURM_JOB_START_TIME")), End: seconds(get("SLURM_JOB_END_TIME")), Exit: exitOf(get),
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

// text cuts what is too long and replaces what is no UTF-8.
func text(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
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

// cpus adds up Slurm's list of CPUs per node, for example 72(x2),36.
func cpus(s string) *int64 {
	total := int64(0)
	for part := range strings.SplitSeq(s, ",") {
		number, rest, repeated := strings.Cut(part, "(x")
		n, times := count(number), count("1")
		if repeated {
			times = count(strings.TrimSuffix(rest, ")"))
		}
		if n == nil || times == nil || *times > 0 && *n > maxJob / *times {
			return nil
		}
		if total += *n * *times; total > maxJob {
			return nil
		}
	}
	return &total
}

// exitOf is the exit code as code:signal; older ways to say it are a wait status.
func exitOf(get func(string) string) string {
	if s := get("SLURM_JOB_EXIT_CODE2"); isExit(s) {
		return s
	}
	status := count(get("SLURM_JOB_EXIT_CODE"))
	if status == nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", *status>>8&0xff, *status&0x7f)
}
