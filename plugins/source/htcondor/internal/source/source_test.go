package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/translate"
)

// site is a schedd with its files, and a source with the daemon that listens to it.
type site struct {
	t      *testing.T
	dir    string
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
	capacity   []sdk.Capacity
	census     []sdk.Census
	fail       int // batches after which the daemon fails; -1 never
}

func noon() time.Time { return time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC) }

func newSite(t *testing.T, keys ...sdk.Node) *site {
	s := &site{t: t, dir: t.TempDir(), time: noon(), next: 1, jobs: map[string]sdk.Job{}, fail: -1}
	s.restart(keys...)
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// restart is a new plugin process. It follows the history and the epochs of one schedd
// unless keys say else.
func (s *site) restart(keys ...sdk.Node) {
	s.t.Helper()
	s.must(s.configure(keys...))
}

func (s *site) configure(keys ...sdk.Node) error {
	s.source = New(slog.New(slog.DiscardHandler))
	s.source.now = func() time.Time { return s.time }
	if len(keys) == 0 {
		keys = []sdk.Node{text("history", s.path("history")), text("epochs", s.path("epoch_history"))}
		s.write("history")
		s.write("epoch_history")
	}
	if !slices.ContainsFunc(keys, func(n sdk.Node) bool { return n.Name == "commands" }) { // this machine may have them
		keys = append(keys, text("commands", filepath.Join(s.dir, "bin")))
	}
	return s.source.Configure(context.Background(), sdk.NewConfig("test", sdk.Node{IsBlock: true, Children: keys}))
}

func text(name, value string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String(value)} }

func list(name string, values ...string) sdk.Node {
	return sdk.Node{Name: name, Value: sdk.Strings(values...)}
}

func blockOf(name, label string, children ...sdk.Node) sdk.Node {
	return sdk.Node{Name: name, IsBlock: true, Labels: []string{label}, Children: children}
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// write appends texts to a file.
func (s *site) write(name string, texts ...string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	s.must(err)
	_, err = f.WriteString(strings.Join(texts, ""))
	s.must(err)
	s.must(f.Close())
}

// ad is an ad of a run; ends are minutes from noon. Changes are pairs; an empty value
// leaves the attribute out.
func ad(number int, end float64, changes ...string) string {
	stop := second(end)
	f := map[string]string{
		"ClusterId": fmt.Sprint(number), "ProcId": "0", "GlobalJobId": fmt.Sprintf(`"sub#%d.0#1"`, number), "Owner": `"alice"`, "JobUniverse": "5",
		"JobStatus": "4", "CpusProvisioned": "2", "NumShadowStarts": "1", "QDate": fmt.Sprint(stop - 90), "JobStartDate": fmt.Sprint(stop - 60),
		"JobCurrentStartDate": fmt.Sprint(stop - 60), "CompletionDate": fmt.Sprint(stop), "EnteredCurrentStatus": fmt.Sprint(stop), "ExitCode": "0",
		"RequestMemory": "ifthenelse(MemoryUsage =!= undefined,MemoryUsage,128)", "LastRemoteHost": `"slot1_1@n1"`,
	}
	for i := 0; i < len(changes); i += 2 {
		f[changes[i]] = changes[i+1]
	}
	var out strings.Builder
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name, value := range f {
			if value != "" && !yield(name) {
				return
			}
		}
	}) {
		fmt.Fprintf(&out, "%s = %s\n", name, f[name])
	}
	return out.String()
}

// past is an entry of the history; the banner does not say where it begins.
func past(number int, end float64, changes ...string) string {
	return ad(number, end, changes...) + fmt.Sprintf("*** ClusterId = %d ProcId = 0\n", number)
}

// second is the time of minutes from noon.
func second(minutes float64) int64 {
	return noon().Add(time.Duration(minutes * float64(time.Minute))).Unix()
}

// again are the changes of a run of a job whose first run ended at minutes from noon.
func again(first float64) []string { return []string{"JobStartDate", fmt.Sprint(second(first) - 60)} }

// later is the id of a run that is not the first of its job.
func later(number int, end float64) string {
	return fmt.Sprintf("sub#%d.0#1-%d", number, second(end)-60)
}

