package collect_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func TestWhatFailsGoesToQuarantineStopsNothingAndIsSettledAfterTheMend(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(job("1", "alice", -1), job("2", "bob", 2)))
	r.collect()
	r.want("quarantine 1 validation", "closed n-2 2")
	r.record = mended
	r.sched.add(jobs(job("1", "alice", -1)))
	r.collect()
	r.want("closed n-1 1 settles 1")
}

// fixed is a record block under which a negative number of cores is valid.
const mended = `component "Cores" { amount = abs(job.cores) }`

func TestAJobInQuarantineIsSettledByItsReturnAlsoOverARestart(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(job("1", "alice", -1)))
	r.collect()
	r.want("quarantine 1 validation")
	r.reopen()
	r.sched.add(jobs(job("1", "alice", 1)))
	r.collect()
	r.want("closed n-1 1 settles 1")
}

func TestARunThatIsLeftOutAfterARestartIsSettledWhenItComesBack(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(job("1", "alice", -1)))
	r.collect()
	r.want("quarantine 1 validation")
	r.reopen()
	r.sched.add(jobs(excluded(job("1", "alice", 1))), jobs(job("1", "alice", 1)))
	r.collect()
	r.want("closed n-1 1 settles 1")
}

func TestFramesOfASourceThatNeverHadAFailureSettleNothing(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(job("1", "alice", 1)))
	r.collect()
	r.reopen()
	r.sched.add(jobs(job("2", "alice", 1)))
	r.collect()
	r.want("closed n-1 1", "closed n-2 1")
}

func TestAJobThatWasSentThenFailsAndIsThenLeftOutIsTakenBackAndSettled(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.record = `when = job.user != "nobody"`
	r.sched.add(jobs(job("1", "alice", 1)), jobs(job("1", "alice", -1)), jobs(job("1", "nobody", -1)), jobs(job("1", "nobody", -1)))
	r.collect()
	r.want("closed n-1 1", "quarantine 1 validation", "withdraw n-1 closed settles 1")
}

func TestARunningJobThatFailsAndReturnsToWhatItWasIsSettledAlsoOverARestart(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for name, bad := range map[string]sdk.Batch{"validation": jobs(func() sdk.Job { j := running("1"); j.Values[4] = sdk.Int(-1); return j }()), "input": {Refused: []sdk.Refused{{Run: "1", Message: "torn"}}}} {
			r := newRig(t, buffer.Options{})
			r.sched.add(jobs(running("1")), bad, bad)
			r.collect()
			if got := r.frames(); got[1] != "quarantine 1 "+name {
				t.Fatal(got)
			}
			if restart {
				r.reopen()
			}
			r.sched.add(jobs(running("1")))
			r.collect()
			r.want("open n-1 4 settles 1")
		}
	}
}

func TestRefusedInputIsSettledByALaterGoodRowOfTheSameRunAlsoOverARestart(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := newRig(t, buffer.Options{})
		r.sched.add(jobs(job("1", "alice", 1)), sdk.Batch{Refused: []sdk.Refused{{Run: "1", Message: "torn"}}})
		r.collect()
		r.want("closed n-1 1", "quarantine 1 input")
		if restart {
			r.reopen()
		}
		r.sched.add(jobs(job("1", "alice", 1)))
		r.collect()
		r.want("closed n-1 1 settles 1")
	}
}

func TestUnreadAttribute_RecordComes_AndFailureNamesIt(t *testing.T) {
	r := newRig(t, buffer.Options{})
	unread := func(id string, attribute int, name string) sdk.Job {
		j := job(id, "alice", 4)
		j.Values[attribute], j.Unread = sdk.Null(), []sdk.Unread{{Attribute: name, Problem: `"16?" is not a number`}}
		return j
	}
	r.sched.add(jobs(job("1", "alice", 4), unread("2", 3, "user"), unread("3", 3, "user"), unread("4", 4, "cores")))
	r.collect()
	r.want("closed n-1 4", "closed n-2 4", "closed n-3 4", "quarantine 4 mapping")
	found := r.loop.Status().Findings
	i := slices.IndexFunc(found, func(x translate.Finding) bool { return x.Kind == translate.AttributeUnreadable && x.About == "user" })
	if i < 0 || found[i].Count != 2 || found[i].Example != "n-3" || !strings.Contains(found[i].What, `attribute user cannot be read: "16?" is not a number`) {
		t.Errorf("findings %+v", found)
	}
	failed := &bursarv1.Job{Run: "4", Unread: []*bursarv1.Unread{{Attribute: "cores", Problem: `"16?" is not a number`}}}
	if q := translate.QuarantineFailed(failed, nil, errors.New("it is null")); !strings.Contains(q.Message, `it is null; attribute cores cannot be read: "16?" is not a number`) {
		t.Error(q.Message)
	}
}

