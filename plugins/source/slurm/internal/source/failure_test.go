package source

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/setting"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestNothingIsSkippedWhenSacctFails(t *testing.T) {
	for _, c := range []struct {
		name string
		db   fakesacct.DB
		want string
	}{
		{"status", fakesacct.DB{Exit: 3}, "exit status 3"},
		{"an error with status 0", fakesacct.DB{Stderr: "sacct: error: slurm_persist_conn_open: Connection refused\n"}, "Connection refused"},
		{"status and error", fakesacct.DB{Exit: 1, Stderr: "sacct: fatal: no database\n"}, "no database"},
		{"cut output", fakesacct.DB{Prefix: 300}, "ends after"},
		{"hangs", fakesacct.DB{Hang: true, Prefix: 300}, "no output for 5s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			patience := "1m"
			if c.db.Hang {
				patience = "5s"
			}
			s := newSite(t, text("timeout", patience))
			s.poll(0)
			before := string(s.checkpoint)
			for i := range 5 {
				s.job(strconv.Itoa(100+i), "COMPLETED", -2, -1.5, -0.01)
			}
			good := s.db
			s.db.Exit, s.db.Stderr, s.db.Prefix, s.db.Hang = c.db.Exit, c.db.Stderr, c.db.Prefix, c.db.Hang
			s.time = s.time.Add(2 * time.Hour)
			err := s.collect(sdk.Start{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
			if string(s.checkpoint) != before {
				t.Errorf("the checkpoint moved to %s", s.checkpoint)
			}
			s.db = good
			s.poll(3 * time.Hour)
			s.wantRuns("100", "101", "102", "103", "104")
		})
	}
}

