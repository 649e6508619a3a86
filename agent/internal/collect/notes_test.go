package collect_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// noted are the runs that the buffer has notes on.
func (r *rig) noted() []string {
	r.t.Helper()
	runs, err := r.buffer.OpenRuns(source)
	if err != nil {
		r.t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(runs))
}

func TestARunThatBeginsAndEndsWithinOneBatchLeavesNoNote(t *testing.T) {
	for name, last := range map[string]sdk.Job{"record": job("1", "alice", 4), "left out": excluded(job("1", "alice", 4))} {
		r := newRig(t, buffer.Options{})
		r.sched.add(jobs(running("1"), running("2"), last))
		r.collect()
		if got := r.noted(); !slices.Equal(got, []string{"2"}) {
			t.Errorf("%s: notes on %q", name, got)
		}
		r.sched.add(jobs(job("2", "alice", 4), running("2"), job("2", "alice", 5)))
		r.collect()
		if got := r.noted(); len(got) != 0 {
			t.Errorf("%s: notes on %q", name, got)
		}
	}
}

func TestAnIDThatChangesWithTheEndIsTakenBackWithinOneBatchToo(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.record = "when = job.user != \"nobody\"\nid = \"${job.user}-${job.id}\""
	r.sched.add(jobs(running("1"), job("1", "bob", 4), running("2"), job("2", "nobody", 4)))
	r.collect()
	r.want("open alice-1 4", "withdraw alice-1 closed", "closed bob-1 4", "open alice-2 4", "withdraw alice-2 closed", "withdraw nobody-2 closed")
}
