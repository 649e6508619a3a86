package source

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// site is a cell of Grid Engine, and a source with the daemon that listens to it.
type site struct {
	t      *testing.T
	dir    string
	path   string // of the accounting file
	time   time.Time
	source *Source
	next   int // number of the next job

	checkpoint []byte
	jobs       map[string]sdk.Job // the last word on each run
	sent       []string           // names in order, of the last Collect
	refused    []sdk.Refused
	skipped    int64
	gaps       []sdk.Gap
	watermark  time.Time
	progress   []sdk.Progress
	capacity   []sdk.Capacity
	census     []sdk.Census
	directory  [][]sdk.Person
	fail       int // batches after which the daemon fails; -1 never
}

func noon() time.Time { return time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC) }

func newSite(t *testing.T, keys ...sdk.Node) *site {
	dir := t.TempDir()
	s := &site{t: t, dir: dir, path: filepath.Join(dir, "default/common/accounting"), time: noon(), next: 1, jobs: map[string]sdk.Job{}, fail: -1}
	s.must(os.MkdirAll(filepath.Dir(s.path), 0o755))
	s.restart(keys...)
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// restart is a new plugin process.
func (s *site) restart(keys ...sdk.Node) {
	s.t.Helper()
	s.must(s.configure(keys...))
}

func (s *site) configure(keys ...sdk.Node) error {
	s.source = New(slog.New(slog.DiscardHandler))
	s.source.now = func() time.Time { return s.time }
	if !slices.ContainsFunc(keys, func(n sdk.Node) bool { return n.Name == "sge_root" }) {
		keys = append(keys, text("sge_root", s.dir))
	}
	for _, fact := range []string{facts.Capacity, facts.Census, facts.Directory} { // this machine may have the commands
		if !slices.ContainsFunc(keys, func(n sdk.Node) bool { return n.Name == fact }) {
			keys = append(keys, sdk.Node{Name: fact, Value: sdk.Bool(false)})
		}
	}
	return s.source.Configure(context.Background(), sdk.NewConfig("test", sdk.Node{IsBlock: true, Children: keys}))
}

func text(name, value string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String(value)} }

func list(name string, values ...string) sdk.Node {
	return sdk.Node{Name: name, Value: sdk.Strings(values...)}
}

func block(name, label string, children ...sdk.Node) sdk.Node {
	return sdk.Node{Name: name, IsBlock: true, Labels: []string{label}, Children: children}
}

// job is a line of 45 columns; ends are minutes from noon.
func job(number int, end float64, changes ...string) string {
	stop := noon().Add(time.Duration(end * float64(time.Minute)))
	f := map[string]string{"owner": "alice", "start": fmt.Sprint(stop.Unix() - 60), "task": "0", "pe": "NONE", "petask": "NONE", "queue": "all.q", "category": "NONE", "failed": "0", "project": "NONE"}
	for i := 0; i < len(changes); i += 2 {
		f[changes[i]] = changes[i+1]
	}
	return fmt.Sprintf("%s:n1:phys:%s:run:%d:sge:0:%d:%s:%d:%s:0:60:1:1:10.0:0:0:0:0:1:0:0:0:0:0:0:0:1:1:%s:defaultdepartment:%s:4:%s:2.5:1:1:%s:0:%s:1000:0:0\n",
		f["queue"], f["owner"], number, stop.Unix()-70, f["start"], stop.Unix(), f["failed"], f["project"], f["pe"], f["task"], f["category"], f["petask"])
}

// write appends text to the accounting file.
func (s *site) write(texts ...string) {
	s.t.Helper()
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	s.must(err)
	_, err = f.WriteString(strings.Join(texts, ""))
	s.must(err)
	s.must(f.Close())
}

// jobsOf appends n jobs of consecutive numbers, which end a second apart.
func (s *site) jobsOf(n int) {
	s.t.Helper()
	var b strings.Builder
	for range n {
		b.WriteString(job(s.next, float64(s.next-2000)/60))
		s.next++
	}
	s.write(b.String())
}

