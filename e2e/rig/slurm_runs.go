//go:build e2e

package rig

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Run is one run of a job as slurmdbd's tables have it, read by SQL and so without
// any help of sacct: what a test compares records with.
type Run struct {
	DBIndex      uint64 // sacct's DBIndex; each run has its own
	JobID        string // as sacct prints it: "7", "7_2", "7+1", or "7_[2-3]" for tasks that have not split off
	RawID        uint32 // sacct's JobIDRaw
	User         string
	Account      string
	Partition    string
	Name         string
	Comment      string
	AdminComment string
	State        string // one word: "COMPLETED", "CANCELLED", "REQUEUED" and so on
	ExitCode     int
	Signal       int
	Submit       int64 // unix seconds, as all times; 0 is never
	Start        int64
	End          int64
	Suspended    int64    // seconds of End-Start that the job was suspended
	Cores        int64    // allocated, as the following
	MemoryMB     int64    //
	Nodes        int64    //
	GPUs         int64    //
	Steps        []string // "batch", "extern", "interactive", "0", "1" …, in sacct's names
}

// Ran says whether the run ever had nodes. (Slurm gives a job that is cancelled while
// it waits a start all the same, equal to its end.)
func (r Run) Ran() bool { return r.Start > 0 && r.Nodes > 0 }

// Finished says whether the run had nodes and ended.
func (r Run) Finished() bool { return r.Ran() && r.End > 0 }

// Elapsed is what sacct calls ElapsedRaw: seconds of a finished run without those
// that it was suspended.
func (r Run) Elapsed() int64 {
	if !r.Finished() {
		return 0
	}
	return r.End - r.Start - r.Suspended
}

// runsQuery prints free text in hexadecimal, since it may hold tabs and newlines, and
// in UTF-8: the tables of 22.05 are in Latin-1, to and from which MariaDB converts.
var runsQuery = strings.NewReplacer("<", "hex(convert(ifnull(", ">", ",'') using utf8mb4))").Replace(
	`select j.job_db_inx, j.id_job, j.id_array_job, j.id_array_task, <j.array_task_str>,
 j.het_job_id, j.het_job_offset, j.id_user, <j.account>, <j.partition>, <j.job_name>, <j.derived_es>, <j.admin_comment>,
 j.state, j.exit_code, j.time_submit, j.time_start, j.time_end, j.time_suspended, <j.tres_alloc>,
 <(select group_concat(id_step order by id_step) from rig_step_table s where s.job_db_inx=j.job_db_inx)>
 from rig_job_table j where j.deleted=0 order by j.id_job, j.time_submit, j.job_db_inx;`)

// Runs reads every run that the accounting database has, ordered by raw id and time
// of submission.
func (c *Cluster) Runs() []Run {
	c.t.Helper()
	var runs []Run
	for line := range strings.Lines(c.SQL(runsQuery)) {
		r, err := parseRun(strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		if err != nil {
			c.t.Fatalf("rig: read job table: %v in %q", err, line)
		}
		runs = append(runs, r)
	}
	return runs
}

// row reads the columns of a line and keeps the first error.
type row struct {
	cols []string
	err  error
}

func (r *row) nextText() string {
	raw, err := hex.DecodeString(r.cols[0])
	r.nextField(err)
	return string(raw)
}

func (r *row) nextNumber() uint64 {
	n, err := strconv.ParseUint(r.cols[0], 10, 64)
	r.nextField(err)
	return n
}

func (r *row) nextField(err error) {
	r.cols = r.cols[1:]
	if r.err == nil {
		r.err = err
	}
}

func parseRun(cols []string) (Run, error) {
	if len(cols) != 21 {
		return Run{}, fmt.Errorf("%d columns", len(cols))
	}
	in := &row{cols: cols}
	r := Run{DBIndex: in.nextNumber(), RawID: uint32(in.nextNumber())}
	r.JobID = printedID(uint64(r.RawID), in.nextNumber(), in.nextNumber(), in.nextText(), in.nextNumber(), in.nextNumber())
	r.User = userName(in.nextNumber())
	r.Account, r.Partition, r.Name, r.Comment, r.AdminComment = in.nextText(), in.nextText(), in.nextText(), in.nextText(), in.nextText()
	r.State = stateName(in.nextNumber())
	r.setExit(in.nextNumber())
	r.Submit, r.Start, r.End, r.Suspended = int64(in.nextNumber()), int64(in.nextNumber()), int64(in.nextNumber()), int64(in.nextNumber())
	r.setTRES(in.nextText())
	r.setSteps(in.nextText())
	return r, in.err
}

// noVal is Slurm's NO_VAL, here for "no array task".
const noVal = 0xfffffffe

func printedID(job, array, task uint64, tasks string, het, offset uint64) string {
	switch {
	case het != 0:
		return fmt.Sprintf("%d+%d", het, offset)
	case array != 0 && task != noVal:
		return fmt.Sprintf("%d_%d", array, task)
	case array != 0 && tasks != "":
		return fmt.Sprintf("%d_[%s]", array, taskRanges(tasks))
	}
	return strconv.FormatUint(job, 10)
}

// taskRanges prints the set bits of a number like 0x1e as "1-4".
func taskRanges(mask string) string {
	n, ok := new(big.Int).SetString(mask, 0)
	if !ok {
		return mask
	}
	var ranges []string
	for i := 0; i < n.BitLen(); i++ {
		if n.Bit(i) == 0 {
			continue
		}
		first := i
		for n.Bit(i+1) == 1 {
			i++
		}
		if i == first {
			ranges = append(ranges, strconv.Itoa(i))
		} else {
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, i))
		}
	}
	return strings.Join(ranges, ",")
}

func userName(uid uint64) string {
	switch uid {
	case 0:
		return "root"
	case AliceID:
		return Alice
	case BobID:
		return Bob
	}
	return strconv.FormatUint(uid, 10)
}

// stateName knows Slurm's base states and the one flag that job rows have.
func stateName(state uint64) string {
	const requeued = 1 << 10
	names := []string{"PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT",
		"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}
	switch {
	case state&requeued != 0:
		return "REQUEUED"
	case state&0xff < uint64(len(names)):
		return names[state&0xff]
	}
	return strconv.FormatUint(state, 10)
}

// setExit takes a wait status apart.
func (r *Run) setExit(status uint64) {
	r.ExitCode, r.Signal = int(status>>8&0xff), int(status&0x7f)
}

// setTRES reads "1=2,2=200,4=1": CPUs, memory in MiB, nodes; 1001 is gres/gpu.
func (r *Run) setTRES(tres string) {
	for part := range strings.SplitSeq(tres, ",") {
		id, count, _ := strings.Cut(part, "=")
		n, _ := strconv.ParseInt(count, 10, 64)
		switch id {
		case "1":
			r.Cores = n
		case "2":
			r.MemoryMB = n
		case "4":
			r.Nodes = n
		case "1001":
			r.GPUs = n
		}
	}
}

func (r *Run) setSteps(ids string) {
	for id := range strings.SplitSeq(ids, ",") {
		switch id {
		case "":
		case "-4":
			r.Steps = append(r.Steps, "extern")
		case "-5":
			r.Steps = append(r.Steps, "batch")
		case "-6":
			r.Steps = append(r.Steps, "interactive")
		default:
			r.Steps = append(r.Steps, id)
		}
	}
}