// epoch is an entry of the epochs: an evicted run unless changes say else.
func epoch(number int, end float64, changes ...string) string {
	stop := fmt.Sprint(second(end))
	changes = append([]string{"JobStatus", "2", "CompletionDate", "", "ExitCode", "", "LastVacateTime", stop, "VacateReasonCode", "1004"}, changes...)
	return ad(number, end, changes...) + "EpochWriteDate = " + stop + fmt.Sprintf("\n*** EPOCH ClusterId=%d ProcId=0 RunInstanceId=0\n", number)
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
			return errors.New("the daemon fails")
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
		if b.Capacity != nil {
			s.capacity = append(s.capacity, *b.Capacity)
		}
		if b.Census != nil {
			s.census = append(s.census, *b.Census)
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

// jobsOf writes n jobs of consecutive numbers, which end a second apart, with their
// epochs. Every third ran twice.
func (s *site) jobsOf(n int) {
	s.t.Helper()
	var jobs, runs strings.Builder
	for range n {
		end := float64(s.next-2000) / 60
		first := end
		if s.next%3 == 0 {
			first -= 5
			runs.WriteString(epoch(s.next, first))
		}
		changes := []string{}
		if first != end {
			changes = again(first)
		}
		runs.WriteString(epoch(s.next, end, changes...))
		jobs.WriteString(past(s.next, end, changes...))
		s.next++
	}
	s.write("epoch_history", runs.String())
	s.write("history", jobs.String())
}

// wantAll checks that all runs of all jobs came, and that the history had the last word.
func (s *site) wantAll() {
	s.t.Helper()
	want := 0
	for n := 1; n < s.next; n++ {
		last := fmt.Sprintf("sub#%d.0#1", n)
		if n%3 == 0 {
			if s.state(last) != "EVICTED" {
				s.t.Fatalf("job %d: the first run is %s", n, s.state(last))
			}
			last = later(n, float64(n-2000)/60)
			want++
		}
		if s.state(last) != "COMPLETED" {
			s.t.Fatalf("job %d of %d is %q", n, s.next-1, s.state(last))
		}
		want++
	}
	if len(s.jobs) != want || len(s.refused) > 0 || len(s.gaps) > 0 {
		s.t.Errorf("%d runs of %d, %d refused, gaps %v", len(s.jobs), want, len(s.refused), s.gaps)
	}
}

// state is that of a run; "" where none came.
func (s *site) state(run string) string {
	if _, ok := s.jobs[run]; !ok {
		return ""
	}
	return s.value(run, "state").Str()
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

func TestCollect_EachRun_ComesOnceAndTheHistoryHasTheLastWord(t *testing.T) {
	s := newSite(t)
	s.write("epoch_history", epoch(1, -9), epoch(2, -8), epoch(1, -7, again(-9)...))
	s.write("history", past(1, -7, again(-9)...))
	s.poll()
	s.wantSent("sub#1.0#1", "sub#2.0#1", later(1, -7), later(1, -7))
	if s.state(later(1, -7)) != "COMPLETED" || s.state("sub#2.0#1") != "EVICTED" {
		t.Error(s.state(later(1, -7)), s.state("sub#2.0#1"))
	}
	s.poll()
	s.wantSent()
	s.restart()
	s.write("history", past(3, -6, "JobCurrentStartDate", "", "JobStartDate", "", "NumShadowStarts", "", "JobStatus", "3"), past(4, -6, "ProcId", "-1"))
	s.poll()
	s.wantSent()
	if s.skipped != 2 {
		t.Errorf("%d ads skipped", s.skipped)
	}
}

// A shadow that loses the network for a while counts in NumJobReconnects, and starts no other;
// the schedd learns of it late or not at all.
func TestCollect_RunAfterNetworkCut_IsTheSameInHistoryAndEpochs(t *testing.T) {
	s := newSite(t)
	changes := append(again(-9), "NumShadowStarts", "2")
	s.write("epoch_history", epoch(1, -9), epoch(1, -7, append(changes, "NumJobReconnects", "1")...))
	s.write("history", past(1, -7, changes...))
	s.poll()
	s.wantSent("sub#1.0#1", later(1, -7), later(1, -7))
	if s.state("sub#1.0#1") != "EVICTED" || s.state(later(1, -7)) != "COMPLETED" {
		t.Error(s.state("sub#1.0#1"), s.state(later(1, -7)))
	}
	w := sdk.Window{From: noon().Add(-time.Hour), To: noon()}
	if n, err := s.source.Count(t.Context(), w); n != 2 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	s.must(s.collect(sdk.Start{Window: &w}))
	s.wantSent(later(1, -7), "sub#1.0#1")
}

func TestCollect_EpochsInTheFileOfAnother_HistoryHasTheLastWord(t *testing.T) {
	for _, first := range []string{"sub", "other"} {
		s := &site{t: t, dir: t.TempDir(), time: noon(), jobs: map[string]sdk.Job{}, fail: -1}
		blocks := []sdk.Node{
			blockOf("schedd", "sub", text("history", s.path("history-sub"))),
			blockOf("schedd", "other", text("history", s.path("history-other")), text("epochs", s.path("epoch_history"))),
		}
		if first == "other" {
			slices.Reverse(blocks)
		}
		s.write("history-other")
		s.write("history-sub", past(1, -7))
		s.restart(blocks...)
		if err := s.collect(sdk.Start{}); err == nil || s.state("sub#1.0#1") != "" { // its epoch may be in the file that is not there
			t.Errorf("%s first: %v, %s", first, err, s.state("sub#1.0#1"))
		}
		s.write("epoch_history", epoch(1, -7), epoch(2, -6))
		s.write("history-sub", past(2, -6))
		s.poll()
		w := sdk.Window{From: noon().Add(-time.Hour), To: noon()}
		for range 2 {
			if s.state("sub#1.0#1") != "COMPLETED" || s.state("sub#2.0#1") != "COMPLETED" {
				t.Errorf("%s first: %s, %s", first, s.state("sub#1.0#1"), s.state("sub#2.0#1"))
			}
			s.must(s.collect(sdk.Start{Window: &w}))
		}
	}
}

func TestCollect_JobThatEndsMeanwhile_WaitsForItsEpoch(t *testing.T) {
	s := newSite(t)
	s.write("epoch_history", epoch(1, -1))
	s.write("history", past(1, -1), past(2, 0), past(3, 0, "JobFinishedHookDone", fmt.Sprint(noon().Unix()+3)))
	s.poll()
	s.wantSent("sub#1.0#1", "sub#1.0#1")
	s.time = noon().Add(time.Minute)
	s.write("epoch_history", epoch(2, 0), epoch(3, 0))
	s.poll()
	s.wantSent("sub#2.0#1", "sub#3.0#1", "sub#2.0#1", "sub#3.0#1")
	s.write("history", past(4, 600)) // a clock that is hours ahead keeps nothing back
	s.poll()
	s.wantSent("sub#4.0#1")
}

func TestCollect_AdsThatCannotBeRead_AreRefusedAndTheOthersCome(t *testing.T) {
	s := newSite(t)
	half := ad(2, -8)[:200]
	s.write("history", past(1, -9))
	at := len(past(1, -9))
	s.write("history", half, ad(3, -7), fmt.Sprintf("*** Offset = %d ClusterId = 3\n", at+len(half)), // the schedd crashed within job 2
		"nonsense\n", past(4, -6), past(5, -5, "CpusProvisioned", `"many"`), strings.Repeat("x", 2<<20)+"\n*** Offset = 0\n",
		past(6, -4, "Odd", `"a, b = \"c\" * [ ; ]`+"\nnext line\""), past(7, -3, "CompletionDate", "", "EnteredCurrentStatus", "1"), past(8, -2)[:300])
	s.write("epoch_history", ad(9, -7, "NumShadowStarts", "1"), epoch(10, -6)) // a crash of the shadow
	s.poll()
	s.wantSent("sub#10.0#1", "sub#1.0#1", "sub#3.0#1", "sub#5.0#1", "sub#6.0#1")
	if !s.value("sub#5.0#1", "cores").IsNull() {
		t.Error("the cores of job 5 are known")
	}
	var why []string
	for _, r := range s.refused {
		message, _, _ := strings.Cut(r.Message, " is not behind")
		why = append(why, r.Run+": "+message)
	}
	want := []string{
		": the ad has no end: the file was cut here", ": the ad has no end: the file was cut here", `: "nonsense" is not an attribute`,
		": an ad of 2097168 bytes; at most 1048576 are read",
		"sub#7.0#1: none of CompletionDate, LastVacateTime, EpochWriteDate and EnteredCurrentStatus is behind the start, 2026-05-10T11:56:00Z",
	}
	if d := cmp.Diff(want, why); d != "" {
		t.Error(d)
	}
	if raw := string(s.refused[1].Raw); raw != half {
		t.Errorf("refused %q", raw)
	}
	s.write("history", past(8, -2)[300:])
	s.poll()
	s.wantSent("sub#8.0#1")
}

func TestRefused_PartOfAnAd_NamesItsRunOrNone(t *testing.T) {
	for want, whole := range map[string]string{"sub#1.0#1": ad(1, -9), later(1, -7): ad(1, -7, again(-9)...)} {
		s := newSite(t)
		for n := 1; n < len(whole); n++ {
			s.write(fmt.Sprintf("old/cut-%04d", n), whole[:n])
			if whole[n-1] == '\n' {
				s.write(fmt.Sprintf("old/odd-%04d", n), whole[:n], "nonsense\n", whole[n:], "*** ClusterId = 1 ProcId = 0\n")
			}
		}
		s.restart(list("import", s.path("old/*")))
		s.poll()
		named := 0
		for _, r := range s.refused {
			switch r.Run {
			case want:
				named++
			case "":
			default:
				t.Errorf("%s is named %s:\n%s", want, r.Run, r.Raw)
			}
		}
		if named < 100 || len(s.sent) > 0 {
			t.Errorf("%d of %d are named, %d came", named, len(s.refused), len(s.sent))
		}
	}
}

func TestCollect_AdRemovedByHand_OthersAreWhole(t *testing.T) {
	s := newSite(t)
	at := 0
	for n := range 5 {
		text := ad(n, -9, "AcctGroup", `"physics"`, "Requirements", `"`+strings.Repeat("x", 100*n)+`"`)
		text += fmt.Sprintf("*** Offset = %d ClusterId = %d\n", at, n)
		if at += len(text); n != 1 {
			s.write("history", text)
		}
	}
	s.poll()
	s.wantSent("sub#0.0#1", "sub#2.0#1", "sub#3.0#1", "sub#4.0#1")
	for _, run := range s.sent {
		if group := s.value(run, "group"); group.IsNull() || group.Str() != "physics" || strings.HasPrefix(s.value(run, "job_id").Str(), ".") {
			t.Errorf("%s: group %v, job %v", run, group, s.value(run, "job_id"))
		}
	}
	if len(s.refused) > 0 {
		t.Errorf("refused %+v", s.refused)
	}
}

// Where lines were removed by hand, the banner's offset is behind the start of the ad; where the
// schedd crashed, the ad begins there.
func TestCollect_OffsetWithinAnEntry_AdKeepsItsOwnAttributes(t *testing.T) {
	own := []string{"AccountingGroup", `"physics.alice"`, "AcctGroup", `"physics"`, "AuthTokenIssuer", `"https://a.example.org/"`, "BatchQueue", `"long"`}
	other := []string{"AccountingGroup", `"chemistry.bob"`, "AcctGroup", `"chemistry"`, "AuthTokenIssuer", `"https://b.example.org/"`, "BatchQueue", `"short"`}
	check := func(name string, before string, offset int) {
		s := newSite(t)
		s.write("history", before, ad(1, -9, own...), fmt.Sprintf("*** Offset = %d ClusterId = 1\n", offset))
		s.poll()
		if s.state("sub#1.0#1") == "" || len(s.sent) != 1 {
			t.Errorf("%s: %v, refused %d", name, s.sent, len(s.refused))
			return
		}
		got := s.value("sub#1.0#1", "group").Str() + " " + s.value("sub#1.0#1", "token_issuer").Str() + " " + s.value("sub#1.0#1", "queue").Str()
		if got != "physics https://a.example.org/ long" || (len(s.refused) == 0) != (before == "") {
			t.Errorf("%s: %s, refused %d", name, got, len(s.refused))
		}
	}
	for n := 1; n < len(ad(1, -9, own...)); n++ {
		check(fmt.Sprintf("%d bytes removed", n), "", n)
	}
	part := ad(2, -9, other...)
	for n := 1; n < len(part); n++ {
		check(fmt.Sprintf("cut at %d", n), part[:n], n)
	}
}

func TestCollect_EveryRun_ComesThroughRotationsAndKills(t *testing.T) {
	for seed := range 6 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSite(t)
			s.source.batch = 7
			for n := range 8 {
				s.jobsOf(5 + n*seed)
				if (n+seed)%2 == 0 {
					s.poll()
				}
				if seed > 2 { // the daemon dies within the collection
					s.fail = n % 3
					_ = s.collect(sdk.Start{})
					s.fail = -1
				}
				if (n+seed)%3 == 0 {
					s.must(os.Rename(s.path("history"), s.path(fmt.Sprintf("history.202605%02dT120000", n+1))))
					s.write("history")
				}
				if (n+seed)%4 == 1 {
					s.must(os.Rename(s.path("epoch_history"), s.path(fmt.Sprintf("epoch_history.202605%02dT120000", n+1))))
					s.write("epoch_history")
				}
				if n%3 == 2 {
					s.restart()
					s.source.batch = 7
				}
			}
			s.poll()
			s.wantAll()
			from := sdk.Window{From: noon().Add(-time.Hour), To: noon().Add(time.Hour)}
			n, err := s.source.Count(t.Context(), from)
			if err != nil || int(n) != len(s.jobs) {
				t.Errorf("counted %d runs of %d, %v", n, len(s.jobs), err)
			}
			s.jobs = map[string]sdk.Job{}
			s.must(s.collect(sdk.Start{Window: &from}))
			s.wantAll()
			s.must(s.collect(sdk.Start{Rewind: 24 * time.Hour}))
			s.wantAll()
		})
	}
}