// collect lets the source collect as the daemon does.
func (s *site) collect(from sdk.Start) error {
	s.t.Helper()
	s.sent = nil
	if from.Window == nil {
		from.Checkpoint = s.checkpoint
	}
	batches := 0
	send := func(_ context.Context, b sdk.Batch) error {
		if batches++; s.fail >= 0 && batches > s.fail {
			return fmt.Errorf("the daemon fails")
		}
		for _, j := range b.Jobs {
			j.Values = slices.Clone(j.Values)
			s.jobs[j.Run] = j
			s.sent = append(s.sent, j.Run)
		}
		s.refused = append(s.refused, b.Refused...)
		s.skipped += b.Skipped
		s.gaps = append(s.gaps, b.Gaps...)
		if b.Checkpoint != nil {
			if from.Window != nil {
				s.t.Error("a window moves the checkpoint")
			}
			s.checkpoint = b.Checkpoint
		}
		if !b.Watermark.IsZero() {
			s.watermark = b.Watermark
		}
		if b.Progress != nil {
			s.progress = append(s.progress, *b.Progress)
		}
		if b.Capacity != nil {
			s.capacity = append(s.capacity, *b.Capacity)
		}
		if b.Census != nil {
			s.census = append(s.census, *b.Census)
		}
		if len(b.Directory) > 0 {
			s.directory = append(s.directory, b.Directory)
		}
		return nil
	}
	return s.source.Collect(context.Background(), from, sdk.NewStream(s.source.Describe().Attributes, send))
}

func (s *site) poll() {
	s.t.Helper()
	s.must(s.collect(sdk.Start{}))
}

// wantSent checks the runs of the last Collect, in their order.
func (s *site) wantSent(runs ...string) {
	s.t.Helper()
	if d := cmp.Diff(runs, s.sent); d != "" {
		s.t.Errorf("runs (-want +got):\n%s", d)
	}
}

// wantAll checks that all jobs up to the last one came.
func (s *site) wantAll() {
	s.t.Helper()
	got := map[string]bool{}
	for run := range s.jobs {
		number, _, _ := strings.Cut(run, "-")
		got[number] = true
	}
	for n := 1; n < s.next; n++ {
		if !got[fmt.Sprint(n)] {
			s.t.Fatalf("job %d of %d is lost", n, s.next-1)
		}
	}
	if len(s.jobs) != s.next-1 || len(s.refused) > 0 || len(s.gaps) > 0 {
		s.t.Errorf("%d runs of %d jobs, %d refused, gaps %v", len(s.jobs), s.next-1, len(s.refused), s.gaps)
	}
}

func (s *site) value(run, attribute string) sdk.Value {
	s.t.Helper()
	j, ok := s.jobs[run]
	if !ok {
		s.t.Fatalf("there is no run %s in %v", run, s.sent)
	}
	for i, a := range s.source.Describe().Attributes {
		if a.Name == attribute {
			return j.Values[i]
		}
	}
	s.t.Fatalf("there is no attribute %s", attribute)
	return sdk.Null()
}

// run is the name that job gives its run.
func run(number int, end float64) string {
	return fmt.Sprintf("%d-%d", number, noon().Add(time.Duration(end*float64(time.Minute))).Unix()-60)
}

func TestEachRunComesOnceAndNothingComesTwice(t *testing.T) {
	s := newSite(t)
	s.write("# Version: 8.1.9\n# \n\n", job(1, -9), job(2, -8))
	s.poll()
	s.wantSent(run(1, -9), run(2, -8))
	s.poll()
	s.wantSent()
	s.write(job(3, -7))
	s.restart()
	s.poll()
	s.wantSent(run(3, -7))
	if s.skipped != 3 || len(s.refused) != 0 {
		t.Errorf("%d lines skipped, refused %v", s.skipped, s.refused)
	}
}

