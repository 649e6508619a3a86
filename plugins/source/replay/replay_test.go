package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// sink keeps what a source sends, as a daemon would.
type sink struct {
	jobs       []sdk.Job
	refused    []sdk.Refused
	gaps       []sdk.Gap
	census     *sdk.Census
	checkpoint []byte
	fail       int // batches after which the daemon dies; 0: never
	batches    int
}

var errKilled = errors.New("killed")

func (s *sink) send(_ context.Context, b sdk.Batch) error {
	if s.batches++; s.fail > 0 && s.batches > s.fail {
		return errKilled
	}
	s.jobs = append(s.jobs, b.Jobs...)
	s.refused = append(s.refused, b.Refused...)
	s.gaps = append(s.gaps, b.Gaps...)
	if b.Census != nil {
		s.census = b.Census
	}
	if len(b.Checkpoint) > 0 {
		s.checkpoint = b.Checkpoint
	}
	return nil
}

func (s *sink) runs() string {
	var runs []string
	for _, j := range s.jobs {
		runs = append(runs, j.Run)
	}
	return strings.Join(runs, " ")
}

type player interface {
	collectJobs(context.Context, sdk.Start, *sdk.Stream) error
}

// collect asks once, from the sink's checkpoint, and forgets what came before.
func (s *sink) collect(t *testing.T, p player, from sdk.Start) {
	t.Helper()
	s.jobs, s.refused, s.gaps = nil, nil, nil
	from.Checkpoint = s.checkpoint
	if err := p.collectJobs(t.Context(), from, sdk.NewStream(jobAttributes(), s.send)); err != nil && !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
}

func lineOf(id string, minute int) string {
	stop := noon.Add(time.Duration(minute) * time.Minute)
	return fmt.Sprintf(`{"id":%q,"user":"ann","start":%q,"stop":%d,"cpus":4}`, id, stop.Add(-time.Hour).Format(time.RFC3339), stop.Unix()) + "\n"
}

// log is a file that is written to by the tests.
type log struct {
	t    *testing.T
	path string
}

func newLog(t *testing.T) log { return log{t, filepath.Join(t.TempDir(), "jobs.ndjson")} }

func (l log) append(text string) {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	l.must(err)
}

func (l log) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l log) tail() *tail {
	return &tail{path: l.path, batch: 2, fields: true, now: func() time.Time { return noon }}
}

func TestGrowingFileIsReadOnceAndHalfALineWaits(t *testing.T) {
	l, s := newLog(t), &sink{}
	half := lineOf("c", 3)
	l.append(lineOf("a", 1) + lineOf("b", 2) + half[:20])
	s.collect(t, l.tail(), sdk.Start{})
	if s.runs() != "a b" || len(s.refused) != 0 {
		t.Fatalf("first: %s, refused %v", s.runs(), s.refused)
	}
	s.collect(t, l.tail(), sdk.Start{})
	if s.runs() != "" {
		t.Fatalf("again: %s", s.runs())
	}
	l.append(half[20:] + lineOf("d", 4))
	s.collect(t, l.tail(), sdk.Start{})
	if s.runs() != "c d" {
		t.Fatalf("grown: %s", s.runs())
	}
}

func TestRotationLosesNothing(t *testing.T) {
	cases := []struct {
		name   string
		rotate func(l log)
	}{
		{"rename", func(l log) { l.must(os.Rename(l.path, l.path+".1")) }},
		{"date", func(l log) { l.must(os.Rename(l.path, l.path+"-20260304")) }},
		{"copytruncate", func(l log) {
			data, err := os.ReadFile(l.path)
			l.must(err)
			l.must(os.WriteFile(l.path+".1", data, 0o600))
			l.must(os.Truncate(l.path, 0))
		}},
		{"twice", func(l log) {
			l.must(os.Rename(l.path, l.path+".2"))
			l.must(os.Chtimes(l.path+".2", noon, noon))
			l.append(lineOf("between", 3))
			l.must(os.Rename(l.path, l.path+".1"))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l, s := newLog(t), &sink{}
			l.append(lineOf("a", 1))
			s.collect(t, l.tail(), sdk.Start{})
			l.append(lineOf("b", 2))
			c.rotate(l)
			l.append(lineOf("c", 4))
			s.collect(t, l.tail(), sdk.Start{})
			want := "b c"
			if c.name == "twice" {
				want = "b between c"
			}
			if s.runs() != want || len(s.gaps) != 0 {
				t.Errorf("after: %q, gaps %v", s.runs(), s.gaps)
			}
			s.collect(t, l.tail(), sdk.Start{})
			if s.runs() != "" {
				t.Errorf("again: %q", s.runs())
			}
		})
	}
}