func TestCollect_LostHistory_IsAGap(t *testing.T) {
	s := newSite(t)
	s.jobsOf(20)
	s.poll()
	s.must(os.Remove(s.path("history")))
	s.write("history", past(1000, -3))
	s.poll()
	if len(s.gaps) != 1 || !s.gaps[0].To.Equal(noon().Add(-3*time.Minute)) {
		t.Errorf("gaps %+v", s.gaps)
	}
}

func TestWindow_EpochOfARunThatTheHistoryEndsElsewhere_IsLeftOut(t *testing.T) {
	s := newSite(t)
	s.write("epoch_history", epoch(1, -1), epoch(2, -1))
	start := fmt.Sprint(second(-2))
	s.write("history", past(1, 1, "JobStartDate", start, "JobCurrentStartDate", start)) // two minutes later
	s.time = noon().Add(time.Hour)
	for n, w := range []sdk.Window{{From: noon().Add(-time.Hour), To: noon()}, {From: noon(), To: noon().Add(time.Hour)}} {
		s.must(s.collect(sdk.Start{Window: &w}))
		s.wantSent(fmt.Sprintf("sub#%d.0#1", 2-n))
		if got, err := s.source.Count(t.Context(), w); got != 1 || err != nil {
			t.Errorf("counted %d, %v", got, err)
		}
	}
}

