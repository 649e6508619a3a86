package cluster

import (
	"fmt"
	"io"
)

// Job is a job, or a task of an array, that runs or waits.
type Job struct {
	User, UID  string
	Group, GID string
	Account    string
	Partition  string // a job that waits may name several, with commas
	Running    bool   // it has an allocation; otherwise it waits
}

// queueFormat is squeue's format of a row. What a site can name as it likes comes
// last.
const queueFormat = "%u|%U|%P|%T|%g|%G|%a"

// ReadQueue reads what squeue prints with queueFormat and calls yield for each job
// that runs or waits.
func ReadQueue(r io.Reader, yield func(Job)) error {
	return eachLine(r, func(line string) error {
		f, ok, err := splitRow(line, 7)
		if !ok || err != nil {
			return err
		}
		running, counts, err := jobPhase(f[3])
		if err != nil || !counts {
			return err
		}
		yield(Job{User: f[0], UID: f[1], Partition: f[2], Group: f[4], GID: f[5], Account: f[6], Running: running})
		return nil
	})
}

// jobPhase says whether a job in this state has an allocation or waits for one. Those
// that are over, which Slurm remembers for some minutes or cleans up after, do not
// count.
func jobPhase(state string) (running, counts bool, err error) {
	switch state {
	case "RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT", "EXPEDITING":
		return true, true, nil
	case "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "POWER_UP_NODE":
		return false, true, nil
	case "COMPLETING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
		"OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL", "UPDATE_DB":
		return false, false, nil
	}
	return false, false, fmt.Errorf("%q is not a state of a job that is known", state)
}