func TestArrayTasksSlavesRerunsAndNumbersThatComeAgainAreRunsOfTheirOwn(t *testing.T) {
	s := newSite(t)
	s.write(
		job(7, -9, "task", "1"), job(7, -9, "task", "2"), // an array
		job(8, -8, "failed", "25"), job(8, -7), // a rerun
		job(9, -6, "pe", "mpi"), job(9, -6, "pe", "mpi", "petask", "1.n1"), job(9, -6, "pe", "mpi", "petask", "1.n2"), // a tight parallel job
		job(7, -5), // the numbers began again
		job(10, -4, "start", "0", "failed", "28"),
	)
	s.poll()
	s.wantSent(
		"7.1-1778413800", "7.2-1778413800", run(8, -8), run(8, -7), run(9, -6), run(9, -6)+"-1.n1", run(9, -6)+"-1.n2", run(7, -5),
	)
	if s.skipped != 1 {
		t.Errorf("%d lines skipped", s.skipped)
	}
	for i, run := range s.sent[4:7] {
		slave := i > 0
		if s.value(run, "slave").Bool() != slave || s.value(run, "cores").Int() != map[bool]int64{false: 4, true: 0}[slave] {
			t.Errorf("%s: slave %v, %v cores", run, s.value(run, "slave").Bool(), s.value(run, "cores").Int())
		}
	}
}

func TestALineThatCannotBeReadIsRefusedWithItsText(t *testing.T) {
	s := newSite(t)
	bad := strings.Replace(job(2, -8), ":2.5:", ":much:", 1)
	long := strings.Repeat("x", 2<<20) + "\n"
	s.write(job(1, -9), "garbage\n", bad, long, job(3, -7), job(4, -6)[:100])
	s.poll()
	s.wantSent(run(1, -9), run(2, -8), run(3, -7))
	if !s.value(run(2, -8), "cpu_seconds").IsNull() {
		t.Error("its CPU time is known")
	}
	want := []string{"it has 1 columns", "a line of 2097153 bytes"}
	if len(s.refused) != len(want) {
		t.Fatalf("refused %v", s.refused)
	}
	for i, r := range s.refused {
		if !strings.Contains(r.Message, want[i]) {
			t.Errorf("refused %s, want %q", r.Message, want[i])
		}
	}
	if r := s.refused[0]; string(r.Raw) != "garbage" {
		t.Errorf("refused %q", r.Raw)
	}
	s.write(job(4, -6)[100:])
	s.poll()
	s.wantSent(run(4, -6))
}

func TestEveryRunComesThroughRotationsAtEveryMoment(t *testing.T) {
	rename := func(s *site, n int) { s.must(os.Rename(s.path, fmt.Sprintf("%s-2026%04d", s.path, n))) }
	copied := func(s *site, n int) {
		data, err := os.ReadFile(s.path)
		s.must(err)
		s.must(os.WriteFile(fmt.Sprintf("%s-2026%04d", s.path, n), data, 0o644))
		s.must(os.Truncate(s.path, 0))
	}
	for name, rotate := range map[string]func(*site, int){"rename": rename, "copytruncate": copied} {
		for moment := range 4 {
			t.Run(fmt.Sprint(name, " ", moment), func(t *testing.T) {
				s := newSite(t)
				s.source.batch = 7
				for n := range 6 {
					s.jobsOf(20)
					if moment > 0 {
						s.poll()
					}
					if moment > 1 {
						s.jobsOf(13)
					}
					if moment > 2 { // the daemon dies within the collection
						s.fail = 1
						_ = s.collect(sdk.Start{})
						s.fail = -1
						s.restart()
						s.source.batch = 7
					}
					rotate(s, n)
				}
				s.jobsOf(1)
				s.poll()
				s.wantAll()
			})
		}
	}
}

func TestNothingIsLostWhereverTheDaemonStops(t *testing.T) {
	for fail := range 12 {
		s := newSite(t)
		s.source.batch = 10
		s.jobsOf(45)
		s.must(os.Rename(s.path, s.path+".1"))
		s.jobsOf(25)
		s.fail = fail
		_ = s.collect(sdk.Start{})
		s.fail = -1
		s.restart()
		s.poll()
		s.wantAll()
	}
}