func TestLostFileIsAGap(t *testing.T) {
	l, s := newLog(t), &sink{}
	l.append(lineOf("a", 1))
	s.collect(t, l.tail(), sdk.Start{})
	l.must(os.WriteFile(l.path, []byte(lineOf("z", 9)), 0o600))
	s.collect(t, l.tail(), sdk.Start{})
	if s.runs() != "z" || len(s.gaps) != 1 || !s.gaps[0].From.Equal(noon.Add(time.Minute)) {
		t.Errorf("jobs %q, gaps %v", s.runs(), s.gaps)
	}
}

func TestFileThatIsGoneForAMomentIsNoError(t *testing.T) {
	l, s := newLog(t), &sink{}
	l.append(lineOf("a", 1))
	s.collect(t, l.tail(), sdk.Start{})
	l.must(os.Rename(l.path, l.path+".1"))
	s.collect(t, l.tail(), sdk.Start{})
	l.append(lineOf("b", 2))
	s.collect(t, l.tail(), sdk.Start{})
	if s.runs() != "b" || len(s.gaps) != 0 {
		t.Errorf("jobs %q, gaps %v", s.runs(), s.gaps)
	}
}

func TestFileThatIsTruncatedUnderOurHandsIsReadToItsEndLater(t *testing.T) {
	l, s := newLog(t), &sink{}
	for i := range 8 {
		l.append(lineOf(fmt.Sprint(i), i))
	}
	rotate := func(ctx context.Context, b sdk.Batch) error {
		if s.batches == 1 { // copytruncate, between two batches
			data, err := os.ReadFile(l.path)
			l.must(err)
			l.must(os.WriteFile(l.path+".1", data, 0o600))
			l.must(os.WriteFile(l.path, []byte(lineOf("new", 9)), 0o600))
		}
		return s.send(ctx, b)
	}
	err := l.tail().collectJobs(t.Context(), sdk.Start{}, sdk.NewStream(jobAttributes(), rotate))
	if !errors.Is(err, follow.ErrChanged) {
		t.Fatalf("error: %v, jobs %s", err, s.runs())
	}
	before := s.runs()
	s.collect(t, l.tail(), sdk.Start{})
	if got := before + " " + s.runs(); got != "0 1 2 3 4 5 6 7 new" || len(s.gaps) > 0 {
		t.Errorf("jobs %q, gaps %v", got, s.gaps)
	}
}

func TestAbsentFileIsAnErrorAtFirst(t *testing.T) {
	l := newLog(t)
	err := l.tail().collectJobs(t.Context(), sdk.Start{}, sdk.NewStream(jobAttributes(), (&sink{}).send))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error: %v", err)
	}
}

func TestKilledReaderLosesNothing(t *testing.T) {
	l := newLog(t)
	var all []string
	for i := range 9 {
		all = append(all, fmt.Sprint(i))
		l.append(lineOf(fmt.Sprint(i), i))
	}
	for fail := 1; fail < 6; fail++ {
		s := &sink{fail: fail}
		s.collect(t, l.tail(), sdk.Start{})
		got := strings.Fields(s.runs())
		s.fail = 0
		s.collect(t, l.tail(), sdk.Start{})
		if got = append(got, strings.Fields(s.runs())...); !slices.Equal(got, all) {
			t.Errorf("killed after %d batches: %v", fail, got)
		}
	}
}