func TestARetryNeedsNothingButTheQuarantinedInput(t *testing.T) {
	r := newRig(t, buffer.Options{})
	plugin, err := r.Plugin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	odd := &bursarv1.Job{Run: "1", Ended: true, Values: []*bursarv1.Value{
		{Kind: &bursarv1.Value_StringValue{StringValue: "1"}}, {Kind: &bursarv1.Value_IntValue{IntValue: t0.UnixMicro()}},
		{Kind: &bursarv1.Value_IntValue{IntValue: t0.UnixMicro() + 5}}, {}, {Kind: &bursarv1.Value_IntValue{IntValue: -3}},
	}}
	raw, cut := translate.Raw(odd, plugin.Description.GetAttributes())
	if cut {
		t.Fatal("cut")
	}
	if err := r.loop.Retry(t.Context(), "1", raw); err == nil || !strings.Contains(err.Error(), "fails again") {
		t.Fatalf("error %v", err)
	}
	r.want()
	r.record = mended
	if err := r.loop.Retry(t.Context(), "1", raw); err != nil {
		t.Fatal(err)
	}
	r.want("closed n-1 3 settles 1")
	if err := r.loop.Retry(t.Context(), "q", []byte("no job")); err == nil {
		t.Error("text that is no job was retried")
	}
}

// cluster is what a cluster makes of the frames of one record id per run.
type cluster struct {
	records    map[string]bool // by run
	quarantine map[string]bool
}

func (c *cluster) take(frames []string) {
	for _, f := range frames {
		words := strings.Fields(f)
		switch run := strings.TrimPrefix(words[1], "n-"); words[0] {
		case "open", "closed":
			c.records[run] = true
		case "withdraw":
			delete(c.records, run)
		case "quarantine":
			c.quarantine[run] = true
		}
		if i := slices.Index(words, "settles"); i >= 0 {
			delete(c.quarantine, words[i+1])
		}
	}
}

// event is what the scheduler says of a run: running, good, failing, left out or
// no job at all.
func event(kind, run string) sdk.Batch {
	switch kind {
	case "running":
		return jobs(running(run))
	case "bad":
		return jobs(job(run, "alice", -1))
	case "left out":
		return jobs(excluded(job(run, "alice", 4)))
	case "torn":
		return sdk.Batch{Refused: []sdk.Refused{{Run: run, Message: "torn"}}}
	}
	return jobs(job(run, "alice", 4))
}

func TestAfterAnyHistoryQuarantineHoldsJustTheRunsThatFailedLast(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, buffer.Options{})
		c := &cluster{records: map[string]bool{}, quarantine: map[string]bool{}}
		last, forgot := map[string]string{}, map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			run := rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "run")
			kind := rapid.SampledFrom([]string{"running", "good", "bad", "left out", "torn", "restart"}).Draw(rt, "kind")
			if kind == "restart" {
				r.reopen()
				forgot["1"], forgot["2"] = true, true
				continue
			}
			r.sched.add(event(kind, run))
			r.collect()
			c.take(r.frames())
			if kind == "left out" && forgot[run] { // memory has gone: a collection of the window again takes it back
				delete(last, run)
			} else {
				last[run], forgot[run] = kind, false
			}
		}
		for run, kind := range last {
			failed := kind == "bad" || kind == "torn"
			if c.quarantine[run] != failed {
				rt.Errorf("run %s was last %s, in quarantine: %v", run, kind, c.quarantine[run])
			}
			if !failed && c.records[run] != (kind != "left out") {
				rt.Errorf("run %s was last %s, recorded: %v", run, kind, c.records[run])
			}
		}
		r.buffer.Close()
	})
}
