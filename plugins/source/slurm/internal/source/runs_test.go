package source

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestABackfillSendsEveryRunOnceAndEndsAtNow(t *testing.T) {
	s := newSite(t)
	var want []string
	for i := range 60 {
		id := strconv.Itoa(100 + i)
		s.job(id, "COMPLETED", -float64(60-i)-5, -float64(60-i)-4, -float64(60-i)*0.9)
		s.step(id+".batch", "MaxRSS", "100K")
		if end := -float64(60-i) * 0.9; end >= -60 { // earliest
			want = append(want, id)
		}
	}
	s.poll(0)
	s.wantRuns(want...)
	if len(s.sent) != len(want) {
		t.Errorf("%d jobs were sent for %d runs", len(s.sent), len(want))
	}
	if got := s.watermark; !got.Equal(noon().Add(-2 * time.Minute)) {
		t.Errorf("watermark %s", got)
	}
	c, err := decodeCheckpoint(s.checkpoint)
	if err != nil || !c.Done.Equal(noon()) {
		t.Errorf("checkpoint %v, %v", c, err)
	}
	if v := s.value("159", "max_rss_bytes"); v.Int() != 100<<10 {
		t.Errorf("max_rss_bytes %v", v)
	}
}

func TestWindowsGrowWhereAFewJobsComeEvenly(t *testing.T) {
	s := newSite(t, text("earliest", "2025-05-10"))
	for i := range 365 * 4 { // each runs for a week, so 28 at a time
		end := float64(-6 * i)
		s.job(strconv.Itoa(i), "COMPLETED", end-168, end-168, end)
	}
	s.poll(0)
	if len(s.jobs) != 365*4 || len(s.sent) != len(s.jobs) {
		t.Errorf("%d runs, %d sent", len(s.jobs), len(s.sent))
	}
	if calls := s.calls(); calls > 60 {
		t.Errorf("%d calls of sacct for a year", calls)
	}
}

func TestABackfillTellsItsProgressAndWhatIsLeft(t *testing.T) {
	s := newSite(t, text("window", "12h"))
	began := time.Time{}
	s.source.now = func() time.Time {
		if began.IsZero() {
			began = s.time
			return began
		}
		return began.Add(10 * time.Second)
	}
	for i := range 10 {
		s.job(strconv.Itoa(i), "COMPLETED", -50, -49, -48+float64(i))
	}
	s.poll(0)
	first := s.progress[0]
	if first.Unit != "hours" || first.Done != 12 || first.Total != 60 || !strings.Contains(first.At, "2026-05-08T12:00:00Z, about 40s left") {
		t.Errorf("%+v", first)
	}
	if last := s.progress[len(s.progress)-1]; last.Done != last.Total {
		t.Errorf("%+v", last)
	}
}

func TestABackfillResumesBehindTheLastWindowThatTheDaemonHas(t *testing.T) {
	s := newSite(t, text("window", "6h"))
	for i := range 40 {
		s.job(strconv.Itoa(100+i), "COMPLETED", -60, -59, -58+float64(i)*1.4)
	}
	s.fail = 2
	if err := s.collect(sdk.Start{}); err == nil {
		t.Fatal("the daemon's failure was hidden")
	}
	before := len(s.jobs)
	if before == 0 || before == 40 {
		t.Fatalf("%d runs before the failure", before)
	}
	s.fail = -1
	s.restart(text("window", "6h"), text("deep_overlap", "1h"))
	s.poll(time.Minute)
	if len(s.jobs) != 40 {
		t.Errorf("%d runs of 40", len(s.jobs))
	}
	if len(s.sent) >= 40 {
		t.Errorf("all %d were sent again", len(s.sent))
	}
}

func TestRunsAcrossWindowsAreSentInTheWindowOfTheirEnd(t *testing.T) {
	s := newSite(t, text("window", "6h"))
	s.job("1", "COMPLETED", -59, -58, -1)  // over nine windows
	s.job("2", "COMPLETED", -59, -58, -54) // ends on a window's edge
	s.job("3", "RUNNING", -59, -58, never)
	s.poll(0)
	s.wantRuns("1", "2", "3 open")
	if len(s.sent) != 3 {
		t.Errorf("sent %v", s.sent)
	}
}

