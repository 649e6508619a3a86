package source

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/job"
)

func TestMain(m *testing.M) {
	fakesacct.Main()
	os.Exit(m.Run())
}

// site is a Slurm, and a source with the daemon that listens to it.
type site struct {
	t      *testing.T
	dir    string
	db     fakesacct.DB
	source *Source
	time   time.Time

	checkpoint []byte
	watermark  time.Time
	progress   []sdk.Progress
	jobs       map[string]sdk.Job // the last word on each run
	sent       []string           // names in order
	refused    []sdk.Refused
	skipped    int64
	fail       int // batches after which the daemon fails; -1 never
}

func noon() time.Time { return time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC) }

func newSite(t *testing.T, keys ...sdk.Node) *site {
	s := &site{t: t, dir: t.TempDir(), time: noon(), jobs: map[string]sdk.Job{}, fail: -1}
	s.db.Columns = []string{"JobIDRaw", "JobID", "State", "Submit", "Eligible", "Start", "End", "Cluster", "User", "UID", "Group", "GID",
		"Account", "Partition", "AllocNodes", "AllocTRES", "AllocCPUS", "TotalCPU", "MaxRSS", "Comment", "ReqMem", "ElapsedRaw"}
	s.restart(keys...)
	return s
}

// restart is a new plugin process.
func (s *site) restart(keys ...sdk.Node) {
	s.t.Helper()
	s.source = New(slog.New(slog.DiscardHandler))
	s.source.now = func() time.Time { return s.time }
	path := fakesacct.Install(s.t, s.dir, &s.db)
	keys = append([]sdk.Node{text("sacct", path)}, keys...)
	if !slices.ContainsFunc(keys, func(n sdk.Node) bool { return n.Name == "earliest" }) {
		keys = append(keys, text("earliest", "2026-05-08"))
	}
	if err := s.source.Configure(context.Background(), sdk.NewConfig("test", sdk.Node{IsBlock: true, Children: keys})); err != nil {
		s.t.Fatal(err)
	}
}

func text(name, value string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String(value)} }

func list(name string, values ...string) sdk.Node {
	return sdk.Node{Name: name, Value: sdk.Strings(values...)}
}

// never is no time. Times are hours from noon.
const never = -1000.0

func (s *site) job(id, state string, submit, start, end float64, more ...string) {
	at := func(h float64) string {
		if h == never {
			return "Unknown"
		}
		return strconv.FormatInt(noon().Add(time.Duration(h*float64(time.Hour))).Unix(), 10)
	}
	r := fakesacct.Row{"JobIDRaw": id, "JobID": id, "State": state, "Submit": at(submit), "Eligible": at(submit), "Start": at(start), "End": at(end),
		"Cluster": "c1", "User": "alice", "UID": "1001", "Group": "phys", "GID": "1001", "Account": "physics", "Partition": "cpu",
		"AllocNodes": "1", "AllocTRES": "cpu=1,mem=1G", "AllocCPUS": "1", "TotalCPU": "00:01.000", "ReqMem": "1G"}
	for i := 0; i < len(more); i += 2 {
		r[more[i]] = more[i+1]
	}
	for i, old := range s.db.Rows {
		if old["JobIDRaw"] == id && old["Submit"] == r["Submit"] && old["Cluster"] == r["Cluster"] {
			s.db.Rows[i] = r
			return
		}
	}
	s.db.Rows = append(s.db.Rows, r)
}

// step adds a step to the last job.
func (s *site) step(id string, columns ...string) {
	r := fakesacct.Row{"JobIDRaw": id, "JobID": id, "State": "COMPLETED", "Submit": "1", "Start": "1", "End": "2", "Cluster": "c1"}
	for i := 0; i < len(columns); i += 2 {
		r[columns[i]] = columns[i+1]
	}
	s.db.Rows = append(s.db.Rows, r)
}

// collect lets the source collect as the daemon does.
func (s *site) collect(from sdk.Start) error {
	s.t.Helper()
	fakesacct.Install(s.t, s.dir, &s.db)
	s.sent = nil
	if from.Window == nil {
		from.Checkpoint = s.checkpoint
	}
	batches := 0
	out := sdk.NewStream(job.Attributes(), func(_ context.Context, b sdk.Batch) error {
		if batches == s.fail {
			return fmt.Errorf("the daemon's disk is full")
		}
		batches++
		s.take(b)
		return nil
	})
	return s.source.Collect(context.Background(), from, out)
}

func (s *site) take(b sdk.Batch) {
	for _, j := range b.Jobs {
		s.jobs[j.Run] = j
		s.sent = append(s.sent, j.Run)
	}
	if b.Checkpoint != nil {
		s.checkpoint = b.Checkpoint
	}
	if !b.Watermark.IsZero() {
		s.watermark = b.Watermark
	}
	if b.Progress != nil {
		s.progress = append(s.progress, *b.Progress)
	}
	s.refused = append(s.refused, b.Refused...)
	s.skipped += b.Skipped
}

func (s *site) poll(after time.Duration) {
	s.t.Helper()
	s.time = s.time.Add(after)
	if err := s.collect(sdk.Start{}); err != nil {
		s.t.Fatal(err)
	}
}

// wantRuns compares the runs that the daemon would keep.
func (s *site) wantRuns(want ...string) {
	s.t.Helper()
	var got []string
	for run, j := range s.jobs {
		if j.Excluded {
			continue
		}
		if !j.Ended {
			run += " open"
		}
		got = append(got, run)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func (s *site) value(run, attribute string) sdk.Value {
	s.t.Helper()
	j, ok := s.jobs[run]
	if !ok {
		s.t.Fatalf("there is no run %s among %v", run, slices.Collect(maps.Keys(s.jobs)))
	}
	return j.Values[slices.IndexFunc(job.Attributes(), func(a sdk.Attribute) bool { return a.Name == attribute })]
}

func (s *site) calls() int { return len(fakesacct.Calls(s.t, s.dir)) }

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
		{"hangs", fakesacct.DB{Hang: true, Prefix: 300}, "no output for 1s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, text("timeout", "1s"))
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
	s.source.sacct = (&config{sacct: s.dir + "/none", timeout: time.Second}).client()
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
	s.wantRuns("7", "11")
	var got []string
	for _, r := range s.refused {
		got = append(got, r.Run+": "+r.Message[:min(len(r.Message), 40)])
	}
	slices.Sort(got)
	want := []string{
		"10: column Comment is longer than 262144 byt",
		"12: max_rss_bytes: step 12.batch: MaxRSS: \"m",
		"8: State: \"what?\" is no state",
		"9: cpu_seconds: TotalCPU: \"plenty\" is no du",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if got := s.value("11", "Comment").Str(); got != "a\nb\x1fc\xff|" {
		t.Errorf("comment %q", got)
	}
}

func TestAClockThatWasAheadSkipsNothing(t *testing.T) {
	s := newSite(t)
	s.poll(0)
	s.poll(1000 * time.Hour) // the clock jumps ahead
	s.poll(-999 * time.Hour) // and is mended
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