func TestRewindSendsWhatIsNotOlder(t *testing.T) {
	l, s := newLog(t), &sink{}
	l.append(lineOf("a", 1) + lineOf("b", 20) + lineOf("c", 30))
	s.collect(t, l.tail(), sdk.Start{})
	s.collect(t, l.tail(), sdk.Start{Rewind: 15 * time.Minute})
	if s.runs() != "b c" {
		t.Errorf("rewound: %q", s.runs())
	}
	s.collect(t, l.tail(), sdk.Start{})
	if s.runs() != "" {
		t.Errorf("after: %q", s.runs())
	}
}

func TestWindowReadsOldFilesAndLeavesTheCheckpoint(t *testing.T) {
	l, s := newLog(t), &sink{}
	l.append(lineOf("a", 1) + lineOf("b", 2))
	l.must(os.Rename(l.path, l.path+".1"))
	l.append(lineOf("c", 3) + lineOf("d", 4))
	s.collect(t, l.tail(), sdk.Start{Window: &sdk.Window{From: noon.Add(2 * time.Minute), To: noon.Add(4 * time.Minute)}})
	if s.runs() != "b c" || s.checkpoint != nil {
		t.Errorf("window: %q, checkpoint %s", s.runs(), s.checkpoint)
	}
}

func TestOddLinesAreRefusedWithTheirTextAndStopNothing(t *testing.T) {
	cases := []struct{ line, want string }{
		{"not json", "not a JSON object"},
		{"[1]", "not a JSON object"},
		{"null", "not a JSON object"},
		{"{} {}", "more than one"},
		{`{"start":1}`, "id: missing"},
		{`{"id":"x"}`, "start: missing"},
		{`{"id":"x","start":"yesterday"}`, "start: \"yesterday\" is neither"},
		{`{"id":"x","start":1e300}`, "start: 1e300"},
		{`{"id":"` + strings.Repeat("x", follow.MaxLine) + `"}`, "a line of"},
	}
	for _, c := range cases {
		l, s := newLog(t), &sink{}
		l.append(c.line + "\n\n" + lineOf("good", 1))
		s.collect(t, l.tail(), sdk.Start{})
		if s.runs() != "good" || len(s.refused) != 1 || !strings.Contains(s.refused[0].Message, c.want) {
			t.Errorf("%.60s: jobs %q, refused %.300v", c.line, s.runs(), s.refused)
			continue
		}
		if raw := string(s.refused[0].Raw); !strings.HasPrefix(c.line, raw[:min(len(raw), 100)]) {
			t.Errorf("%.60s: raw %.60q", c.line, raw)
		}
	}
}

func TestARefusedLineBearsTheRunsNameAndAMendedOneComesInALaterBatch(t *testing.T) {
	l := newLog(t)
	good := lineOf("a", 1)
	for i, bad := range []string{`"start":"yesterday"`, `"x":1`, `"start":1,"stop":"soon"`} {
		for _, id := range []string{`"a"`, `7`} {
			l.must(os.WriteFile(l.path, nil, 0o600))
			text := strings.Replace(good, `"a"`, id, 1)
			l.append(text + "{\"id\":" + id + "," + bad + "}\n" + lineOf("b", 2) + text + lineOf("c", 3))
			tail := l.tail()
			tail.batch = 100
			var seen []string
			send := func(_ context.Context, b sdk.Batch) error {
				for _, j := range b.Jobs {
					seen = append(seen, j.Run)
				}
				for _, r := range b.Refused {
					seen = append(seen, "!"+r.Run)
				}
				return nil
			}
			l.must(tail.collectJobs(t.Context(), sdk.Start{}, sdk.NewStream(jobAttributes(), send)))
			run := strings.Trim(id, `"`)
			if want := []string{run, "b", "!" + run, run, "c"}; !slices.Equal(seen, want) {
				t.Errorf("case %d: %q, want %q", i, seen, want)
			}
		}
	}
}