func TestCollect_FilesOfOneJobEach_AreReadAsTheyGrow(t *testing.T) {
	s := newSite(t)
	keys := []sdk.Node{text("job_histories", s.path("jobs")), text("job_epochs", s.path("runs"))}
	s.must(errors.Join(os.Mkdir(s.path("jobs"), 0o755), os.Mkdir(s.path("runs"), 0o755)))
	s.restart(keys...)
	s.write("runs/job.runs.1.0.ads", epoch(1, -9))
	s.write("jobs/.history.2.0.tmp", "half")
	s.write("jobs/history.2.0", ad(2, -8))
	s.poll()
	s.wantSent("sub#1.0#1", "sub#2.0#1")
	s.restart(keys...)
	s.poll()
	s.wantSent()
	s.write("runs/job.runs.1.0.ads", epoch(1, -7, again(-9)...), epoch(1, -6, again(-9)...)[:50])
	s.write("jobs/history.1.0", ad(1, -6, again(-9)...))
	s.poll()
	s.wantSent(later(1, -7), later(1, -6))
	s.write("runs/job.runs.1.0.ads", epoch(1, -6, again(-9)...)[50:])
	w := sdk.Window{From: noon().Add(-time.Hour), To: noon()}
	s.must(s.collect(sdk.Start{Window: &w}))
	slices.Sort(s.sent)
	s.wantSent("sub#1.0#1", later(1, -7), later(1, -6), "sub#2.0#1")
	if n, err := s.source.Count(t.Context(), w); n != 4 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

// filesOfOneJob writes n files of a job each with histories and epochs, all changed at a time.
func (s *site) filesOfOneJob(n int, changed time.Time) {
	s.t.Helper()
	for range n {
		for path, text := range map[string]string{fmt.Sprintf("jobs/history.%d.0", s.next): ad(s.next, -9), fmt.Sprintf("runs/job.runs.%d.0.ads", s.next): epoch(s.next, -9)} {
			s.write(path, text)
			s.must(os.Chtimes(s.path(path), time.Time{}, changed))
		}
		s.next++
	}
}

// wantTwice checks that the runs of n jobs were sent last, each by its epoch and by its history.
func (s *site) wantTwice(n int) {
	s.t.Helper()
	times := map[string]int{}
	for _, run := range s.sent {
		times[run]++
	}
	for run, n := range times {
		if n != 2 || s.state(run) != "COMPLETED" {
			s.t.Fatalf("%s was sent %d times and is %s", run, n, s.state(run))
		}
	}
	if len(times) != n {
		s.t.Errorf("%d runs were sent, want %d", len(times), n)
	}
	if len(s.checkpoint) > translate.MaxExtra {
		s.t.Errorf("the checkpoint has %d bytes", len(s.checkpoint))
	}
}

func TestFolder_FilesOfOneTime_AreReadOnce(t *testing.T) {
	for _, c := range []struct{ files, names int }{{5000, mostNames}, {300, 100}, {300, 7}} {
		s := newSite(t)
		keys := []sdk.Node{text("job_histories", s.path("jobs")), text("job_epochs", s.path("runs"))}
		s.restart(keys...)
		s.source.names = c.names
		s.filesOfOneJob(c.files, noon().Add(-time.Second))
		s.poll()
		s.wantTwice(c.files)
		for range 2 {
			s.restart(keys...)
			s.source.names, c.names = c.names, max(c.names/2, 1) // as with another schedd
			s.poll()
			s.wantTwice(0)
			s.filesOfOneJob(3, noon())
			s.poll()
			s.wantTwice(3)
		}
	}
}

// A folder may be copied there by a clock that is ahead.
func TestFolder_FilesFromTheFutureWithoutRoom_HideNoOther(t *testing.T) {
	s := newSite(t)
	keys := []sdk.Node{text("job_histories", s.path("jobs")), text("job_epochs", s.path("runs"))}
	s.restart(keys...)
	s.source.names = 20
	s.filesOfOneJob(50, noon().Add(time.Hour))
	s.poll()
	s.wantTwice(50)
	s.restart(keys...)
	s.source.names = 20
	s.filesOfOneJob(30, noon())
	s.poll()
	for n := 51; n < s.next; n++ {
		if run := fmt.Sprintf("sub#%d.0#1", n); s.state(run) != "COMPLETED" {
			t.Errorf("%s is %q", run, s.state(run))
		}
	}
	s.time = noon().Add(2 * time.Hour)
	s.poll()
	s.poll()
	s.wantTwice(0)
}

func TestFolder_FileWrittenDuringTheCollection_IsNotOfTheFuture(t *testing.T) {
	s := newSite(t)
	s.restart(text("job_histories", s.path("jobs")), text("job_epochs", s.path("runs")))
	calls := time.Duration(0)
	s.source.now = func() time.Time {
		calls++
		return noon().Add((calls - 1) * time.Hour)
	}
	changed := noon().Add(time.Minute)
	s.filesOfOneJob(1, changed)
	s.poll()
	c, err := decodeCheckpoint(s.checkpoint)
	s.must(err)
	for _, f := range []*folder{c.Schedds[""].Jobs, c.Schedds[""].Runs} {
		if f.Changed != changed.UnixNano() {
			t.Errorf("read up to %s", time.Unix(0, f.Changed))
		}
	}
}

func TestFolder_HistoryWithoutItsEnd_WaitsForItAndIsRefused(t *testing.T) {
	s := newSite(t)
	keys := []sdk.Node{text("job_histories", s.path("jobs"))}
	s.must(os.Mkdir(s.path("jobs"), 0o755))
	s.restart(keys...)
	put := func(name, text string) {
		s.write(name, text)
		s.must(os.Chtimes(s.path(name), time.Time{}, s.time))
	}
	put("jobs/history.1.0", ad(1, -9)[:250])
	put("jobs/history.2.0", strings.TrimSuffix(ad(2, -8), "\n"))
	put("jobs/history.3.0", ad(3, -7))
	s.poll()
	s.wantSent("sub#3.0#1")
	s.time = s.time.Add(lateName)
	put("jobs/history.4.0", ad(4, -7))
	put("jobs/history.2.0", "\n")
	s.restart(keys...)
	s.poll()
	s.wantSent("sub#2.0#1", "sub#4.0#1")
	if len(s.refused) > 0 {
		t.Errorf("refused %+v", s.refused)
	}
	s.time = s.time.Add(time.Second)
	for range 2 {
		s.restart(keys...)
		s.poll()
		s.wantSent()
	}
	if len(s.refused) != 1 || s.refused[0].Run != "sub#1.0#1" {
		t.Errorf("refused %+v", s.refused)
	}
	put("jobs/history.1.0", ad(1, -9)[250:])
	s.poll()
	s.wantSent("sub#1.0#1")
}

func TestFolder_CompressedFiles_AreUnpackedOnce(t *testing.T) {
	s := newSite(t)
	keys := []sdk.Node{text("job_histories", s.path("jobs")), text("job_epochs", s.path("runs"))}
	s.restart(keys...)
	pack := func(path, text string) {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, err := z.Write([]byte(text))
		s.must(errors.Join(err, z.Close()))
		s.write(path, out.String())
		s.must(os.Chtimes(s.path(path), time.Time{}, noon()))
	}
	s.filesOfOneJob(3, noon())
	pack("jobs/history.3.0.gz", ad(3, -9)[:200]) // gzip has not removed the file yet
	pack("jobs/history.4.0.gz", ad(4, -9))
	pack("runs/job.runs.4.0.ads.gz", epoch(4, -9)+epoch(4, -7, again(-9)...))
	s.poll()
	slices.Sort(s.sent)
	s.wantSent("sub#1.0#1", "sub#1.0#1", "sub#2.0#1", "sub#2.0#1", "sub#3.0#1", "sub#3.0#1", "sub#4.0#1", "sub#4.0#1", later(4, -7))
	s.must(errors.Join(os.Remove(s.path("jobs/history.1.0")), os.Remove(s.path("runs/job.runs.1.0.ads"))))
	pack("jobs/history.1.0.gz", ad(1, -9))
	pack("runs/job.runs.1.0.ads.gz", epoch(1, -9))
	for range 2 {
		s.restart(keys...)
		s.poll()
		s.wantSent()
	}
	w := sdk.Window{From: noon().Add(-time.Hour), To: noon()}
	if n, err := s.source.Count(t.Context(), w); n != 5 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	if len(s.refused) > 0 {
		t.Errorf("refused %+v", s.refused)
	}
}

func TestFolder_FileThatCannotBeUnpacked_IsRefusedAndTheOthersCome(t *testing.T) {
	s := newSite(t)
	s.write("jobs/history.1.0.gz", "no gzip")
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(make([]byte, 64<<20))
	s.must(errors.Join(err, z.Close()))
	s.write("jobs/history.2.0.gz", out.String())
	s.write("jobs/history.3.0.gz", out.String()[:out.Len()/2])
	for _, name := range []string{"jobs/history.1.0.gz", "jobs/history.2.0.gz", "jobs/history.3.0.gz"} {
		s.must(os.Chtimes(s.path(name), time.Time{}, noon().Add(-8*time.Minute)))
	}
	s.write("jobs/history.4.0", ad(4, -9))
	s.restart(text("job_histories", s.path("jobs")))
	s.poll()
	s.poll()
	for from, want := range map[time.Time]int64{noon().Add(-time.Hour): 4, noon(): 0} {
		if n, err := s.source.Count(t.Context(), sdk.Window{From: from, To: from.Add(time.Hour)}); n != want || err != nil {
			t.Errorf("counted %d runs from %s, want %d: %v", n, from, want, err)
		}
	}
	if len(s.refused) != 3 || s.state("sub#4.0#1") != "COMPLETED" {
		t.Fatalf("%d refused, %v", len(s.refused), s.jobs)
	}
	for i, want := range []string{"history.1.0.gz", "at most 1048576 are read", "history.3.0.gz"} {
		if got := s.refused[i].Message; !strings.Contains(got, want) {
			t.Errorf("%q has no %s", got, want)
		}
	}
}

// The epochs of a job tell of all of its runs, also of that in the history.
func TestCount_FileThatCannotBeUnpackedOfAJobWithEpochs_CountsTheEpochsAlone(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"jobs/history.1.0.gz", "jobs/history.2.0.gz"} {
		s.write(name, "no gzip")
		s.must(os.Chtimes(s.path(name), time.Time{}, noon().Add(-8*time.Minute)))
	}
	s.write("runs/job.runs.1.0.ads", epoch(1, -20)+epoch(1, -9, again(-20)...))
	s.restart(text("job_histories", s.path("jobs")), text("job_epochs", s.path("runs")))
	s.poll()
	w := sdk.Window{From: noon().Add(-time.Hour), To: noon()}
	if n, err := s.source.Count(t.Context(), w); n != 3 || err != nil { // and the run of job 2
		t.Errorf("counted %d, %v", n, err)
	}
	if len(s.refused) != 2 || len(s.jobs) != 2 {
		t.Errorf("%d refused, %d runs", len(s.refused), len(s.jobs))
	}
}

