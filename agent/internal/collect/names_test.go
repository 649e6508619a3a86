package collect_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// A run that is known by a better name now has one record, also when what it was
// sent as before is forgotten, was refused, or never was.
func TestABetterNameTakesTheRecordOver(t *testing.T) {
	renamed := func(id string, old ...string) sdk.Job {
		j := job(id, "alice", 4)
		for _, o := range old {
			j.Formerly = append(j.Formerly, job(o, "alice", 4))
		}
		return j
	}
	for _, restart := range []bool{false, true} {
		r := newRig(t, buffer.Options{})
		again := func() {
			if restart {
				r.reopen()
			}
		}
		r.sched.add(jobs(job("11", "alice", 4)))
		r.collect()
		r.want("closed n-11 4")
		again()
		r.sched.add(jobs(renamed("5_1", "11")), jobs(renamed("5_1", "11")))
		r.collect()
		r.want("closed n-5_1 4", "withdraw n-11 closed settles 11")

		r.sched.add(sdk.Batch{Refused: []sdk.Refused{{Run: "12", Message: "too little"}}})
		r.collect()
		r.want("quarantine 12 input")
		again()
		r.sched.add(jobs(renamed("5_2", "12", "5_2")))
		r.collect()
		got := r.frames()
		if len(got) != 2 || !strings.HasPrefix(got[0], "closed n-5_2 4") || got[1] != "withdraw n-12 closed settles 12" {
			t.Error(got)
		}
	}
}

// Where the mapping does not look at what differs, there is one id, which stays.
func TestABetterNameWithTheSameIDTakesNothingBack(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.record = `id = "fixed"`
	j := job("5_1", "alice", 4)
	j.Formerly = []sdk.Job{job("11", "alice", 4)}
	r.sched.add(jobs(job("11", "alice", 4)), jobs(j))
	r.collect()
	r.want("closed fixed 4", "closed fixed 4")
}

// What fails under its better name stays as it was.
func TestABetterNameThatFailsTakesNothingBack(t *testing.T) {
	r := newRig(t, buffer.Options{})
	j := job("5_1", "alice", -1)
	j.Formerly = []sdk.Job{job("11", "alice", 4)}
	r.sched.add(jobs(job("11", "alice", 4)), jobs(j))
	r.collect()
	r.want("closed n-11 4", "quarantine 5_1 validation")
}
