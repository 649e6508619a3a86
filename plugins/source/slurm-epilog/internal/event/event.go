package event

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Event is what an epilog knew. What the environment did not say is zero; of
// numbers that may be 0, nil.
type Event struct {
	ID      string `json:"id"` // random: the same event that is handed over twice is one
	At      int64  `json:"at"` // when the epilog ran, in microseconds since 1970
	Context string `json:"context,omitempty"`
	Host    string `json:"host,omitempty"`

	Cluster   string `json:"cluster,omitempty"`
	Job       int64  `json:"job"` // without array and heterogeneous notation
	ArrayJob  *int64 `json:"array_job,omitempty"`
	ArrayTask *int64 `json:"array_task,omitempty"`
	HetJob    *int64 `json:"het_job,omitempty"`
	HetOffset *int64 `json:"het_offset,omitempty"`
	Restarts  *int64 `json:"restarts,omitempty"`

	Name      string `json:"name,omitempty"`
	User      string `json:"user,omitempty"`
	UID       *int64 `json:"uid,omitempty"`
	Group     string `json:"group,omitempty"`
	GID       *int64 `json:"gid,omitempty"`
	Account   string `json:"account,omitempty"`
	Partition string `json:"partition,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Nodes     string `json:"nodes,omitempty"`

	NodeCount *int64 `json:"node_count,omitempty"`
	CPUs      *int64 `json:"cpus,omitempty"`
	Start     int64  `json:"start,omitempty"` // in seconds since 1970
	End       int64  `json:"end,omitempty"`
	Exit      string `json:"exit,omitempty"` // code:signal

	// Unread has what the environment said for numbers that cannot be read, by their name
	// in the event, for example cpus. They are zero, or nil, in it.
	Unread map[string]string `json:"unread,omitempty"`

	// Told and Since are the source's own, in its journal: what was sent of the run,
	// under this job id, had no word of slurmdbd's, which is waited for since then, in
	// microseconds since 1970.
	Told  string `json:"told,omitempty"`
	Since int64  `json:"since,omitempty"`
}

// The contexts of epilogs, in which a run has ended. Slurm before 20.11 says none.
const (
	OfController = "epilog_slurmctld" // EpilogSlurmctld, once a run
	OfNode       = "epilog_slurmd"    // Epilog, also on a node that a run gives back
)

// OfEnd reports whether the event says that a run has ended. A prolog, or the epilog
// of a task or of srun, says nothing about that.
func (e *Event) OfEnd() bool {
	return e.Context == "" || e.Context == OfController || e.Context == OfNode
}

// Bounds of what is read.
const (
	maxText = 1 << 10

	maxUnread = 64 // bytes
	maxJob    = 1<<32 - 1
	maxTime   = 253402300799 // the end of the year 9999
	idBytes   = 16
)

// Check says what is wrong with an event that came from outside.
func (e *Event) Check() error {
	switch {
	case len(e.ID) != 2*idBytes || strings.Trim(e.ID, "0123456789abcdef") != "":
		return fmt.Errorf("id: %.40q is not %d hexadecimal digits", e.ID, 2*idBytes)
	case e.Job <= 0 || e.Job > maxJob:
		return fmt.Errorf("job: %d is not a job id", e.Job)
	case e.At <= 0 || e.At > maxTime*1e6:
		return fmt.Errorf("at: %d is not a time in microseconds", e.At)
	case e.Start < 0 || e.Start > maxTime || e.End < 0 || e.End > maxTime:
		return fmt.Errorf("start %d, end %d: not both are times in seconds", e.Start, e.End)
	case (e.ArrayJob == nil) != (e.ArrayTask == nil):
		return errors.New("array_job and array_task go together")
	case (e.HetJob == nil) != (e.HetOffset == nil):
		return errors.New("het_job and het_offset go together")
	}
	if err := e.checkNumbers(); err != nil {
		return err
	}
	return e.checkTexts()
}

func (e *Event) checkNumbers() error {
	for name, n := range map[string]*int64{
		"array_job": e.ArrayJob, "array_task": e.ArrayTask, "het_job": e.HetJob, "het_offset": e.HetOffset,
		"restarts": e.Restarts, "uid": e.UID, "gid": e.GID, "node_count": e.NodeCount, "cpus": e.CPUs,
	} {
		if n != nil && (*n < 0 || *n > maxJob) {
			return fmt.Errorf("%s: %d is out of range", name, *n)
		}
	}
	return nil
}

func (e *Event) checkTexts() error {
	for name, s := range map[string]string{
		"context": e.Context, "host": e.Host, "cluster": e.Cluster, "name": e.Name, "user": e.User, "group": e.Group,
		"account": e.Account, "partition": e.Partition, "qos": e.QOS, "nodes": e.Nodes, "exit": e.Exit, "told": e.Told,
	} {
		if len(s) > maxText || !utf8.ValidString(s) {
			return fmt.Errorf("%s: a text of %d bytes is too long or no UTF-8", name, len(s))
		}
	}
	if e.Exit != "" && !isExit(e.Exit) {
		return fmt.Errorf("exit: %q is not an exit code", e.Exit)
	}
	return e.checkUnread()
}

func (e *Event) checkUnread() error {
	for name, s := range e.Unread {
		if !slices.Contains(numberNames(), name) {
			return fmt.Errorf("unread: %.40q is not a number of an event", name)
		}
		if s == "" || len(s) > maxUnread || !utf8.ValidString(s) {
			return fmt.Errorf("unread: %s has a text of %d bytes; expected 1 to %d of UTF-8", name, len(s), maxUnread)
		}
	}
	return nil
}

// numberNames are the numbers of an event that may be unread.
func numberNames() []string {
	return []string{"restarts", "uid", "gid", "node_count", "cpus", "start", "exit"}
}

// JobID is the job's id as sacct shows it, as far as the epilog knew.
func (e *Event) JobID() string {
	switch {
	case e.ArrayJob != nil:
		return fmt.Sprintf("%d_%d", *e.ArrayJob, *e.ArrayTask)
	case e.HetJob != nil:
		return fmt.Sprintf("%d+%d", *e.HetJob, *e.HetOffset)
	}
	return strconv.FormatInt(e.Job, 10)
}

// isExit reports whether s is an exit code and a signal, as Slurm writes them.
func isExit(s string) bool {
	code, signal, found := strings.Cut(s, ":")
	return found && isCount(code) && isCount(signal)
}

func isCount(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 0
}
