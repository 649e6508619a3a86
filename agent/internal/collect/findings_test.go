package collect_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// back is a job whose end is d before its start.
func back(j sdk.Job, d time.Duration) sdk.Job {
	j.Ended, j.Values[2] = true, sdk.Time(t0.Add(-d))
	return j
}

func TestAJobThatEndsBeforeItStartsIsQuarantined(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(1000*24*time.Hour/time.Microsecond)).Draw(rt, "micros")) * time.Microsecond
		r := newRig(t, buffer.Options{})
		r.sched.add(jobs(back(job("1", "alice", 1), d), back(job("2", "alice", 1), 0)))
		r.collect()
		r.want("quarantine 1 validation", "closed n-2 1")
	})
}

func TestARunningJobThatEndsBeforeItStartsGoesOnCountingNoMore(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(running("1")))
	r.collect()
	r.want("open n-1 4")
	r.reopen()
	r.sched.add(jobs(back(job("1", "alice", 4), time.Hour)), jobs(job("1", "alice", 4)))
	r.collect()
	r.want("quarantine 1 validation", "withdraw n-1 closed", "closed n-1 4 settles 1")
}

// unknownCores is a job whose scheduler does not say how many cores it had.
func unknownCores(id string) sdk.Job {
	j := job(id, "alice", 1)
	j.Values[4] = sdk.Null()
	return j
}

const coresWhereKnown = "component \"Cores\" {\n  amount = job.cores\n  when   = job.cores != null\n}"

func TestFindings_AreKeptOverARestartAndSettledByTheMend(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.record = coresWhereKnown
	odd := job("4", "alice", 1)
	odd.Findings = []sdk.Finding{{Kind: "column-unread", About: "cores", What: "key \"cores\" is not read", Do: "read it"}}
	r.sched.add(jobs(job("1", "alice", 1), unknownCores("2"), job("3", "alice", 1), odd))
	r.collect()
	check := func(step string, want ...string) {
		t.Helper()
		var got []string
		for _, f := range r.loop.Status().Findings {
			got = append(got, f.Kind+" "+f.About+" "+f.Example)
			if f.Count != 1 || !f.First.Equal(t0) || !f.Last.Equal(t0.Add(time.Hour)) {
				t.Errorf("%s: %+v", step, f)
			}
		}
		if len(got) != len(want) || len(want) > 0 && (got[0] != want[0] || got[len(got)-1] != want[len(want)-1]) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	all := []string{"column-unread cores n-4", translate.ComponentMissing + " Cores n-2"}
	check("collected", all...)
	r.reopen()
	check("restarted", all...)
	window := collect.Window{From: t0, To: t0.Add(24 * time.Hour)}
	if _, err := r.loop.Recollect(t.Context(), window, false, quietly); err != nil {
		t.Fatal(err)
	}
	check("collected again", all...)
	r.sched.batches = []sdk.Batch{jobs(job("1", "alice", 1), job("2", "alice", 8), job("3", "alice", 1), job("4", "alice", 1))}
	if _, err := r.loop.Recollect(t.Context(), window, true, quietly); err != nil {
		t.Fatal(err)
	}
	check("planned", all...)
	if _, err := r.loop.Recollect(t.Context(), window, false, quietly); err != nil {
		t.Fatal(err)
	}
	check("mended")
	r.reopen()
	check("restarted after the mend")
}

func quietly(collect.Counts, *bursarv1.Progress) error { return nil }