func TestAFileThatIsNotThereSaysWhatToDo(t *testing.T) {
	s := newSite(t)
	err := s.collect(sdk.Start{})
	if err == nil || !strings.Contains(err.Error(), "there is no accounting file at "+s.path) || !strings.Contains(err.Error(), "sge_root") {
		t.Error(err)
	}
	if !s.watermark.IsZero() {
		t.Errorf("it says that it is complete up to %s", s.watermark)
	}
}

func TestAFolderInPlaceOfTheFileIsAnError(t *testing.T) {
	s := newSite(t)
	s.must(os.Mkdir(s.path, 0o755))
	if err := s.collect(sdk.Start{}); err == nil {
		t.Error("no error")
	}
}

func TestADeletedFileIsAGapFromTheLastRunToTheNext(t *testing.T) {
	s := newSite(t)
	s.write(job(1, -30), job(2, -20))
	s.poll()
	s.must(os.Remove(s.path))
	if err := s.collect(sdk.Start{}); err == nil {
		t.Error("no error while it is gone")
	}
	s.write(job(3, -10))
	s.poll()
	s.wantSent(run(3, -10))
	want := sdk.Gap{From: noon().Add(-20 * time.Minute), To: noon().Add(-10 * time.Minute)}
	if len(s.gaps) != 1 || !s.gaps[0].From.Equal(want.From) || !s.gaps[0].To.Equal(want.To) {
		t.Errorf("gaps %+v", s.gaps)
	}
}

func TestTheWatermarkIsSentWhenAllWasRead(t *testing.T) {
	s := newSite(t)
	s.write(job(1, -30))
	s.poll()
	if want := noon().Add(-2 * time.Minute); !s.watermark.Equal(want) {
		t.Errorf("watermark %s, want %s", s.watermark, want)
	}
}

func TestAWindowIsReadFromAllFilesAndLeavesTheCheckpoint(t *testing.T) {
	s := newSite(t)
	s.write(job(1, -300), job(2, -200), "garbage\n")
	s.must(os.Rename(s.path, s.path+".1"))
	s.write(job(3, -100), job(4, -50))
	s.poll()
	s.refused, s.skipped = nil, 0
	before := string(s.checkpoint)
	s.must(s.collect(sdk.Start{Window: &sdk.Window{From: noon().Add(-200 * time.Minute), To: noon().Add(-50 * time.Minute)}}))
	s.wantSent(run(2, -200), run(3, -100))
	if string(s.checkpoint) != before || len(s.refused) > 0 {
		t.Errorf("checkpoint %s, refused %v", s.checkpoint, s.refused)
	}
}

func TestARewindReadsAlsoOldFiles(t *testing.T) {
	s := newSite(t)
	s.write(job(1, -300), job(2, -200))
	s.must(os.Rename(s.path, s.path+".1"))
	s.write(job(3, -100), job(4, -50))
	s.poll()
	s.must(s.collect(sdk.Start{Rewind: 160 * time.Minute}))
	s.wantSent(run(2, -200), run(3, -100), run(4, -50))
}

func TestCountIsTheRunsOfTheWindowBeforeAnyFilter(t *testing.T) {
	s := newSite(t, list("users", "bob"))
	s.write("# Version\n", "\n", job(1, -300), job(1, -300, "start", "0"), job(2, -200), job(2, -200, "petask", "1.n1"), job(2, -190), "garbage\n")
	data, err := os.ReadFile(s.path)
	s.must(err)
	s.must(os.WriteFile(s.path+"-20260101", data, 0o644)) // a copy
	s.must(os.Rename(s.path, s.path+".1"))
	s.write(job(3, -100), job(4, -50), job(5, -20)[:50])
	s.poll()
	for _, c := range []struct {
		from, to float64
		want     int64
	}{{-1000, 1000, 6}, {-200, -50, 4}, {-300, -200, 1}, {-10, 10, 0}} {
		w := sdk.Window{From: noon().Add(time.Duration(c.from) * time.Minute), To: noon().Add(time.Duration(c.to) * time.Minute)}
		got, err := s.source.Count(t.Context(), w)
		if err != nil || got != c.want {
			t.Errorf("%v: %d, %v", c, got, err)
		}
	}
	excluded := 0
	for _, j := range s.jobs {
		if j.Excluded {
			excluded++
		}
	}
	if excluded != 6 {
		t.Errorf("%d runs are filtered", excluded)
	}
}

