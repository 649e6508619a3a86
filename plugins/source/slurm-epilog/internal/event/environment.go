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
	id := firstSet(get, "SLURM_JOB_ID", "SLURM_JOBID")
	if id == "" {
		return Event{}, ErrNoJob
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 || number > maxJob {
		return Event{}, fmt.Errorf("SLURM_JOB_ID is %.40q, which is not a job id", id)
	}
	r := numberReader{get: get}
	e := Event{
		ID: newID(), At: now.UnixMicro(), Context: cleanText(get("SLURM_SCRIPT_CONTEXT")), Host: cleanText(host),
		Cluster: cleanText(get("SLURM_CLUSTER_NAME")), Job: number, Restarts: r.readCount("restarts", "SLURM_JOB_RESTART_COUNT", "SLURM_RESTART_COUNT"),
		Name: cleanText(get("SLURM_JOB_NAME")), User: cleanText(get("SLURM_JOB_USER")), UID: r.readCount("uid", "SLURM_JOB_UID", "SLURM_UID"),
		Group: cleanText(get("SLURM_JOB_GROUP")), GID: r.readCount("gid", "SLURM_JOB_GID", ""), Account: cleanText(get("SLURM_JOB_ACCOUNT")),
		Partition: cleanText(get("SLURM_JOB_PARTITION")), QOS: cleanText(get("SLURM_JOB_QOS")), Nodes: cleanText(firstSet(get, "SLURM_JOB_NODELIST", "SLURM_NODELIST")),
		NodeCount: r.readCount("node_count", "SLURM_JOB_NUM_NODES", ""), CPUs: r.readCPUs("SLURM_JOB_CPUS_PER_NODE"),
		Start: r.readStart("SLURM_JOB_START_TIME"), End: parseSeconds(get("SLURM_JOB_END_TIME")), Exit: r.readExit(),
	}
	if !e.OfEnd() {
		return Event{}, fmt.Errorf("%w: SLURM_SCRIPT_CONTEXT is %.40q, want %s or %s; call it as Epilog or EpilogSlurmctld", ErrNoEnd, e.Context, OfNode, OfController)
	}
	if node := get("SLURMD_NODENAME"); node != "" {
		e.Host = cleanText(node)
	}
	e.ArrayJob, e.ArrayTask = parseBoth(get, "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID")
	e.HetJob, e.HetOffset = parseBoth(get, "SLURM_HET_JOB_ID", "SLURM_HET_JOB_OFFSET")
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

func firstSet(get func(string) string, name, other string) string {
	if s := get(name); s != "" {
		return s
	}
	return get(other)
}

// cleanText cuts what is too long and replaces what is not UTF-8.
func cleanText(s string) string {
	return limitText(s, maxText)
}

// limitText is s as UTF-8 of at most so many bytes.
func limitText(s string, most int) string {
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

// noteUnread remembers what cannot be read; nothing is only not said.
func (r *numberReader) noteUnread(field, value string) {
	if value == "" {
		return
	}
	if r.unread == nil {
		r.unread = map[string]string{}
	}
	r.unread[field] = limitText(value, maxUnread)
}

// readCount reads the number that one of two variables has.
func (r *numberReader) readCount(field, name, other string) *int64 {
	value := firstSet(r.get, name, other)
	n := parseCount(value)
	if n == nil {
		r.noteUnread(field, value)
	}
	return n
}

func (r *numberReader) readStart(name string) int64 {
	n := parseSeconds(r.get(name))
	if n == 0 && r.get(name) != "0" {
		r.noteUnread("start", r.get(name))
	}
	return n
}

// readCPUs adds up Slurm's list of CPUs per node, for example 72(x2),36.
func (r *numberReader) readCPUs(name string) *int64 {
	total := int64(0)
	for part := range strings.SplitSeq(r.get(name), ",") {
		number, rest, repeated := strings.Cut(part, "(x")
		n, times := parseCount(number), parseCount("1")
		if repeated {
			times = parseCount(strings.TrimSuffix(rest, ")"))
		}
		if n == nil || times == nil || *times > 0 && *n > (maxJob-total) / *times {
			r.noteUnread("cpus", r.get(name))
			return nil
		}
		total += *n * *times
	}
	return &total
}

// readExit reads the exit code as code:signal; older ways to say it are a wait status.
func (r *numberReader) readExit() string {
	code, status := r.get("SLURM_JOB_EXIT_CODE2"), parseCount(r.get("SLURM_JOB_EXIT_CODE"))
	switch {
	case isExit(code):
		return code
	case status == nil:
		r.noteUnread("exit", firstSet(r.get, "SLURM_JOB_EXIT_CODE2", "SLURM_JOB_EXIT_CODE"))
		return ""
	}
	return fmt.Sprintf("%d:%d", *status>>8&0xff, *status&0x7f)
}

func parseCount(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > maxJob {
		return nil
	}
	return &n
}

func parseBoth(get func(string) string, first, second string) (*int64, *int64) {
	a, b := parseCount(get(first)), parseCount(get(second))
	if a == nil || b == nil {
		return nil, nil
	}
	return a, b
}

func parseSeconds(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > maxTime {
		return 0
	}
	return n
}