func TestFolder_FileFromTheFuture_HidesNoOther(t *testing.T) {
	s := newSite(t)
	keys := []sdk.Node{text("job_histories", s.path("jobs"))}
	s.must(os.Mkdir(s.path("jobs"), 0o755))
	s.restart(keys...)
	s.time = time.Now()
	s.write("jobs/history.1.0", ad(1, -9))
	s.must(os.Chtimes(s.path("jobs/history.1.0"), time.Time{}, s.time.Add(100*24*time.Hour)))
	s.poll()
	s.wantSent("sub#1.0#1")
	for n := 2; n < 5; n++ {
		s.restart(keys...)
		s.time = s.time.Add(time.Hour)
		path := fmt.Sprintf("jobs/history.%d.0", n)
		s.write(path, ad(n, -8))
		s.must(os.Chtimes(s.path(path), time.Time{}, s.time))
		s.poll()
		s.wantSent(fmt.Sprintf("sub#%d.0#1", n))
	}
}

func TestFolder_RunThatCannotBeReadAndThenCan_IsRefusedOnceAndComes(t *testing.T) {
	s := newSite(t)
	s.must(errors.Join(os.Mkdir(s.path("jobs"), 0o755), os.Mkdir(s.path("runs"), 0o755)))
	s.restart(text("job_histories", s.path("jobs")), text("job_epochs", s.path("runs")))
	s.write("runs/job.runs.1.0.ads", epoch(1, -9, "CompletionDate", "soon()"), epoch(1, -9), epoch(1, -7, again(-9)...))
	s.poll()
	s.wantSent("sub#1.0#1", later(1, -7))
	if len(s.refused) != 1 || s.refused[0].Run != "sub#1.0#1" {
		t.Errorf("refused %+v", s.refused)
	}
}