func TestFiltersLeaveRunsOutAndTellSo(t *testing.T) {
	for _, c := range []struct {
		key  sdk.Node
		want string
	}{
		{list("users", "bob"), "2"}, {list("queues", "gpu.q"), "3"}, {list("projects", "astro"), "4"}, {list("states", "failed"), "5"},
		{list("groups", "phys"), "1 2 3 4 5"}, {list("departments", "none"), ""}, {text("earliest", "2026-05-10T11:50:00Z"), "2 3 4 5"},
	} {
		s := newSite(t, c.key)
		s.write(job(1, -20), job(2, -9, "owner", "bob"), job(3, -8, "queue", "gpu.q"), job(4, -7, "project", "astro"), job(5, -6, "failed", "7"))
		s.poll()
		var kept []string
		for _, name := range s.sent {
			if !s.jobs[name].Excluded {
				number, _, _ := strings.Cut(name, "-")
				kept = append(kept, number)
			}
		}
		if got := strings.Join(kept, " "); got != c.want || len(s.sent) != 5 {
			t.Errorf("%s: %q of %d", c.key.Name, got, len(s.sent))
		}
	}
}

func TestSeveralCellsAreReadAndOneThatFailsHoldsUpNoOther(t *testing.T) {
	s := newSite(t)
	other := filepath.Join(s.dir, "elsewhere")
	s.must(os.WriteFile(other, []byte(job(1, -5)), 0o600))
	s.write(job(1, -5))
	keys := []sdk.Node{block("cell", "default"), block("cell", "b", text("path", other)), block("cell", "none")}
	s.restart(keys...)
	err := s.collect(sdk.Start{})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(s.dir, "none/common/accounting")) {
		t.Error(err)
	}
	s.wantSent("default/"+run(1, -5), "b/"+run(1, -5))
	if got := s.value("b/"+run(1, -5), "qualified_id").Str(); got != "b-"+run(1, -5) {
		t.Errorf("id %q", got)
	}
	if !s.watermark.IsZero() {
		t.Error("it says that it is complete")
	}
	s.restart(keys[:2]...)
	s.poll()
	s.wantSent()
	if s.watermark.IsZero() {
		t.Error("it does not say that it is complete")
	}
}

func TestAnImportReadsItsFilesOnceInOrderAndGoesOn(t *testing.T) {
	s := newSite(t)
	var paths []string
	for i := range 3 {
		path := filepath.Join(s.dir, fmt.Sprintf("old-%d", i))
		var b strings.Builder
		for n := range 10 {
			b.WriteString(job(10*i+n+1, float64(10*i+n)-100))
		}
		s.must(os.WriteFile(path, []byte(strings.TrimSuffix(b.String(), "\n")), 0o600))
		paths = append(paths, path)
	}
	s.next = 31
	keys := list("import", paths[0], filepath.Join(s.dir, "old-*"))
	for fail := range 8 {
		s.checkpoint, s.jobs, s.fail = nil, map[string]sdk.Job{}, fail
		s.restart(keys)
		s.source.batch = 4
		_ = s.collect(sdk.Start{})
		first := len(s.sent)
		s.fail = -1
		s.restart(keys)
		s.source.batch = 4
		s.poll()
		s.wantAll()
		if first+len(s.sent) != 30 {
			t.Errorf("%d runs, and then %d", first, len(s.sent))
		}
		s.poll()
		s.wantSent()
	}
	last := s.progress[len(s.progress)-1]
	if last.Done != last.Total || last.Unit != "bytes" {
		t.Errorf("progress %+v", last)
	}
	if n, err := s.source.Count(t.Context(), sdk.Window{From: noon().Add(-24 * time.Hour), To: noon()}); n != 30 || err != nil {
		t.Errorf("count %d, %v", n, err)
	}
}

