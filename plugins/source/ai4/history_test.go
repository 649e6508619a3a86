package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// gathered is what a source sent.
type gathered struct {
	jobs    []map[string]sdk.Value
	refused []sdk.Refused
	gaps    []sdk.Gap
	skipped int64
	last    *sdk.Progress
}

// from are the settings that read a path.
func from(path string) settings { return settings{Import: hcl.List[hcl.Absolute]{hcl.Absolute(path)}} }

// collect reads the paths to the end.
func collect(t *testing.T, s *source) *gathered {
	t.Helper()
	if s.zone == nil {
		s.zone = time.UTC
	}
	names, out := jobAttributes(), &gathered{}
	stream := sdk.NewStream(names, func(_ context.Context, b sdk.Batch) error {
		for _, j := range b.Jobs {
			values := map[string]sdk.Value{"excluded": sdk.Bool(j.Excluded)}
			for i, v := range j.Values {
				values[names[i].Name] = v
			}
			out.jobs = append(out.jobs, values)
		}
		out.refused, out.gaps, out.skipped = append(out.refused, b.Refused...), append(out.gaps, b.Gaps...), out.skipped+b.Skipped
		if b.Progress != nil {
			out.last = b.Progress
		}
		return nil
	})
	if err := s.Collect(t.Context(), sdk.Start{}, stream); err != nil {
		t.Fatal(err)
	}
	return out
}

// hours are the hours of a job within a window, times an amount.
func hours(j map[string]sdk.Value, from, to time.Time, amount string) float64 {
	a, b := j["start"].Time(), j["stop"].Time()
	if a.Before(from) {
		a = from
	}
	if b.After(to) {
		b = to
	}
	if !b.After(a) {
		return 0
	}
	n := 1.0
	if amount != "" {
		n = float64(j[amount].Int())
	}
	return b.Sub(a).Hours() * n
}

// The period of the worked example.
var (
	march  = time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	fourth = time.Date(2025, 3, 4, 0, 0, 0, 0, time.UTC)
)

func TestTheHoursOfTheWorldAreExactAsFarAsSnapshotsKnowThem(t *testing.T) {
	got := collect(t, &source{settings: from(absolute(t, "testdata/snapshots"))})
	byJob, ends := map[string]float64{}, map[string][]string{}
	for _, j := range got.jobs {
		id := j["job_id"].Str()
		byJob[id] += hours(j, march, fourth, "")
		end := "exact"
		if j["estimated"].Bool() {
			end = "estimated"
		}
		ends[id] = append(ends[id], j["stop"].Time().Format("01-02T15:04:05 ")+end)
	}
	for id, want := range map[string]struct {
		hours float64
		ends  string
	}{
		"A": {72, "03-04T04:00:30 estimated"},
		"B": {10.25847, "03-01T10:15:30 exact"},
		"C": {3.00831 + 60.83336, "03-01T04:00:30 estimated, 03-03T21:00:00 exact"}, // the truth: 66.3334, the first until 06:30
		"D": {0.66667, "03-01T12:50:00 exact"},
		"E": {10.66667, "03-01T23:00:00 exact"},
		"F": {2, "03-02T22:00:30 exact"},
		"G": {17.83333, "03-02T05:00:00 estimated, 03-02T18:00:00 exact"},
		"H": {27.91667, "03-04T04:00:30 estimated"},
		"K": {71.98333, "03-04T04:00:30 estimated"},
	} {
		if math.Abs(byJob[id]-want.hours) > 1e-4 || strings.Join(ends[id], ", ") != want.ends {
			t.Errorf("%s: %.5f hours, %v; want %.5f, %s", id, byJob[id], ends[id], want.hours, want.ends)
		}
		delete(byJob, id)
	}
	if len(byJob) > 0 { // I, J, P, T and U are in no snapshot
		t.Errorf("beside those: %v", byJob)
	}
}