func TestARunIsOpenUntilItEnds(t *testing.T) {
	s := newSite(t)
	s.job("7", "RUNNING", -1, -0.5, never)
	s.poll(0)
	s.wantRuns("7 open")
	s.job("7", "COMPLETED", -1, -0.5, 0.01)
	s.poll(time.Minute)
	s.wantRuns("7")
	if got := s.value("7", "End").Time(); !got.Equal(noon().Add(36 * time.Second)) {
		t.Errorf("end %s", got)
	}
}

func TestASuspendedRunIsOpen(t *testing.T) {
	s := newSite(t)
	s.job("7", "SUSPENDED", -1, -0.5, never)
	s.poll(0)
	s.wantRuns("7 open")
}

func TestOpenRunsAreNotSentWhenTheyAreNotWanted(t *testing.T) {
	s := newSite(t, sdk.Node{Name: "running", Value: sdk.Bool(false)})
	s.job("7", "RUNNING", -1, -0.5, never)
	s.poll(0)
	s.wantRuns()
	s.job("7", "COMPLETED", -1, -0.5, 0.01)
	s.poll(time.Minute)
	s.wantRuns("7")
}

func TestACloseInAStateThatIsNotWantedTakesTheRunBack(t *testing.T) {
	s := newSite(t, list("states", "completed", "TO"))
	s.job("7", "RUNNING", -1, -0.5, never)
	s.job("8", "TIMEOUT", -1, -0.5, -0.1)
	s.poll(0)
	s.wantRuns("7 open", "8")
	s.job("7", "FAILED", -1, -0.5, 0.01)
	s.poll(time.Minute)
	s.wantRuns("8")
	if j := s.jobs["7"]; !j.Excluded || !j.Ended || s.value("7", "qualified_id").Str() != "7" {
		t.Errorf("%+v", j)
	}
}

func TestFiltersChooseByUserGroupAccountAndPartition(t *testing.T) {
	for _, c := range []struct {
		key  sdk.Node
		want []string
	}{
		{list("partitions", "gpu", "long"), []string{"2"}},
		{list("users", "bob", "carol"), []string{"3"}},
		{list("users", "1002"), []string{"3"}},
		{list("groups", "chem"), []string{"4"}},
		{list("groups", "2002"), []string{"4"}},
		{list("accounts", "grant"), []string{"5"}},
		{list("accounts", "none"), nil},
		{list("states", "OOM"), []string{"6"}},
		{text("earliest", "2026-05-10T11:30:00Z"), []string{"7"}},
	} {
		s := newSite(t, c.key)
		s.job("1", "COMPLETED", -2, -1.5, -1)
		s.job("2", "COMPLETED", -2, -1.5, -1, "Partition", "gpu")
		s.job("3", "COMPLETED", -2, -1.5, -1, "User", "bob", "UID", "1002")
		s.job("4", "COMPLETED", -2, -1.5, -1, "Group", "chem", "GID", "2002")
		s.job("5", "COMPLETED", -2, -1.5, -1, "Account", "grant")
		s.job("6", "OUT_OF_MEMORY", -2, -1.5, -1)
		s.job("7", "COMPLETED", -2, -1.5, -0.2)
		s.poll(0)
		s.wantRuns(c.want...)
	}
}

func TestRequeuedRunsHaveIDsOfTheirOwnInWhateverWindowTheyAreMet(t *testing.T) {
	early, late := noon().Add(-50*time.Hour).Unix(), noon().Add(-20*time.Hour).Unix()
	names := []string{"7", fmt.Sprintf("7-%d", early), fmt.Sprintf("7-%d", late)}
	build := func(keys ...sdk.Node) *site {
		s := newSite(t, keys...)
		s.job("7", "REQUEUED", -59, -58, -57)
		s.job("7", "PREEMPTED", -50, -49, -48)
		s.job("7", "COMPLETED", -20, -19, -18)
		return s
	}
	s := build()
	s.poll(0)
	s.wantRuns(names...)
	s = build(text("window", "1h"))
	s.poll(0)
	s.wantRuns(names...)
	// Only the last run is in reach.
	s = build(text("earliest", "2026-05-09T12:00:00Z"))
	s.poll(0)
	s.wantRuns(names[2])
	if got := s.value(names[2], "id").Str(); got != names[2] {
		t.Errorf("id %s", got)
	}
}