func TestASacctThatIsNotThereIsAnError(t *testing.T) {
	s := newSite(t)
	s.source.sacct = (&setting.Sacct{Path: hcl.Absolute(s.dir + "/none"), Timeout: time.Second}).Client()
	if err := s.collect(sdk.Start{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

func TestHarmlessLinesOnStandardErrorAreIgnoredWhenToldSo(t *testing.T) {
	s := newSite(t, list("ignore_stderr", "can not load PMIx"))
	s.db.Stderr = "sacct: error: mpi/pmix can not load PMIx library\nsacct: some talk\n"
	s.db.Banner = "Welcome to the cluster\n"
	s.job("7", "COMPLETED", -2, -1.5, -1)
	s.poll(0)
	s.wantRuns("7")
}

func TestAWindowThatSlurmdbdRefusesIsCutSmaller(t *testing.T) {
	s := newSite(t, text("earliest", "2026-04-01"), text("window", "10d"))
	s.db.MaxRange = 3 * 86400
	for i := range 30 {
		s.job(strconv.Itoa(100+i), "COMPLETED", -float64(30-i)*24-2, -float64(30-i)*24-1, -float64(30-i)*24)
	}
	s.poll(0)
	if len(s.jobs) != 30 {
		t.Errorf("%d runs", len(s.jobs))
	}
}

func TestAllHistoryIsFoundWithoutAThousandCalls(t *testing.T) {
	s := newSite(t, text("earliest", "2008-01-01"))
	s.job("7", "COMPLETED", -90000, -89999, -89998)
	s.job("8", "COMPLETED", -5, -4, -3)
	s.poll(0)
	s.wantRuns("7", "8")
	if got := s.calls(); got > 200 {
		t.Errorf("%d calls", got)
	}
}

func TestARefusedRowIsNamedAsItsRunIsOnceItIsMended(t *testing.T) {
	s := newSite(t, list("clusters", "c1", "c2"))
	s.job("7", "what?", -2, -1.5, -1)
	s.job("8", "COMPLETED", -2, -1.5, -1, "Comment", strings.Repeat("x", 300<<10), "Cluster", "c2")
	s.job("9", "COMPLETED", -2, -1.5, -1)
	s.poll(0)
	s.wantRuns("c1/9")
	var got []string
	for _, r := range s.refused {
		got = append(got, r.Run)
	}
	slices.Sort(got)
	if want := []string{"c1/7", "c2/8"}; !cmp.Equal(got, want) {
		t.Errorf("refused %v, want %v", got, want)
	}
}

func TestAnOddRowIsRefusedOnceAndCostsNothingElse(t *testing.T) {
	s := newSite(t)
	s.job("7", "COMPLETED", -2, -1.5, -1)
	s.job("8", "what?", -2, -1.5, -1)
	s.step("8.batch", "MaxRSS", "5K")
	s.job("9", "COMPLETED", -2, -1.5, -1, "TotalCPU", "plenty")
	s.job("10", "COMPLETED", -2, -1.5, -1, "Comment", strings.Repeat("x", 300<<10))
	s.job("11", "COMPLETED", -2, -1.5, -1, "Comment", "a\nb\x1fc\xff|")
	s.job("12", "COMPLETED", -2, -1.5, -1)
	s.step("12.batch", "MaxRSS", "much")
	s.poll(0)
	s.poll(time.Minute)
	s.wantRuns("11", "12", "7", "9")
	var got []string
	for _, r := range s.refused {
		got = append(got, r.Run+": "+r.Message[:min(len(r.Message), 40)])
	}
	slices.Sort(got)
	want := []string{
		"10: column Comment is longer than 262144 byt",
		"8: column State: \"what?\" is not a state",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	for run, attribute := range map[string]string{"9": "cpu_seconds", "12": "max_rss_bytes"} {
		if !s.value(run, attribute).IsNull() {
			t.Errorf("%s of %s is known", attribute, run)
		}
	}
	if got := s.value("11", "Comment").Str(); got != "a\nb\x1fc\xff|" {
		t.Errorf("comment %q", got)
	}
}

func TestAClockThatWasAheadSkipsNothing(t *testing.T) {
	s := newSite(t)
	s.poll(0)
	s.poll(1000 * time.Hour) // the clock jumps ahead
	s.poll(-999 * time.Hour) // and is fixed
	s.job("7", "COMPLETED", 0.1, 0.2, 0.9)
	s.poll(time.Minute)
	s.wantRuns("7")
	if c, _ := decodeCheckpoint(s.checkpoint); c.Done.After(s.time) {
		t.Errorf("the checkpoint stays at %s", c.Done)
	}
}

func TestManyRunsGoInSeveralBatchesWithTheCheckpointLast(t *testing.T) {
	s := newSite(t)
	n := 2*batchRuns + 10
	for i := range n {
		s.job(strconv.Itoa(100+i), "COMPLETED", -2, -1.5, -1)
		s.step(fmt.Sprintf("%d.batch", 100+i), "MaxRSS", "1K")
	}
	fakesacct.Install(t, s.dir, &s.db)
	var sizes []int
	out := sdk.NewStream(job.Attributes(), func(_ context.Context, b sdk.Batch) error {
		sizes = append(sizes, len(b.Jobs))
		for _, j := range b.Jobs {
			s.jobs[j.Run] = j
		}
		if c, _ := decodeCheckpoint(b.Checkpoint); c.Done.Equal(noon()) && len(s.jobs) != n {
			t.Errorf("the checkpoint came after %d of %d runs", len(s.jobs), n)
		}
		return nil
	})
	if err := s.source.Collect(context.Background(), sdk.Start{}, out); err != nil {
		t.Fatal(err)
	}
	if len(s.jobs) != n || slices.Max(sizes) > batchRuns {
		t.Errorf("%d runs in batches of %v", len(s.jobs), sizes)
	}
	for run := range s.jobs {
		if v := s.value(run, "max_rss_bytes"); v.Int() != 1024 {
			t.Fatalf("run %s lost its step: %v", run, v)
		}
	}
}

func TestCollectEndsSoonWhenTheDaemonLeaves(t *testing.T) {
	s := newSite(t)
	s.db.Hang = true
	fakesacct.Install(t, s.dir, &s.db)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	out := sdk.NewStream(job.Attributes(), func(context.Context, sdk.Batch) error { return nil })
	if err := s.source.Collect(ctx, sdk.Start{}, out); err == nil {
		t.Error("no error")
	}
}

func TestACheckpointThatCannotBeUnderstoodIsAnError(t *testing.T) {
	s := newSite(t)
	for _, c := range []string{"x", `{"v":2,"done":1}`, `{"v":1,"done":-1}`, `{"v":1,"done":1,"open":[[1]]}`, `{"v":1,"done":1,"open":[["c",-1,1,1,"7",false]]}`} {
		s.checkpoint = []byte(c)
		if err := s.collect(sdk.Start{}); err == nil || !strings.Contains(err.Error(), "checkpoint") {
			t.Errorf("%s: %v", c, err)
		}
	}
}

func TestAPassThatFailsSaysNothingOfHowCompleteItIsAndTellsNoFacts(t *testing.T) {
	s, _ := newCluster(t)
	s.poll(0)
	mark, before := s.watermark, s.facts
	s.db.Exit, s.time = 1, s.time.Add(2*time.Hour)
	if err := s.collect(sdk.Start{}); err == nil {
		t.Fatal("sacct failed and the pass did not")
	}
	if !s.watermark.Equal(mark) || len(s.facts.census) != len(before.census) {
		t.Errorf("watermark %s after %s, %+v", s.watermark, mark, s.facts)
	}
	s.db.Exit = 0
	s.poll(time.Minute)
	if !s.watermark.Equal(s.time.Add(-2 * time.Minute)) {
		t.Errorf("watermark %s at %s", s.watermark, s.time)
	}
}