func TestImport_HistoryAndEpochs_AreReadOnceEpochsFirst(t *testing.T) {
	s := newSite(t)
	s.jobsOf(30)
	s.restart(list("import", s.path("*history")))
	s.source.batch = 10
	s.fail = 2
	_ = s.collect(sdk.Start{})
	s.fail = -1
	s.restart(list("import", s.path("*history")))
	s.poll()
	s.wantAll()
	if n, err := s.source.Count(t.Context(), sdk.Window{From: noon().Add(-time.Hour), To: noon().Add(time.Hour)}); int(n) != len(s.jobs) || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

func TestImport_HistoriesOfOneJobEach_AreWhole(t *testing.T) {
	s := newSite(t)
	s.write("history.1.0", ad(1, -9))
	s.write("history.2.0", ad(2, -8))
	s.write("history.20260510T120000", past(3, -7), ad(4, -6)) // a crash of the schedd
	s.write("old/history.5.10", ad(5, -5))
	s.restart(list("import", s.path("history.*"), s.path("old/*")))
	s.poll()
	s.wantSent("sub#1.0#1", "sub#2.0#1", "sub#3.0#1", "sub#5.0#1")
	if len(s.refused) != 1 || s.refused[0].Run != "sub#4.0#1" {
		t.Errorf("refused %+v", s.refused)
	}
	if n, err := s.source.Count(t.Context(), sdk.Window{From: noon().Add(-time.Hour), To: noon()}); n != 4 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

func TestImport_HistoryOfOneJobWithoutItsEnd_IsRefused(t *testing.T) {
	s := newSite(t)
	s.write("history.1.0", ad(1, -9))
	s.write("history.2.0", strings.TrimSuffix(ad(2, -8), "\n"))
	s.restart(list("import", s.path("history.*")))
	s.poll()
	s.wantSent("sub#1.0#1")
	if len(s.refused) != 1 || s.refused[0].Run != "sub#2.0#1" || s.refused[0].Message != errCut.Error() {
		t.Errorf("refused %+v", s.refused)
	}
	if n, err := s.source.Count(t.Context(), sdk.Window{From: noon().Add(-time.Hour), To: noon()}); n != 1 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

func TestFilters_LeaveOutOtherUniverses(t *testing.T) {
	s := newSite(t)
	s.write("history", past(1, -9), past(2, -8, "JobUniverse", "7"), past(3, -7, "JobUniverse", "12"), past(4, -6, "Owner", `"bob"`))
	s.poll()
	for n, want := range map[int]bool{1: false, 2: true, 3: true, 4: false} {
		if got := s.jobs[fmt.Sprintf("sub#%d.0#1", n)].Excluded; got != want {
			t.Errorf("job %d: excluded %v", n, got)
		}
	}
	err := s.configure(text("history", s.path("history")), list("universes", "vanila"), list("states", "DONE"), text("constraint", "true"))
	for _, want := range []string{`did you mean \"vanilla\"`, "known are COMPLETED", "evaluates expressions"} {
		if err == nil || !strings.Contains(fmt.Sprintf("%+q", err.Error()), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}
