package source

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestMain(m *testing.M) {
	fakesacct.Main()
	// With the race detector every fake sacct would wait a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
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
	facts      said
	fail       int // batches after which the daemon fails; -1 never
}

// said is what came beside jobs.
type said struct {
	capacity  []sdk.Capacity
	census    []sdk.Census
	directory [][]sdk.Person
}

func (f *said) take(b sdk.Batch) {
	if b.Capacity != nil {
		f.capacity = append(f.capacity, *b.Capacity)
	}
	if b.Census != nil {
		f.census = append(f.census, *b.Census)
	}
	if len(b.Directory) > 0 {
		f.directory = append(f.directory, b.Directory)
	}
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
		for _, f := range j.Formerly {
			delete(s.jobs, f.Run)
		}
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
	s.facts.take(b)
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

// calls counts those of sacct.
func (s *site) calls() int {
	other := regexp.MustCompile("^(scontrol|squeue|sacctmgr|getent) ")
	return len(slices.DeleteFunc(fakesacct.Calls(s.t, s.dir), other.MatchString))
}
