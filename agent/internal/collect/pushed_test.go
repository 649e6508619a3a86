package collect_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// newPushed is a rig whose source hands on what was pushed.
func newPushed(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, buffer.Options{})
	r.sched.pushed = true
	return r
}

func pushed(id string, stop record.Time) record.Record {
	return record.Record{ID: id, Start: 1, Stop: stop, Submit: record.None, Components: []record.Component{{Name: "Cores", Amount: 4}}}
}

// whole are the frames since the last call, each with whom it is of.
func (r *rig) whole() (out []string, observed []int64) {
	r.t.Helper()
	chunks, end, err := r.buffer.Read(r.seen, 1<<30)
	if err != nil {
		r.t.Fatal(err)
	}
	r.seen = end
	for _, raw := range chunks {
		chunk, err := frame.Parse(raw)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, text := range chunk.Frames() {
			var f wire.Frame
			if err := wire.DecodeFrame(text, &f); err != nil {
				r.t.Fatal(err)
			}
			if f.Kind == wire.KindCheckpoint {
				continue
			}
			out = append(out, fmt.Sprintf("%s/%s %s ended=%v %s %s", f.SourceType, f.SourceLabel, f.Rank, f.Version.Ended, f.Kind, f.ID+f.Quarantine.RecordID))
			observed = append(observed, f.Version.Observed)
		}
	}
	return out, observed
}

func (r *rig) wantWhole(want ...string) {
	r.t.Helper()
	got, observed := r.whole()
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Fatalf("frames (-want +got):\n%s", diff)
	}
	for i := 1; i < len(observed); i++ {
		if observed[i] <= observed[i-1] {
			r.t.Errorf("observed goes back: %v", observed)
		}
	}
}

func TestWhatWasPushedGoesOnAsAStatementOfTheOriginThatAllPushesShare(t *testing.T) {
	r := newPushed(t)
	r.sched.add(sdk.Batch{
		Records: []record.Record{pushed("open", record.None), pushed("closed", 5)},
		Stops:   []sdk.Stop{{ID: "open", At: 9}, {ID: "elsewhere", At: 9}},
		Refused: []sdk.Refused{{Message: "no JSON", Raw: []byte("{")}},
	})
	r.collect()
	r.wantWhole(
		"/ pushed ended=false record open",
		"/ pushed ended=true record closed",
		"/ pushed ended=true stop open",
		"/ pushed ended=true stop elsewhere",
		"fake/f pushed ended=false quarantine ",
	)
	if c := r.loop.Status().Counts; c.Records != 4 || c.Refused != 1 || c.Unchanged != 0 {
		t.Errorf("%+v", c)
	}
}

func TestAPushThatComesAgainIsNotSwallowed(t *testing.T) {
	r := newPushed(t)
	again := sdk.Batch{Records: []record.Record{pushed("a", record.None)}, Stops: []sdk.Stop{{ID: "a", At: 9}}}
	r.sched.add(again, again)
	r.collect()
	if got, _ := r.whole(); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

func TestWhatIsNotValidOfAPushGoesToQuarantineAndTheOthersGoOn(t *testing.T) {
	r := newPushed(t)
	bad := pushed("bad", 5)
	bad.Components[0].Amount = -1
	odd := pushed("odd", 5)
	odd.Components[0].Scores = []record.Score{{Name: "s", Value: math.NaN()}}
	r.sched.add(sdk.Batch{
		Records: []record.Record{bad, odd, pushed("good", 5)},
		Stops:   []sdk.Stop{{ID: " ", At: 9}, {ID: "never", At: record.None}, {ID: "good", At: 9}},
	})
	r.collect()
	r.wantWhole(
		"fake/f pushed ended=false quarantine bad",
		"fake/f pushed ended=false quarantine odd",
		"/ pushed ended=true record good",
		"fake/f pushed ended=false quarantine  ",
		"fake/f pushed ended=false quarantine never",
		"/ pushed ended=true stop good",
	)
	if c := r.loop.Status().Counts; c.Records != 2 || c.Quarantined != 4 {
		t.Errorf("%+v", c)
	}
}

func TestASourceSendsEitherJobsOrWhatWasPushed(t *testing.T) {
	r := newPushed(t)
	r.sched.add(sdk.Batch{Refused: []sdk.Refused{{Run: "x", Message: "m"}}})
	r.collect()
	r.wantWhole("fake/f pushed ended=false quarantine ")

	jobs := newRig(t, buffer.Options{})
	jobs.sched.add(sdk.Batch{Records: []record.Record{pushed("a", 5)}, Stops: []sdk.Stop{{ID: "a", At: 9}}, Jobs: []sdk.Job{job("1", "alice", 4)}})
	jobs.collect()
	jobs.wantWhole("fake/f scheduler ended=true record n-1", "fake/f scheduler ended=false quarantine ")
}

func TestAllThatIsPushedAtOnceIsOneTransaction(t *testing.T) {
	r := newPushed(t)
	var b sdk.Batch
	for i := range 20 {
		rec := pushed(fmt.Sprint(i), 5)
		rec.Meta = record.Meta{{Key: "k", Values: make([]string, 0, 1000)}}
		for range 1000 {
			rec.Meta[0].Values = append(rec.Meta[0].Values, strings.Repeat("x", 200))
		}
		b.Records = append(b.Records, rec)
	}
	r.sched.add(b)
	r.collect()
	if got, _ := r.whole(); len(got) != 20 {
		t.Errorf("%d frames", len(got))
	}
	if n := r.sched.acknowledged(); n != 1 {
		t.Errorf("%d batches", n)
	}
}

func TestARecordBlockOfASourceWithoutAMappingIsRefused(t *testing.T) {
	r := newPushed(t)
	r.record = "meta = { site = \"x\" }\n"
	_, err := r.Plugin(t.Context())
	if err == nil || !strings.Contains(err.Error(), "hands on whole records") || !strings.Contains(err.Error(), "agent.hcl") {
		t.Error(err)
	}
}

func TestWhatWasPushedCannotBeTriedAgain(t *testing.T) {
	r := newPushed(t)
	if err := r.loop.Retry(t.Context(), "x", []byte("{}")); err == nil || !strings.Contains(err.Error(), "push it again") {
		t.Error(err)
	}
}
