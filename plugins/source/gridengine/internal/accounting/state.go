package accounting

import "fmt"

// The words for how a run ended.
const (
	Completed = "COMPLETED" // with exit status 0
	Fail      = "FAILED"
	Killed    = "KILLED"    // by a signal, for whatever reason
	Cancelled = "CANCELLED" // by qdel, where Grid Engine tells
	Timeout   = "TIMEOUT"   // at its limit of run time
	Requeued  = "REQUEUED"  // it was put back into the queue and may run again
)

// States are all of them.
func States() []string { return []string{Completed, Fail, Killed, Cancelled, Timeout, Requeued} }

// The numbers of the column failed that say more than that a run failed.
const (
	migrating    = 24
	rescheduling = 25
	limit        = 37
	afterJob     = 100
)

// State is how the run ended, in a word.
func (l *Line) State() string {
	switch {
	case l.failed == 0 && l.exit == 0:
		return Completed
	case l.fieldOrEmpty(qdelInfo) != "":
		return Cancelled
	case l.failed == 0:
		return Fail
	case l.failed == rescheduling || l.failed == migrating:
		return Requeued
	case l.failed == limit, l.failed == afterJob && l.exceededLimit():
		return Timeout
	case l.failed == afterJob:
		return Killed
	}
	return Fail
}

// exceededLimit reports whether a run that was killed had used up the time that it had
// asked for.
func (l *Line) exceededLimit() bool {
	asked, ok := Seconds(l.requestOf("h_rt"))
	return ok && asked > 0 && l.Signal() > 0 && int64(l.End.Sub(l.Start).Seconds()) >= asked
}

// Signal is the signal that ended the run, 0 for none. Only a run that Grid Engine
// calls failed was ended by one: the exit status of others, which may be the same,
// is the job's own word.
func (l *Line) Signal() int64 {
	if l.failed != 0 && l.exit > 128 && l.exit <= 128+64 {
		return l.exit - 128
	}
	return 0
}

// Failure is what the column failed means, as qacct prints it; "" when the run did
// not fail.
func (l *Line) Failure() string {
	if l.failed == 0 {
		return ""
	}
	if text, ok := failureNames()[l.failed]; ok {
		return text
	}
	return fmt.Sprintf("failure %d", l.failed)
}

func failureNames() map[int64]string {
	return map[int64]string{
		1: "assumedly before job", 3: "before writing config", 4: "before writing PID", 5: "on reading config file",
		6: "setting processor set", 7: "before prolog", 8: "in prolog", 9: "before pestart", 10: "in pestart",
		11: "before job", 12: "before pestop", 13: "in pestop", 14: "before epilog", 15: "in epilog",
		16: "releasing processor set", 17: "through signal", 18: "shepherd returned error",
		19: "before writing exit_status", 20: "found unexpected error file", 21: "in recognizing job",
		24: "migrating (checkpointing jobs)", 25: "rescheduling", 26: "opening input/output file",
		27: "searching requested shell", 28: "changing into working directory", 29: "setting up AFS",
		30: "rescheduling on application error", 31: "accessing sgepasswd file", 32: "entry is missing in password file",
		33: "wrong password", 34: "communicating with the helper service", 35: "before job in the helper service",
		36: "checking configured daemons", 37: "qmaster enforced h_rt, h_cpu or h_vmem limit",
		38: "adding supplementary group", 100: "assumedly after job",
	}
}