func TestParse_UnreadableKey_RunCountsWithoutIt(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	describe := func(lines string) (*bursarv1.DescribeResponse, *plugintest.Collected) {
		l := newLog(t)
		l.append(lines)
		client := plugintest.Serve(t, func() sdk.Source { return newSource(time.Now) })
		if r, err := client.Configure(t.Context(), &bursarv1.ConfigureRequest{Label: "test", Config: plugintest.Block("config", plugintest.Attr("path", l.path))}); err != nil || len(r.GetDiagnostics()) > 0 {
			t.Fatal(err, r.GetDiagnostics())
		}
		d, err := client.Describe(t.Context(), &bursarv1.DescribeRequest{})
		l.must(err)
		got, err := (&plugintest.Daemon{Client: client}).Collect(t.Context(), sdk.Start{})
		l.must(err)
		return d, got
	}
	whole := map[string]any{
		"start": 1000, "stop": 4600, "submit": 900, "exit_code": 0, "exit_signal": 9, "nodes": 1, "cpus": 4, "memory_mb": 100, "gpus": 1, "cpu_seconds": 50, "hepscore": 12.5,
	}
	odd := []any{"1e999", true, []any{}, map[string]any{}, 1.5, json.Number("1e400"), json.Number("9223372036854775808"), json.Number("1" + strings.Repeat("0", 30))}
	var sound, broken strings.Builder
	for n := range 200 {
		object := maps.Clone(whole)
		object["id"] = strconv.Itoa(n)
		write := func(to *strings.Builder) {
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			to.Write(append(text, '\n'))
		}
		write(&sound)
		keys := []string{"submit", "exit_code", "exit_signal", "nodes", "cpus", "memory_mb", "gpus", "cpu_seconds", "hepscore", "user"}
		key := keys[r.IntN(len(keys))]
		switch v := odd[r.IntN(len(odd))]; {
		case r.IntN(2) == 0 && key != "user":
			object[key] = plugintest.Garbage(r)
		case v == 1.5 && (key == "hepscore" || key == "submit" || key == "user"), key == "user" && r.IntN(2) == 0:
			object[key] = map[string]any{"name": "alice"}
		case key == "hepscore" || key == "user":
			object[key] = []any{1}
		default:
			object[key] = v
		}
		write(&broken)
	}
	_, want := describe(sound.String())
	d, got := describe(broken.String())
	if named := plugintest.CheckUnread(t, d, want, got); named != 200 || t.Failed() {
		t.Errorf("seed %d: %d values are named", seed, named)
	}
}

