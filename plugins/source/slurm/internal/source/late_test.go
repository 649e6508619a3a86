package source

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestARunThatSlurmdbdGotLateIsFoundByTheOverlap(t *testing.T) {
	s := newSite(t)
	s.poll(0)
	s.job("7", "COMPLETED", -2, -1.5, -0.9)
	s.poll(time.Minute)
	s.wantRuns("7")
}

func TestARunThatSlurmdbdGotVeryLateIsFoundByTheDeepOverlap(t *testing.T) {
	s := newSite(t)
	s.poll(0)
	s.poll(time.Minute)
	s.job("7", "COMPLETED", -32, -31, -30)
	s.poll(time.Minute)
	s.wantRuns()
	s.poll(7 * time.Hour)
	s.wantRuns("7")
}

func TestCollect_SummaryOfJobstatsAfterTheEnd_UpdatesTheRun(t *testing.T) {
	s := newSite(t)
	s.db.Columns = append(s.db.Columns, "AdminComment")
	s.job("7", "COMPLETED", -2, -1, -0.1)
	s.poll(0)
	if v := s.value("7", "jobstats_cpu_seconds"); !v.IsNull() {
		t.Error(v.Int())
	}
	s.job("7", "COMPLETED", -2, -1, -0.1, "AdminComment", fakesacct.Jobstats(t, strings.NewReader(`{"nodes":{"n1":{"total_time":7.2}}}`)))
	s.poll(time.Minute)
	if v := s.value("7", "jobstats_cpu_seconds"); v.Int() != 7 {
		t.Error(v.IsNull(), v.Int())
	}
}

func TestTheFirstPollAfterARestartLooksBackDeeply(t *testing.T) {
	s := newSite(t)
	s.poll(0)
	s.job("7", "COMPLETED", -32, -31, -30)
	s.restart()
	s.poll(time.Minute)
	s.wantRuns("7")
}

func TestAnOpenRunWhoseEndWasSetLongAgoIsAskedForByID(t *testing.T) {
	s := newSite(t, text("earliest", "2026-01-01"), text("window", "40d"))
	s.job("7", "RUNNING", -2000, -1999, never) // a runaway
	s.poll(0)
	s.wantRuns("7 open")
	s.restart(text("earliest", "2026-01-01")) // the checkpoint remembers
	s.job("7", "COMPLETED", -2000, -1999, -1998)
	s.poll(time.Minute)
	s.wantRuns("7")
}

func TestAnOpenRunThatSlurmdbdForgetsIsTakenBackAfterADay(t *testing.T) {
	s := newSite(t)
	s.job("7", "RUNNING", -1, -0.5, never)
	s.poll(0)
	s.db.Rows = nil
	s.poll(time.Minute)
	s.poll(time.Hour)
	s.wantRuns("7 open")
	s.poll(25 * time.Hour)
	s.wantRuns()
	before := s.calls()
	s.poll(time.Minute)
	if got := s.calls() - before; got != 2 {
		t.Errorf("%d calls after it was taken back", got)
	}
}

func TestSeveralClustersDoNotMix(t *testing.T) {
	s := newSite(t, list("clusters", "c1", "c2"))
	s.job("7", "COMPLETED", -5, -4, -3)
	s.job("7", "COMPLETED", -2, -1.5, -1, "Cluster", "c2")
	s.job("7", "COMPLETED", -2, -1.5, -1, "Cluster", "c3")
	s.poll(0)
	s.wantRuns("c1/7", "c2/7")
	if got := s.value("c2/7", "qualified_id").Str(); got != "c2-7" {
		t.Errorf("qualified_id %s", got)
	}
}

func TestARewindLooksBackAsFarAsItIsAskedTo(t *testing.T) {
	s := newSite(t)
	s.job("7", "COMPLETED", -45, -44, -43)
	s.job("8", "COMPLETED", -5, -4, -3)
	s.poll(0)
	s.poll(time.Minute)
	if len(s.sent) != 0 {
		t.Fatalf("sent %v", s.sent)
	}
	if err := s.collect(sdk.Start{Rewind: 48 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"7", "8"}; !cmp.Equal(s.sent, want) {
		t.Errorf("sent %v, want %v", s.sent, want)
	}
	if c, _ := decodeCheckpoint(s.checkpoint); c.Done.Before(noon().Add(time.Minute)) {
		t.Errorf("the checkpoint went back to %s", c.Done)
	}
}

func TestAWindowIsCollectedAgainWithoutAWordOnTheCheckpoint(t *testing.T) {
	s := newSite(t)
	s.job("7", "COMPLETED", -45, -44, -43)
	s.job("8", "COMPLETED", -5, -4, -3)
	s.job("9", "RUNNING", -50, -49, never)
	s.poll(0)
	before, mark := string(s.checkpoint), s.watermark
	w := &sdk.Window{From: noon().Add(-48 * time.Hour), To: noon().Add(-40 * time.Hour)}
	if err := s.collect(sdk.Start{Window: w}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"7"}; !cmp.Equal(s.sent, want) {
		t.Errorf("sent %v, want %v", s.sent, want)
	}
	if string(s.checkpoint) != before || !s.watermark.Equal(mark) {
		t.Errorf("checkpoint %s, watermark %s", s.checkpoint, s.watermark)
	}
}

// The last task of an array, of whose end slurmdbd heard before its start.
func TestARowThatSlurmdbdHasHalfIsLeftForTheNextLook(t *testing.T) {
	s := newSite(t)
	s.job("11", "COMPLETED", -0.01, -0.01, -0.005, "Partition", "")
	s.job("30", "COMPLETED", -0.01, -0.01, -0.005, "Partition", "")
	s.job("12", "COMPLETED", -0.01, -0.01, -0.005)
	s.poll(0)
	s.wantRuns("12")
	s.job("11", "COMPLETED", -0.01, -0.01, -0.005, "JobID", "10_1")
	s.poll(time.Minute)
	s.wantRuns("10_1", "12")
	s.poll(10 * time.Minute) // no one will say more of it
	s.wantRuns("10_1", "12", "30")
}
