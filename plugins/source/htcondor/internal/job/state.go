package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
)

// The words for how a run ended.
const (
	Completed   = "COMPLETED" // with exit code 0
	Failed      = "FAILED"    // with another
	Killed      = "KILLED"    // by a signal
	Cancelled   = "CANCELLED" // the job was removed
	Timeout     = "TIMEOUT"   // it ran for longer than it may
	OutOfMemory = "OUT_OF_MEMORY"
	Held        = "HELD"    // the run ended because the job was held
	Evicted     = "EVICTED" // the job had to leave the slot, and may run again
	Running     = "RUNNING"
)

// States are all of them.
func States() []string {
	return []string{Completed, Failed, Killed, Cancelled, Timeout, OutOfMemory, Held, Evicted, Running}
}

// The codes of HoldReasonCode that say more than that a job was held, and the first of
// those of VacateReasonCode that are not of a hold.
const (
	memoryExceeded   = 34
	durationExceeded = 46
	executeExceeded  = 47
	vacated          = 1000
)

// State is how the run ended, in a word.
func (j *Job) State() string {
	if j.End.IsZero() {
		return Running
	}
	if j.programEnded() {
		switch code, signal := j.Exit(); {
		case signal != 0:
			return Killed
		case code != 0:
			return Failed
		}
		return Completed
	}
	at := j.numberAt(lastVacateTime)
	left := at > 0 && at >= j.Start.Unix() // this run
	before := j.numberAt(lastJobStatus)
	switch code := j.vacateReason(); {
	case !j.Epoch && (before == running || before == transferring || before == suspended):
		return Cancelled
	case left && code == memoryExceeded:
		return OutOfMemory
	case left && (code == durationExceeded || code == executeExceeded):
		return Timeout
	case left && code > 0 && code < vacated:
		return Held
	case left && before > 0, j.Epoch:
		return Evicted
	}
	return Cancelled
}

// programEnded reports whether the program of this run ended, not the run alone. A job that stays in
// the queue when it has completed may be removed then.
func (j *Job) programEnded() bool {
	done := j.numberAt(completionDate) >= j.Start.Unix()
	if !j.Epoch {
		status := j.numberAt(jobStatus)
		return status == completed || status == removed && done
	}
	if done {
		return true
	}
	if v, ok := j.nestedMember("ToE", "When"); ok {
		return v.Int >= j.Start.Unix()
	}
	return j.fields[exitCode]+j.fields[exitSignal] != "" && j.numberAt(lastVacateTime) < j.Start.Unix()
}

// vacateReason is why the run was vacated, as a code. HTCondor 23 has none of a run whose job a
// user has held; it says so of the job.
func (j *Job) vacateReason() int64 {
	code := j.numberAt(vacateReasonCode)
	switch {
	case code > 0:
		return code
	case j.Epoch || j.numberAt(jobStatus) == held:
		return j.numberAt(holdReasonCode)
	case j.numberAt(lastJobStatus) == held:
		return j.numberAt(lastHoldReasonCode)
	}
	return 0
}

// Exit is the exit code and the signal of the run; 0, 0 where the program did not end.
func (j *Job) Exit() (code, signal int64) {
	if j.isTrue(exitBySignal) {
		return 0, j.numberAt(exitSignal)
	}
	return j.numberAt(exitCode), 0
}

// numberAt is a whole number, 0 where there is none. What is told by it is not sure where it
// cannot be read.
func (j *Job) numberAt(c int) int64 {
	n, _, err := j.wholeNumber(c)
	if err != nil {
		j.noteUnreadable(c)
	}
	return n
}

// isTrue is a truth value, false where there is none, likewise.
func (j *Job) isTrue(c int) bool {
	yes, _, err := j.truthValue(c)
	if err != nil {
		j.noteUnreadable(c)
	}
	return yes
}

// truthValue is the truth value of a column.
func (j *Job) truthValue(c int) (yes, known bool, err error) {
	if j.fields[c] == "" {
		return false, false, nil
	}
	switch v := classad.Parse(j.fields[c]); v.Kind {
	case classad.Bool:
		return v.Int != 0, true, nil
	case classad.Undefined, classad.Error:
		return false, false, nil
	}
	return false, false, j.unreadableError(c)
}

// nestedMember is a member of a nested ad.
func (j *Job) nestedMember(attribute, name string) (classad.Value, bool) {
	for i := range j.ad.Attributes {
		if a := &j.ad.Attributes[i]; strings.EqualFold(a.Name, attribute) {
			v := a.Value()
			if v.Kind != classad.Nested && v.Kind != classad.Undefined && j.unsure == nil {
				j.unsure = fmt.Errorf("%s is %.80s, not a nested ad", a.Name, a.Text)
			}
			for _, m := range v.Ad {
				if strings.EqualFold(m.Name, name) {
					return m.Value, true
				}
			}
		}
	}
	return classad.Value{}, false
}

// universeNames are the names of JobUniverse.
func universeNames() map[int64]string {
	return map[int64]string{1: "standard", 5: "vanilla", 7: "scheduler", 8: "mpi", 9: "grid", 10: "java", 11: "parallel", 12: "local", 13: "vm"}
}

const parallel = 11

// Universes are the names of the universes.
func Universes() []string { return slices.Sorted(maps.Values(universeNames())) }