func TestColumnsAndFieldsOfALine(t *testing.T) {
	job, err := parseJob([]byte(`{"id":7,"start":1.5,"stop":"1970-01-01T01:00:00.25+01:00","cpus":2e0,"x":{"y":[1,"a",null,true]}}`), jobAttributes(), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if job.Run != "7" || !job.Ended || job.Values[colStart].Time() != time.UnixMicro(1_500_000).UTC() || job.Values[colStop].Time() != time.UnixMicro(250_000).UTC() {
		t.Errorf("job: %+v", job)
	}
	fields := job.Values[len(job.Values)-1].Map()
	if y := fields["x"].Map()["y"].List(); len(y) != 4 || y[0].Int() != 1 || y[1].Str() != "a" || !y[2].IsNull() || !y[3].Bool() {
		t.Errorf("fields: %v", fields)
	}
}

func TestOldCheckpointOfAnUnknownFormatIsAnError(t *testing.T) {
	for _, text := range []string{"x", `{"format":9}`, `{"format":1,"offset":-1}`} {
		if _, err := readCheckpoint([]byte(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func recorded(at *time.Time, seed uint64) *cluster {
	return &cluster{seed: seed, jobs: 2000, history: 14 * 24 * time.Hour, speed: 1, now: func() time.Time { return *at }}
}

func TestRecordedCluster_MissedJobs_AreCountedAndBroughtByAWindow(t *testing.T) {
	now := noon
	c := recorded(&now, 1)
	c.missed = 3
	day := noon.Truncate(24 * time.Hour).Add(-missedDays * 24 * time.Hour)
	w := sdk.Window{From: day, To: day.Add(24 * time.Hour)}
	if n, err := c.countJobs(t.Context(), w); err == nil {
		t.Errorf("%d jobs before the first collection", n)
	}
	var gaps []sdk.Gap
	collected := func(start sdk.Start) (n int64) {
		s := &sink{}
		s.collect(t, c, start)
		gaps = append(gaps, s.gaps...)
		for _, j := range s.jobs {
			if stop := j.Values[colStop]; j.Ended && !stop.Time().Before(w.From) && stop.Time().Before(w.To) {
				n++
			}
		}
		return n
	}
	stream, window := collected(sdk.Start{}), collected(sdk.Start{Window: &w})
	n, err := c.countJobs(t.Context(), w)
	if err != nil || n != window || stream != n-3 {
		t.Errorf("%d counted, %d by a window, %d by the collection: %v", n, window, stream, err)
	}
	if len(gaps) != 1 || gaps[0].From != day || !gaps[0].To.After(day) || gaps[0].To.After(w.To) {
		t.Errorf("gaps %v, want one of %s", gaps, day)
	}
}

func TestRecordedCluster_Census_HasWhoRunsAndWaits(t *testing.T) {
	now := noon
	c := recorded(&now, 3)
	s := &sink{}
	for _, after := range []time.Duration{0, time.Minute, 90 * time.Minute, 30 * time.Hour} {
		now = noon.Add(after)
		s.collect(t, c, sdk.Start{})
		want := map[sdk.CensusRow]int64{} // by user and queue: running, and waiting from 1 << 32 on
		look := func(j job) {
			key := sdk.CensusRow{User: userName(j.user), Queue: playedSites()[j.site].partitions[j.partition]}
			if !j.start.After(now) && j.stop.After(now) {
				want[key]++
			}
			if !j.submit.After(now) && j.start.After(now) {
				want[key] += 1 << 32
			}
		}
		for n := range c.jobs {
			look(c.pastJob(noon, n))
		}
		for n := range int(after/liveGap) + 2000 {
			look(c.liveJob(noon, n))
		}
		got := map[sdk.CensusRow]int64{}
		for _, row := range s.census.Rows {
			got[sdk.CensusRow{User: row.User, Queue: row.Queue}] += row.Running + row.Pending<<32
		}
		maps.DeleteFunc(want, func(_ sdk.CensusRow, n int64) bool { return n == 0 })
		if !maps.Equal(got, want) || !s.census.At.Equal(now) {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
}

// The audit of a past day asks for a window without a checkpoint, some time after the first
// collection.
func TestRecordedCluster_LaterWindows_HaveTheJobsThatWereCollected(t *testing.T) {
	now := noon
	c := recorded(&now, 2)
	first := &sink{}
	first.collect(t, c, sdk.Start{})
	stops := map[string]time.Time{}
	for _, j := range first.jobs {
		if j.Ended {
			stops[j.Run] = j.Values[colStop].Time()
		}
	}
	for days := range 14 {
		now = now.Add(17 * time.Minute)
		day := noon.Truncate(24*time.Hour).AddDate(0, 0, -days-1)
		w := sdk.Window{From: day, To: day.Add(24 * time.Hour)}
		s, want := &sink{}, 0
		s.collect(t, c, sdk.Start{Window: &w})
		for _, stop := range stops {
			if !stop.Before(w.From) && stop.Before(w.To) {
				want++
			}
		}
		ended := 0
		for _, j := range s.jobs {
			if j.Ended {
				if ended++; !stops[j.Run].Equal(j.Values[colStop].Time()) {
					t.Errorf("%s ended at %v, and in a window at %v", j.Run, stops[j.Run], j.Values[colStop].Time())
				}
			}
		}
		if n, err := c.countJobs(t.Context(), w); err != nil || int(n) != want || ended != want {
			t.Fatalf("%v: %d counted, %d in the window, %d collected: %v", day, n, ended, want, err)
		}
	}
}

func TestRecordedClusterIsTheSameForTheSameSeed(t *testing.T) {
	now := noon
	play := func(seed uint64) string {
		s := &sink{}
		s.collect(t, recorded(&now, seed), sdk.Start{})
		return fmt.Sprint(s.jobs)
	}
	if first, again := play(1), play(1); first != again {
		t.Error("two plays differ")
	}
	if play(1) == play(2) {
		t.Error("two seeds agree")
	}
}

func TestRecordedClusterHasWhatANewcomerWantsToSee(t *testing.T) {
	now, s, seen := noon, &sink{}, map[string]int{}
	s.collect(t, recorded(&now, 1), sdk.Start{})
	column := func(name string) int {
		return slices.IndexFunc(jobAttributes(), func(a sdk.Attribute) bool { return a.Name == name })
	}
	runs := map[string]bool{}
	for _, j := range s.jobs {
		runs[j.Run] = true
		seen[j.Values[column("site")].Str()]++
		seen[j.Values[column("state")].Str()]++
		if j.Values[column("gpus")].Int() > 0 {
			seen["gpu"]++
		}
		if strings.Contains(j.Run, "_") {
			seen["array"]++
		}
		if j.Values[column("cpu_seconds")].Int() < 0 {
			seen["odd"]++
		}
	}
	if len(runs) != 2000 {
		t.Errorf("%d runs", len(runs))
	}
	if seen["odd"] != 3 {
		t.Errorf("%d odd jobs", seen["odd"])
	}
	for _, what := range []string{"aurora", "breeze", "cirrus", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "RUNNING", "gpu", "array"} {
		if seen[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
}

func TestRecordedJobsOpenAndCloseWhileOneWatches(t *testing.T) {
	now, s := noon, &sink{}
	c := recorded(&now, 1)
	s.collect(t, c, sdk.Start{})
	open, events := map[string]bool{}, 0
	for range 600 {
		now = now.Add(time.Second)
		s.collect(t, c, sdk.Start{})
		for _, j := range s.jobs {
			events++
			if !j.Ended {
				open[j.Run] = true
			}
			if j.Ended {
				delete(open, j.Run)
			}
		}
	}
	if events < 400 || events > 900 {
		t.Errorf("%d events in ten minutes", events)
	}
	if len(open) == 0 || len(open) > 200 {
		t.Errorf("%d jobs run at the end", len(open))
	}
}

func TestKilledPlayOfTheClusterLosesNoEnd(t *testing.T) {
	now := noon
	ends := func(s *sink) map[string]bool {
		out := map[string]bool{}
		for _, j := range s.jobs {
			if j.Ended {
				out[j.Run] = true
			}
		}
		return out
	}
	whole := &sink{}
	whole.collect(t, recorded(&now, 1), sdk.Start{})
	for fail := 1; fail < 5; fail++ {
		s := &sink{fail: fail}
		s.collect(t, recorded(&now, 1), sdk.Start{})
		got := ends(s)
		s.fail = 0
		s.collect(t, recorded(&now, 1), sdk.Start{})
		maps.Copy(got, ends(s))
		if d := cmp.Diff(ends(whole), got); d != "" {
			t.Errorf("killed after %d: %s", fail, d)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(lineOf("a", 1)))
	f.Add([]byte(`{"id":1,"start":1,"x":[[{}]]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		job, err := parseJob(line, jobAttributes(), nil, true)
		if err == nil && (job.Run == "" || len(job.Values) != len(jobAttributes())) {
			t.Errorf("job %+v", job)
		}
	})
}

func TestConfigure_AFileThatDoesNotExist_IsAWarning(t *testing.T) {
	cfg := sdk.NewConfig("x", sdk.Node{IsBlock: true, Children: []sdk.Node{{Name: "path", Value: sdk.String("/nowhere/jobs.json")}}})
	problems, ok := errors.AsType[sdk.Diagnostics](newSource(time.Now).Configure(t.Context(), cfg))
	if !ok || problems.HasErrors() || !strings.Contains(problems.Error(), "file /nowhere/jobs.json does not exist yet") {
		t.Errorf("%v", problems)
	}
}

func TestKeysThatTheMappingDoesNotReadAreFindings(t *testing.T) {
	line := []byte(`{"id":"a","start":1,"stop":2,"cores":8,"project":"p","name":"x","none":null}`)
	for _, c := range []struct {
		keys []string
		want []string
	}{
		{nil, []string{"cores", "project"}},
		{[]string{"fields.project"}, []string{"cores"}},
		{[]string{"fields.cores", "fields.project"}, nil},
		{[]string{"fields.*"}, nil},
	} {
		job, err := parseJob(line, jobAttributes(), c.keys, true)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range job.Findings {
			got = append(got, f.About)
			if f.Kind != "column-unread" || f.What == "" || f.Do == "" {
				t.Errorf("%+v", f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.keys, got, c.want)
		}
	}
}
