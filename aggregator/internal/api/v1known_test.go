package api_test

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// lateJobs are those of a cluster of ten cores, atlas, whose records begin on the 28th: half
// of it was in use all day on the 28th, 29th and 30th.
func lateJobs(rg *rig) {
	for day := 28; day < 30; day++ {
		rg.add(fmt.Sprintf(`{"record_id":"r%d","meta":{"group_id":["atlas"],"user_id":["alice"]},"components":[{"name":"Cores","amount":5,"scores":[]}],"start_time":"2026-04-%dT00:00:00Z","stop_time":"2026-04-%dT00:00:00Z"}`, day, day, day+1))
	}
	rg.add(`{"record_id":"r30","meta":{"group_id":["atlas"],"user_id":["alice"]},"components":[{"name":"Cores","amount":5,"scores":[]}],"start_time":"2026-04-30T00:00:00Z","stop_time":"2026-05-01T00:00:00Z"}`)
}

func TestUsage_BeforeTheFirstRecord_IsUnknown(t *testing.T) {
	rg := newRig(t, withCapacity, noon("2026-05-01T12:00:00Z"))
	lateJobs(rg)
	for query, want := range map[string]string{
		"window=2026-04&measure=utilization&where[cluster]=atlas":                           "0.25", // of 20 cores
		"window=2026&measure=utilization&where[cluster]=atlas":                              "0.21428571428571427",
		"window=2026-03&measure=utilization&where[cluster]=atlas":                           "",
		"window=2026-04&measure=running":                                                    "1",
		"window=2026-05&measure=running":                                                    "0",
		"window=this-month&measure=running":                                                 "0",
		"window=2026-03&measure=running,Cores":                                              "-",
		"window=2026-03&measure=Cores":                                                      "",
		"window=2026-04-26..2026-05-02&measure=Cores&bucket=day":                            "- - 432000 432000 432000 0 -",
		"window=2026-04-26..2026-05-02&measure=running&bucket=day":                          "- - 1 1 1 0 -",
		"window=2026-04-26..2026-05-02&measure=utilization&bucket=day&where[cluster]=atlas": "- - 0.25 0.25 0.25 0 -",
		"window=2026-04&measure=capacity&unit=hour&where[cluster]=atlas":                    "14400", // it was there
		"window=2026-04-28&measure=utilization&where[group_id]=atlas&bucket=hour":           strings.TrimSpace(strings.Repeat("0.25 ", 24)),
	} {
		var s sheetOf
		rg.get("/v1/usage?"+query, &s)
		if got := numbers(s.Measures[0].Values); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	var a v1.Usage
	rg.get("/v1/usage?window=2026-04-26..2026-05-02&measure=Cores&bucket=day", &a)
	if a.Known == nil || a.Known.From.String() != "2026-04-28T00:00:00Z" || a.Known.To.String() != "2026-05-01T12:00:00Z" {
		t.Error(a.Known)
	}
	if want := []bool{true, true, false, false, false, true, true}; !slices.Equal(a.Partial, want) {
		t.Error(a.Partial)
	}
	got := rg.do("GET", "/v1/usage?window=2026-04-27..2026-04-28&measure=Cores&bucket=day&format=csv", "")
	lines, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
	if err != nil || lines[1][3] != "" || lines[2][3] != "432000" {
		t.Error(lines, err)
	}
	var s sheetOf
	rg.get("/v1/usage?window=2026-04&compare=previous&measure=Cores,running", &s)
	c := s.Measures[0].Compared
	if numbers(c.Before) != "-" || numbers(c.Difference) != "-" || numbers(c.Relative) != "-" {
		t.Error("compared with what is unknown:", *c)
	}
}

func TestUsage_SourceSaysFromWhen_LongRunsBeforeAreMarked(t *testing.T) {
	w := apitest.New(t)
	source := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	long := apitest.Job{ID: "long", Group: "atlas", User: "alice", Start: "2026-01-30T00:00:00Z", Stop: "2026-02-12T00:00:00Z", Cores: 1}.Record()
	begin := func(at string) *store.IngestCommand {
		return &store.IngestCommand{Facts: []store.Fact{{Kind: store.FactBegin, Source: source, At: apitest.At(at)}}}
	}
	w.Collect(source, []record.Record{long}, begin("2026-02-10"))
	for _, c := range []struct{ said, from, running string }{{"", "2026-02-10T00:00:00Z", "0.10256410256410256"}, {"2026-02-20", "2026-02-10T00:00:00Z", "0.10256410256410256"}, {"2026-02-05", "2026-02-05T00:00:00Z", "0.2857142857142857"}} {
		if c.said != "" {
			w.Collect(source, nil, begin(c.said))
		}
		a, err := w.API().Usage(t.Context(), &v1.UsageQuery{From: "2026-01", To: "2026-03-01T12:00", Measure: "running"})
		if err != nil || a.Known == nil || a.Known.From.String() != c.from || a.Measures[0].Values[0].String() != c.running {
			t.Errorf("after %q: %v, %v, %v", c.said, a.Known, a.Measures, err)
		}
	}
	a, err := w.API().Usage(t.Context(), &v1.UsageQuery{From: "2026-01-28", To: "2026-02-07", Bucket: "day", Measure: "Cores", Unit: "hour"})
	if got := numbers(a.Measures[0].Values); err != nil || got != "- - 24 24 24 24 24 24 24 24" || !slices.Equal(a.Partial[:9], []bool{true, true, true, true, true, true, true, true, false}) {
		t.Error(got, a.Partial, err)
	}
}

func TestUsage_SourceThatCameLater_IsNamed(t *testing.T) {
	w := apitest.New(t)
	for label, begin := range map[string]string{"old": "2026-01-05", "new": "2026-02-10", "newest": "2026-02-20"} {
		source := record.Origin{Agent: "head1", Type: "slurm", Label: label}
		job := apitest.Job{ID: label, Group: "atlas", User: "alice", Start: begin + "T01:00:00Z", Stop: begin + "T02:00:00Z", Cores: 1}.Record()
		w.Collect(source, []record.Record{job}, &store.IngestCommand{Facts: []store.Fact{{Kind: store.FactBegin, Source: source, At: apitest.At(begin)}}})
	}
	for window, want := range map[[2]string]string{
		{"2026-01-01", "2026-03-01"}: "head1/slurm/new 2026-02-10T00:00:00Z, head1/slurm/newest 2026-02-20T00:00:00Z",
		{"2026-02-01", "2026-02-15"}: "head1/slurm/new 2026-02-10T00:00:00Z",
		{"2026-02-10", "2026-02-12"}: "",
		{"2026-02-10", "2026-02-28"}: "head1/slurm/newest 2026-02-20T00:00:00Z",
		{"2026-02-21", "2026-02-28"}: "",
	} {
		a, err := w.API().Usage(t.Context(), &v1.UsageQuery{From: window[0], To: window[1], Measure: "Cores"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range a.Known.Later {
			got = append(got, s.Source+" "+s.From.String())
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%v: %q, want %q", window, got, want)
		}
		if note := strings.Join(view.KnownNotes(&a.UsageAbout), " "); (want == "") == strings.Contains(note, "All runs are known of head1/slurm/new") {
			t.Errorf("%v: %q", window, note)
		}
	}
}

// Each source has a site and a cluster of ten cores of its own. What is unknown of one is not
// zero, although another has begun before: figures of its site and cluster are compared with
// sums of each record.
func TestUsage_SourceThatCameLater_ItsTimeBeforeIsUnknown(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 7))
	first, now := apitest.At("2026-02-01"), record.FromStd(apitest.Noon())
	for round := range 8 {
		w := apitest.New(t)
		begins, ran := map[string]record.Time{}, map[string][][2]record.Time{}
		for i, site := range []string{"a", "b", "c"} {
			begins[site] = first + record.Time(min(i, 1)*random.IntN(27*24))*record.Hour
			source := record.Origin{Agent: "head1", Type: "slurm", Label: site}
			var list []record.Record
			add := func(start, stop record.Time) {
				r := apitest.Job{ID: fmt.Sprint(site, len(list)), User: "alice", Cores: 3, Meta: map[string]string{"site_id": site}}.Record()
				r.Start, r.Stop = start, stop
				list, ran[site] = append(list, r), append(ran[site], [2]record.Time{start, stop})
			}
			if i == 0 {
				add(first, first+record.Hour) // of all records the first
			}
			for range 1 + random.IntN(6) {
				start := max(first, begins[site]-record.Day) + record.Time(random.Int64N(int64(now-begins[site])))
				add(min(start, now), min(max(start, begins[site])+record.Time(random.Int64N(int64(3*record.Day))), now))
			}
			w.Collect(source, list, &store.IngestCommand{Facts: []store.Fact{{Kind: store.FactBegin, Source: source, At: begins[site]}}})
			w.Settings.Capacity.Clusters = append(w.Settings.Capacity.Clusters, accounting.Cluster{
				Name: "cluster-" + site, Match: []accounting.NodeMatch{{Key: "site_id", Values: []string{site}}},
				Parts: []accounting.ClusterPart{{From: record.None, To: record.None, Components: map[string]int64{"Cores": 10}}},
			})
		}
		w.Keep()
		for site, begin := range begins {
			checkSite(t, w, round, site, begin, ran[site])
		}
	}
}

// checkSite compares the figures of February of a site that begins at a time.
func checkSite(t *testing.T, w *apitest.World, round int, site string, begin record.Time, ran [][2]record.Time) {
	t.Helper()
	from, to := apitest.At("2026-02-01"), apitest.At("2026-03-01")
	ask := func(q v1.UsageQuery) *v1.Usage {
		q.Window = "2026-02"
		a, err := w.API().Usage(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		return &a
	}
	whole := "-"
	if span := to - max(from, begin); span > 0 {
		whole = fmt.Sprint(3 * float64(overlaps(ran, max(from, begin), to)) / float64(10*span))
	}
	of := map[string]string{"site_id": site}
	for name, got := range map[string]*json.Number{
		"of the cluster": ask(v1.UsageQuery{Measure: "utilization", Where: map[string]string{"cluster": "cluster-" + site}}).Measures[0].Total,
		"of the site":    ask(v1.UsageQuery{Measure: "utilization", Where: of}).Measures[0].Total,
		"by cluster":     figureOf(ask(v1.UsageQuery{Measure: "utilization", By: "cluster"}), "cluster-"+site, 0),
	} {
		if !near(got, whole) {
			t.Errorf("round %d: utilization %s %s, which begins at %s: %v, want %s", round, name, site, begin, got, whole)
		}
	}
	alone, beside := ask(v1.UsageQuery{Measure: "Cores", Bucket: "day", Where: of}), ask(v1.UsageQuery{Measure: "Cores", Bucket: "day", By: "site_id"})
	for day := range 28 {
		start := from + record.Time(day)*record.Day
		want := "-"
		if used := overlaps(ran, start, start+record.Day); used > 0 || start+record.Day > begin {
			want = fmt.Sprint(3 * float64(used) / 1e6)
		}
		for name, got := range map[string]*json.Number{"alone": figureOf(alone, "", day), "beside others": figureOf(beside, site, day)} {
			if len(alone.Groups) > 0 && !near(got, want) {
				t.Errorf("round %d: site %s %s, which begins at %s, on %s: %v, want %s", round, site, name, begin, start, got, want)
			}
		}
	}
}

// figureOf is the figure of the first measure of a group in a bucket; "" is the only group.
func figureOf(a *v1.Usage, group string, bucket int) *json.Number {
	for g := range a.Groups {
		if group == "" || len(a.Groups[g].Values) == 1 && a.Groups[g].Values[0] != nil && *a.Groups[g].Values[0] == group {
			return a.Measures[0].Values[g*(len(a.Edges)-1)+bucket]
		}
	}
	return nil
}

// TestUsage_UnknownTime_CountsNowhere compares random begins, zones and windows with sums of
// each record.
func TestUsage_UnknownTime_CountsNowhere(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 6))
	now := at("2026-05-01T12:00:00Z")
	for round := range 12 {
		zone, err := time.LoadLocation([]string{"UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Kiritimati", "Asia/Kathmandu"}[random.IntN(5)])
		if err != nil {
			t.Fatal(err)
		}
		rg := newRig(t, noon("2026-05-01T12:00:00Z"))
		begin := now - record.Time(random.IntN(40*24*60))*60*record.Second
		var list [][2]record.Time
		for i := range 1 + random.IntN(8) {
			start := begin + record.Time(random.Int64N(int64(now-begin)))
			stop := start + record.Time(random.Int64N(int64(now-start)+1))
			list = append(list, [2]record.Time{start, stop})
			rg.add(fmt.Sprintf(`{"record_id":"r%d","meta":{},"components":[{"name":"Cores","amount":3,"scores":[]}],"start_time":"%s","stop_time":"%s"}`, i, start, stop))
		}
		known := firstKnown(list, zone)
		for _, bucket := range []string{"hour", "day", "week", "month", ""} {
			var a v1.Usage
			window := []string{"14d", "2026-04", "this-month", "2026-W17", "2026"}[random.IntN(5)]
			cut := "&bucket=" + bucket
			if bucket == "" {
				cut = ""
			}
			if bucket == "hour" {
				window = "2026-W17"
			}
			rg.get(fmt.Sprintf("/v1/usage?window=%s&zone=%s&measure=Cores,running%s", window, zone, cut), &a)
			if len(a.Groups) == 0 { // no record has cores there, and none ran
				continue
			}
			for b := range len(a.Edges) - 1 {
				from, to := record.FromStd(a.Edges[b].Time), record.FromStd(a.Edges[b+1].Time)
				whole := overlaps(list, from, to)
				span := min(to, now) - max(from, known)
				cores, running := "-", "-"
				if whole > 0 || span > 0 {
					cores = fmt.Sprint(3 * float64(whole) / 1e6)
				}
				if span > 0 {
					running = fmt.Sprint(float64(overlaps(list, max(from, known), min(to, now))) / float64(span))
				}
				if got := a.Measures[1].Values[b]; !near(got, cores) {
					t.Errorf("round %d, %s by %s in %s, records from %s: %s cores %v, want %s", round, window, bucket, zone, known, a.Edges[b], got, cores)
				}
				if got := a.Measures[0].Values[b]; !near(got, running) {
					t.Errorf("round %d, %s by %s in %s, records from %s: %s running %v, want %s", round, window, bucket, zone, known, a.Edges[b], got, running)
				}
			}
		}
	}
}

// firstKnown is the day of the first run that ended, or its start on the day before, and not
// before all records.
func firstKnown(list [][2]record.Time, zone *time.Location) record.Time {
	first := slices.MinFunc(list, func(a, b [2]record.Time) int { return cmp.Compare(a[1], b[1]) })
	y, m, d := first[1].Std().In(zone).Date()
	day := record.FromStd(time.Date(y, m, d, 0, 0, 0, 0, zone))
	earliest := slices.MinFunc(list, func(a, b [2]record.Time) int { return cmp.Compare(a[0], b[0]) })
	return max(earliest[0], min(day, max(first[0], day-record.Day)))
}

// overlaps is how long all runs together ran in a time.
func overlaps(list [][2]record.Time, from, to record.Time) (sum record.Time) {
	for _, r := range list {
		sum += max(0, min(r[1], to)-max(r[0], from))
	}
	return sum
}

func near(got *json.Number, want string) bool {
	if got == nil || want == "-" {
		return got == nil && want == "-"
	}
	var f, w float64
	_, err := fmt.Sscan(got.String()+" "+want, &f, &w)
	return err == nil && math.Abs(f-w) <= 1e-6*math.Max(1, w)
}