func TestAnImportOfACellGivesTheIdsThatFollowingItGives(t *testing.T) {
	s := newSite(t)
	s.write(job(1, -5))
	for _, keys := range [][]sdk.Node{
		{block("cell", "default")},
		{block("cell", "default"), block("cell", "b"), text("import_cell", "default")},
	} {
		s.restart(append(keys, list("import", s.path))...)
		s.checkpoint = nil
		s.poll()
		s.wantSent("default/" + run(1, -5))
	}
	for want, key := range map[string]sdk.Node{"one of default, b": list("import", s.path), "is not a cell": text("import_cell", "c")} {
		err := s.configure(block("cell", "default"), block("cell", "b"), key, list("import", s.path))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTheReadmeHasTheTableOfTheSettings(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func TestConfigurationProblemsAreToldWithWhatToDo(t *testing.T) {
	for _, c := range []struct {
		key  sdk.Node
		want string
	}{
		{text("path", "accounting"), "is not an absolute path"},
		{text("sge_root", "sge"), "is not an absolute path"},
		{list("states", "COMPLETD"), `did you mean "COMPLETED"?`},
		{list("import", "/nowhere/at/all*"), "there is no file"},
		{list("import", "x"), "not an absolute path"},
		{text("lag", "100d"), "must be at most 24h"},
		{text("memory_per", "core"), "expected one of job, slot"},
		{text("pth", "/x"), `did you mean "path"?`},
		{list("rotated", "[", "/x"), "not an absolute path or pattern"},
		{text("commands", "bin"), "is not an absolute path"},
	} {
		s := &site{t: t, dir: t.TempDir(), time: noon()}
		if err := s.configure(c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.key.Name, err, c.want)
		}
	}
	s := &site{t: t, dir: t.TempDir(), time: noon()}
	if err := s.configure(block("cell", "a"), block("cell", "a")); err == nil || !strings.Contains(err.Error(), "already defined") {
		t.Error(err)
	}
	if err := s.configure(block("cell", "a/b"), text("path", "/x")); err == nil || !strings.Contains(err.Error(), "one label") || !strings.Contains(err.Error(), "belongs into each") {
		t.Error(err)
	}
}

func TestAnUnknownCheckpointIsAnError(t *testing.T) {
	for _, c := range []string{"x", `{"v":9}`, `{"v":1,"cells":{"":{"offset":-1}}}`, `{"v":1,"import":{"offset":-1}}`, `{"v":1,"cells":{"":{"offset":10,"head_length":2000}}}`} {
		if _, err := decodeCheckpoint([]byte(c)); err == nil {
			t.Errorf("%s: no error", c)
		}
	}
}

// What is on the disks of daemons must be read by all later versions.
func TestCheckpointsOfEveryReleaseAreRead(t *testing.T) {
	const golden = `{"v":1,"cells":{"":{"offset":4045,"head_length":1024,"head":"00112233445566778899aabbccddeeff","tail":"ffeeddccbbaa99887766554433221100","inode":42,"modified":1795239719000000000,"before":{"offset":7,"head_length":7,"head":"x"},"at":1795239719000}},"import":{"path":"/x","offset":9},"told":{"capacity":"a","directory":"b"}}`
	c, err := decodeCheckpoint([]byte(golden))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.encodeVersioned()); got != golden {
		t.Errorf("%s", got)
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"v":1,"cells":{"":{"offset":4045,"head_length":1024,"head":"0","at":1}},"import":{"path":"/x","offset":9}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := decodeCheckpoint(text)
		if err != nil {
			return
		}
		again, err := decodeCheckpoint(c.encodeVersioned())
		if err != nil || !cmp.Equal(again.encodeVersioned(), c.encodeVersioned()) {
			t.Errorf("%s becomes %s, %v", text, c.encodeVersioned(), err)
		}
	})
}