func TestARunOfARestartedJobIsALaterOneThoughItsFirstRunIsGone(t *testing.T) {
	s := newSite(t)
	s.db.Columns = append(s.db.Columns, "Restarts")
	s.job("7", "COMPLETED", -20, -19, -18, "Restarts", "1")
	s.job("8", "COMPLETED", -20, -19, -18, "Restarts", "0")
	s.poll(0)
	s.wantRuns(fmt.Sprintf("7-%d", noon().Add(-20*time.Hour).Unix()), "8")
}

func TestEarlierRunsAreAskedForOncePerJob(t *testing.T) {
	s := newSite(t)
	for i := range 30 {
		s.job(strconv.Itoa(100+i), "COMPLETED", -2, -1.5, -0.5)
	}
	s.poll(0)
	s.poll(time.Minute)
	before := s.calls()
	s.poll(time.Minute)
	if got := s.calls() - before; got != 2 { // columns and one window
		t.Errorf("%d calls of sacct for a poll without news", got)
	}
	if len(s.sent) != 30 {
		t.Errorf("the overlap gave %d runs again", len(s.sent))
	}
}

func TestArraysAndHeterogeneousJobsKeepTheirNames(t *testing.T) {
	s := newSite(t)
	s.job("16", "COMPLETED", -2, -1.5, -1, "JobID", "5_1")
	s.job("5", "COMPLETED", -2, -1.5, -1, "JobID", "5_4")
	s.job("6", "PENDING", -2, never, never, "JobID", "6_[1-4%2]")
	s.job("19", "COMPLETED", -2, -1.5, -1, "JobID", "19+0")
	s.job("20", "COMPLETED", -2, -1.5, -1, "JobID", "19+1")
	s.poll(0)
	s.wantRuns("5_1", "5_4", "19+0", "19+1")
}

func TestJobsThatNeverStartedAreCountedOnce(t *testing.T) {
	s := newSite(t)
	s.job("7", "CANCELLED by 1001", -2, never, -0.5)
	s.job("8", "PENDING", -2, never, never)
	s.poll(0)
	s.poll(time.Minute)
	s.wantRuns()
	if s.skipped != 1 {
		t.Errorf("%d were counted", s.skipped)
	}
}

func TestWithoutStepsARunIsTheSame(t *testing.T) {
	s := newSite(t)
	s.source.wants = func(attribute string) bool { return attribute == "id" || attribute == "AllocCPUS" }
	s.job("7", "COMPLETED", -2, -1.5, -1)
	s.step("7.batch", "MaxRSS", "1M")
	s.job("8", "RUNNING", -2, -1.5, never)
	s.poll(0)
	s.wantRuns("7", "8 open")
	if got := s.value("7", "AllocCPUS").Int(); got != 1 {
		t.Errorf("AllocCPUS %d", got)
	}
	for _, call := range fakesacct.Calls(t, s.dir)[1:] {
		if !strings.Contains(call, "--allocations") {
			t.Errorf("steps were asked for: %s", call)
		}
	}
}

func TestStepsOfEveryKindBelongToTheirJob(t *testing.T) {
	s := newSite(t)
	s.job("7", "COMPLETED", -2, -1.5, -1, "TotalCPU", "")
	for i, step := range []string{"7.batch", "7.extern", "7.interactive", "7.0", "7.1", "7.2+1"} {
		s.step(step, "MaxRSS", strconv.Itoa(i+1)+"M", "TotalCPU", "00:00.500")
	}
	s.job("8", "COMPLETED", -2, -1.5, -1, "JobID", "5_2")
	s.step("8.interactive", "JobID", "5_2.interactive", "MaxRSS", "1K")
	s.job("20", "COMPLETED", -2, -1.5, -1, "JobID", "19+1")
	s.step("20.0", "JobID", "19+1.0", "MaxRSS", "2K")
	s.poll(0)
	s.wantRuns("7", "5_2", "19+1")
	for _, c := range []struct {
		run, attribute string
		want           int64
	}{
		{"7", "steps", 6}, {"7", "max_rss_bytes", 6 << 20}, {"7", "max_rss_sum_bytes", 21 << 20}, {"7", "cpu_seconds", 3},
		{"5_2", "max_rss_bytes", 1024}, {"19+1", "max_rss_bytes", 2048},
	} {
		if got := s.value(c.run, c.attribute).Int(); got != c.want {
			t.Errorf("%s of %s: %d, want %d", c.attribute, c.run, got, c.want)
		}
	}
}