func TestUsageByNamespaceIsTheTruthLessWhatNoSnapshotSaw(t *testing.T) {
	got := collect(t, &source{settings: from(absolute(t, "testdata/snapshots"))})
	sums := map[string]map[string]float64{}
	for _, j := range got.jobs {
		ns := j["namespace"].Str()
		if sums[ns] == nil {
			sums[ns] = map[string]float64{}
		}
		for _, a := range []string{"cores", "gpus", "memory_mb", "disk_mb"} {
			sums[ns][a] += hours(j, march, fourth, a)
		}
	}
	// What is missing is that of jobs that are in no snapshot, and in imagine the
	// 2.4916 hours of C's first allocation behind its last sighting.
	const c = 2.4917283950 // 06:30:00.222222222 less 04:00:30
	for ns, want := range map[string]map[string]float64{
		"ai4eosc": {"cores": 564.7317 - 71.9972 - 15 - 72, "gpus": 20.5169, "memory_mb": 856499.44 - 71997.22 - 1500 - 7200, "disk_mb": 1658948.61 - 71997.22 - 1500 - 7200},
		"imagine": {"cores": 1201.0010 - 26.6667 - 16*c, "gpus": 69.6667 - 3.3333 - c, "memory_mb": 2290335.31 - 53333.33 - 32000*c, "disk_mb": 3429836.42 - 833.33 - 50000*c},
		"ai4life": {"cores": 279.95, "gpus": 10.6667, "memory_mb": 345950.00, "disk_mb": 269883.33},
	} {
		for a, n := range want {
			if d := math.Abs(sums[ns][a] - n); d > 0.05 {
				t.Errorf("%s %s: %.4f hours, want %.4f", ns, a, sums[ns][a], n)
			}
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	got := collect(t, &source{settings: from(absolute(t, "testdata/snapshots"))})
	want := "2025-03-02T04:00:30Z 2025-03-02T16:00:30Z there is no snapshot for 12h0m0s; what began and ended between is not known"
	if len(got.gaps) != 1 || got.gaps[0].From.Format(time.RFC3339)+" "+got.gaps[0].To.Format(time.RFC3339)+" "+got.gaps[0].Reason != want {
		t.Errorf("gaps %v", got.gaps)
	}
	if len(got.refused) > 0 || got.skipped != 0 {
		t.Errorf("refused %v, skipped %d", got.refused, got.skipped)
	}
	if got.last == nil || got.last.Done != got.last.Total || got.last.Unit != "bytes" {
		t.Errorf("progress %+v", got.last)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	p, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// folder writes snapshot files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// one is a job of a snapshot.
func one(status, start, stop string) string {
	quote := func(s string) string {
		if s == "" {
			return "null"
		}
		return `"` + s + `"`
	}
	return fmt.Sprintf(`{"job_ID":"J","name":"module-J","status":%q,"owner":"u","submit_time":"2025-06-01 00:00:00","alloc_ID":"X",`+
		`"resources":{"cpu_num":2,"cpu_MHz":4000,"gpu_num":0,"memory_MB":1000,"disk_MB":10},"alloc_start":%s,"alloc_end":%s,"something":{"new":1}}`, status, quote(start), quote(stop))
}

func TestOddPartsOfFilesAreRefusedWithTheirPlaceAndStopNothing(t *testing.T) {
	good := one("running", "2025-06-01T01:00:00Z", "")
	dir := folder(t, map[string]string{
		"2025-06-01T04:00:30.json": `{"ns":[` + good + `]}`,
		"2025-06-01T08:00:30.json": `{"ns":[` + good + `,{"job_ID":"half","status":"run`,
		"2025-06-01T12:00:30.json": `{"ns":[` + strings.Replace(good, `"resources":{`, `"resources":null,"was":{`, 1) + `,` + good + `,7,{"status":"running"},` +
			strings.Replace(good, `"cpu_num":2`, `"cpu_num":-2`, 1) + `,` + strings.Replace(good, "T01:00:00Z", " one", 1) + `,` + strings.Replace(good, `"J"`, `{}`, 1) + `]}`,
		"2025-06-01T16:00:30.json": `[1,2]`,
		"2025-06-01T20:00:30.json": ``,
		"2025-06-02T00:00:30.json": `{"ns":[]} {}`,
		"users.json":               `{}`,
		"notes.txt":                `not looked at`,
	})
	got := collect(t, &source{settings: from(dir)})
	var places []string
	for _, r := range got.refused {
		if !strings.HasPrefix(r.Message, r.Run+": ") {
			t.Errorf("%s is refused with %q", r.Run, r.Message)
		}
		places = append(places, r.Message)
	}
	want := []string{
		"2025-06-01T08:00:30.json: byte 281: the file breaks off; what is before it was read",
		"2025-06-01T12:00:30.json: ns[0]: resources are missing or null",
		"2025-06-01T12:00:30.json: ns[2]: it is a number, not a job",
		"2025-06-01T12:00:30.json: ns[3]: job_ID is missing",
		`2025-06-01T12:00:30.json: ns[5]: alloc_start is "2025-06-01 one", which is not a time`,
		"2025-06-01T12:00:30.json: ns[6]: job_ID is a object",
		"2025-06-01T16:00:30.json: byte 1: this is no snapshot, which is an object of lists of jobs by namespace; what is before it was read",
		"2025-06-01T20:00:30.json: byte 0: the file breaks off; what is before it was read",
		"2025-06-02T00:00:30.json: byte 11: this is no snapshot, which is an object of lists of jobs by namespace; what is before it was read",
		"users.json: the name says no time, as in 2025-03-01T08:00:30.json; nothing of it was read",
	}
	slices.Sort(places)
	for i := range max(len(places), len(want)) {
		if i >= len(places) || i >= len(want) || places[i] != want[i] {
			t.Errorf("refused:\n%s\nwant:\n%s", strings.Join(places, "\n"), strings.Join(want, "\n"))
			break
		}
	}
	if len(got.jobs) != 1 || !got.jobs[0]["stop"].Time().Equal(time.Date(2025, 6, 1, 12, 0, 30, 0, time.UTC)) {
		t.Errorf("jobs %v", got.jobs)
	}
}

func TestEachStartOfATaskIsARunWhoseEndIsNotInvented(t *testing.T) {
	at := func(hour int) string { return fmt.Sprintf("2025-06-01T%02d:00:30.json", hour) }
	in := func(job string) string { return `{"ns":[` + job + `]}` }
	first, second := "2025-06-01T01:00:00.5Z", "2025-06-01T07:00:00.123456789Z"
	for name, c := range map[string]struct {
		files map[string]string
		want  string // stop, state and whether it is estimated, of each run
	}{
		"seen to the end":                      {map[string]string{at(4): in(one("running", first, "")), at(8): in(one("dead", first, "2025-06-01T06:00:00Z"))}, "06:00:00 dead"},
		"seen dead again and again":            {map[string]string{at(8): in(one("dead", first, "2025-06-01T06:00:00Z")), at(12): in(one("dead", first, "2025-06-01T06:00:00Z"))}, "06:00:00 dead"},
		"gone before the end was seen":         {map[string]string{at(4): in(one("running", first, "")), at(8): `{"ns":[]}`}, "04:00:30 running estimated"},
		"restarted":                            {map[string]string{at(4): in(one("running", first, "")), at(8): in(one("running", second, ""))}, "07:00:00 restarted estimated, 08:00:30 running estimated"},
		"restarted, and dead":                  {map[string]string{at(4): in(one("running", first, "")), at(8): in(one("dead", second, "2025-06-01T07:30:00Z"))}, "07:00:00 restarted estimated, 07:30:00 dead"},
		"dead without an end":                  {map[string]string{at(4): in(one("running", first, "")), at(8): in(one("dead", first, ""))}, "04:00:30 dead estimated"},
		"only ever dead without an end":        {map[string]string{at(8): in(one("dead", first, ""))}, "01:00:00 dead estimated"},
		"starting, then running":               {map[string]string{at(0): in(one("starting", "", "")), at(4): in(one("running", first, ""))}, "04:00:30 running estimated"},
		"a first moment of the year 1 is none": {map[string]string{at(4): in(one("running", first, "0001-01-01T00:00:00Z"))}, "04:00:30 running estimated"},
		"never running":                        {map[string]string{at(0): in(one("starting", "", "")), at(4): in(one("dead", "", ""))}, ""},
	} {
		got := collect(t, &source{settings: from(folder(t, c.files))})
		var runs []string
		ids := map[string]bool{}
		for _, j := range got.jobs {
			text := j["stop"].Time().Format("15:04:05 ") + j["state"].Str()
			if j["estimated"].Bool() {
				text += " estimated"
			}
			runs, ids[j["id"].Str()] = append(runs, text), true
			if !j["submit"].Time().Equal(time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("%s: submitted %v", name, j["submit"].Time())
			}
		}
		if text := strings.Join(runs, ", "); text != c.want || len(ids) != len(runs) {
			t.Errorf("%s: %s, want %s; ids %v", name, text, c.want, slices.Collect(maps.Keys(ids)))
		}
		if want := map[bool]int64{true: 1}[len(runs) == 0]; got.skipped != want {
			t.Errorf("%s: %d skipped", name, got.skipped)
		}
	}
}

func TestQueuedJobsAreSkippedUntilTheyRun(t *testing.T) {
	queued := strings.NewReplacer(`"alloc_ID":"X"`, `"alloc_ID":null`, `"J"`, `"Q"`).Replace(one("queued", "", ""))
	ran := strings.Replace(queued, `"alloc_ID":null`, `"alloc_ID":"Y"`, 1)
	ran = strings.NewReplacer(`"queued"`, `"running"`, `"alloc_start":null`, `"alloc_start":"2025-06-01T05:00:00Z"`).Replace(ran)
	files := map[string]string{"2025-06-01T04:00:30.json": `{"ns":[` + queued + `,` + strings.Replace(queued, `"Q"`, `"R"`, 1) + `]}`, "2025-06-01T08:00:30.json": `{"ns":[` + ran + `]}`}
	got := collect(t, &source{settings: from(folder(t, files))})
	if len(got.jobs) != 1 || got.skipped != 1 {
		t.Errorf("%d jobs, %d skipped", len(got.jobs), got.skipped)
	}
}

func TestSubmitTimesAreOfTheZoneAndRunsCanBeLeftOut(t *testing.T) {
	madrid, err := time.LoadLocation("Europe/Madrid")
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"2025-06-01T04:00:30.json": `{"ns":[` + one("running", "2025-06-01T01:00:00Z", "") + `]}`})
	for _, c := range []struct {
		source source
		out    bool
	}{
		{source{}, false}, {source{settings: settings{Namespaces: hcl.Strings{"ns"}}}, false}, {source{settings: settings{Namespaces: hcl.Strings{"other"}}}, true},
		{source{settings: settings{Until: hcl.Time{Time: time.Date(2025, 6, 1, 1, 0, 0, 0, time.UTC)}}}, true}, {source{settings: settings{Until: hcl.Time{Time: time.Date(2025, 6, 1, 1, 0, 1, 0, time.UTC)}}}, false},
	} {
		c.source.Import, c.source.zone = from(dir).Import, madrid
		got := collect(t, &c.source)
		if len(got.jobs) != 1 || got.jobs[0]["excluded"].Bool() != c.out || !got.jobs[0]["submit"].Time().Equal(time.Date(2025, 5, 31, 22, 0, 0, 0, time.UTC)) {
			t.Errorf("%+v: %v", c.source, got.jobs)
		}
	}
}
