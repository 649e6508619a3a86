package report_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// worldOfSource is a cluster with jobs of a source of this type.
func worldOfSource(t *testing.T, source string, jobs ...apitest.Job) *apitest.World {
	t.Helper()
	w := apitest.New(t)
	w.Options.Now = now
	from := record.Origin{Agent: "head1", Type: source, Label: "main"}
	w.Collect(from, apitest.Records(jobs...), &store.IngestCommand{
		Now: apitest.At("2026-11-22"), Watermarks: []store.Watermark{{Source: from, CompleteTo: apitest.At("2026-11-22T13:00:00Z")}},
	})
	return w
}

// rowsOf are the rows of a table of a report, as a person sees them.
func rowsOf(t *testing.T, w *apitest.World, name, table string, query url.Values) (rows []string) {
	t.Helper()
	d, err := report.Make(t.Context(), w.API(), name, query, now())
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Tables {
		if d.Tables[i].Name != table {
			continue
		}
		for _, row := range d.Tables[i].Rows {
			var cells []string
			for c := range row {
				cells = append(cells, d.Tables[i].Show(row, c))
			}
			rows = append(rows, strings.Join(cells, " | "))
		}
	}
	return rows
}

func TestAdvice_JobsThatWaste_AreTotalledWithWhatToRequest(t *testing.T) {
	t.Parallel()
	job := func(id string, change func(j *apitest.Job)) apitest.Job {
		j := apitest.Job{ID: id, Group: "cms", User: "ann", Start: "2026-10-03T00:00:00Z", Stop: "2026-10-03T10:00:00Z", Cores: 8, CPU: 8 * 36000, State: "COMPLETED"}
		change(&j)
		return j
	}
	jobs := []apitest.Job{
		job("idle-gpu", func(j *apitest.Job) { j.GPUs, j.GPUTime = 2, 36 }),
		job("idle-gpu-serial", func(j *apitest.Job) { j.GPUs, j.GPUTime, j.CPU = 1, 1, 36000 }), // its one core feeds the GPU
		job("low-gpu", func(j *apitest.Job) { j.GPUs, j.GPUTime = 4, 4*3600 }),
		job("busy-gpu", func(j *apitest.Job) { j.GPUs, j.GPUTime = 1, 5400 }), // 15 %
		job("serial", func(j *apitest.Job) { j.CPU = 36000 }),
		job("serial-too", func(j *apitest.Job) { j.CPU = 39600 }), // 1.1 cores
		job("low", func(j *apitest.Job) { j.CPU = 39601 }),
		job("half", func(j *apitest.Job) { j.CPU = 4 * 36000 }),
		job("memory", func(j *apitest.Job) { j.Memory, j.MemoryUsed = 64*1024, 5000 }),
		job("memory-too", func(j *apitest.Job) { j.Memory, j.MemoryUsed = 64*1024, 6000 }),
		job("memory-fifth", func(j *apitest.Job) { j.Memory, j.MemoryUsed = 64*1000, 64*200 }),
		job("memory-small", func(j *apitest.Job) { j.Memory, j.MemoryUsed = 4097, 1 }),
		job("short", func(j *apitest.Job) { j.Stop, j.CPU = "2026-10-03T00:09:59Z", 1 }),
		job("short-timeout", func(j *apitest.Job) { j.Stop, j.CPU, j.State = "2026-10-03T00:06:00Z", 8*360, "TIMEOUT" }),
		job("oom", func(j *apitest.Job) { j.Memory, j.State = 8192, "OUT_OF_MEMORY" }),
		job("running", func(j *apitest.Job) { j.Stop, j.CPU = "", 1 }),
		job("began-before", func(j *apitest.Job) { j.Start, j.CPU = "2026-09-30T23:59:59Z", 1 }),
	}
	query := url.Values{"user": {"ann"}, "period": {"2026-10"}}
	lines := []string{
		"GPUs not used | ann | 1 | 19.99 | GPU-hours | 2 GPUs | %s | idle-gpu",
		"GPUs not used | ann | 1 | 10.00 | GPU-hours | 1 GPU | %s | idle-gpu-serial",
		"GPUs used below 15 %% | ann | 1 | 36 | GPU-hours | 4 GPUs | %s | low-gpu",
		"One core used of several | ann | 2 | 139 | core-hours | 8 cores | %s | serial",
		"Cores used below 50 %% | ann | 1 | 69.00 | core-hours | 8 cores | %s | low",
		"Memory used below 20 %% | ann | 2 | 1 173 | GiB-hours | 64 GiB | %s | memory",
		"Ended by the time limit | ann | 1 | 0.8000 | core-hours | – | %s | short-timeout",
		"Ended by the memory limit | ann | 1 | 80 | core-hours | 8 GiB | %s | oom",
	}
	const time, limit = "more time, or write checkpoints", " or a slice of one"
	for source, words := range map[string][]string{
		"slurm":      {"no GPU: without --gpus, --gres=gpu", "--gpus=1," + limit, "--ntasks=1 --cpus-per-task=1", "--ntasks=1 --cpus-per-task=2", "--mem-per-cpu=900M", time, "--mem-per-cpu=1600M"},
		"htcondor":   {"no GPU: without request_gpus", "request_gpus = 1," + limit, "request_cpus = 1", "request_cpus = 2", "request_memory = 7200M", time, "request_memory = 12G"},
		"gridengine": {"no GPU", "1 GPU," + limit, "1 slot: without -pe", "2 slots", "-l h_vmem=900M", time, "-l h_vmem=1600M"},
		"kubernetes": {"no GPU", "1 GPU," + limit, "requests: cpu: 1", "requests: cpu: 2", "requests: memory: 7200Mi", time, "requests: memory: 12Gi"},
		"nomad":      {"no GPU", "1 GPU," + limit, "resources { cores = 1 }", "resources { cores = 2 }", "resources { memory = 7200 }", time, "resources { memory = 12300 }"},
		"auditor":    {"no GPU", "1 GPU," + limit, "1 core", "2 cores", "7200 MiB of memory", time, "12 GiB of memory"},
	} {
		words = append(words[:1:1], words...) // two lines are of GPUs that no one used
		var want []string
		for i, line := range lines {
			want = append(want, fmt.Sprintf(line, words[i]))
		}
		if d := cmp.Diff(want, rowsOf(t, worldOfSource(t, source, jobs...), "person", "advice", query)); d != "" {
			t.Errorf("%s: -want +got:\n%s", source, d)
		}
	}
}

func TestLostByState_OfRandomJobs_IsTheSumOfThoseThatFailed(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 5)) //nolint:gosec // a seed that repeats
	words := map[string]bool{"COMPLETED": false, "complete": false, "deleted": false, "killed": false, "KILLED": true, "FAILED": true, "TIMEOUT": true, "oom": true, "": false}
	states := slices.Sorted(func(yield func(string) bool) {
		for s := range words {
			if !yield(s) {
				return
			}
		}
	})
	var jobs []apitest.Job
	hours := map[string]int64{}
	var lost int64
	for i := range 200 {
		state, cores, long := states[random.IntN(len(states))], 1+random.Int64N(64), 1+random.Int64N(20)
		start := time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(600)) * time.Hour)
		jobs = append(jobs, apitest.Job{
			ID: fmt.Sprint(i), Group: "cms", User: "ann", Cores: cores, State: state, Start: start.Format(time.RFC3339), Stop: start.Add(time.Duration(long) * time.Hour).Format(time.RFC3339),
		})
		hours[state] += cores * long
		if words[state] {
			lost += cores * long
		}
	}
	d, err := report.Make(t.Context(), worldOfSource(t, "slurm", jobs...).API(), "projects", url.Values{"of": {"group_id=cms"}, "period": {"2026-10"}}, now())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(d.Tables, func(t v1.DocumentTable) bool { return t.Name == "states" })
	if at < 0 {
		t.Fatal("no table of states")
	}
	table := &d.Tables[at]
	if got := table.Totals[4].Number(); got == nil || got.Cmp(big.NewRat(lost, 1)) != 0 {
		t.Errorf("lost %v, want %d", got, lost)
	}
	for _, row := range table.Rows {
		state := v1.Show("", row[0])
		if state == view.NoValue {
			state = ""
		}
		if n := row[2].Number(); n == nil || !n.IsInt() || n.Num().Int64() != hours[state] {
			t.Errorf("state %q: %v core-hours, want %d", state, n, hours[state])
		}
		if row[4].Known() != words[state] {
			t.Errorf("state %q: lost %v, want %v", state, row[4].Known(), words[state])
		}
	}
	if len(table.Rows) != len(words) {
		t.Errorf("%d rows, want %d", len(table.Rows), len(words))
	}
}

// More jobs began before a short period than are looked at, each larger than those of the period.
func TestLargestJobs_ManyBeganBeforeThePeriod_AreThoseOfThePeriod(t *testing.T) {
	t.Parallel()
	var jobs []apitest.Job
	for i := range 2100 {
		jobs = append(jobs, apitest.Job{ID: fmt.Sprint("before", i), Group: "cms", User: "ann", Cores: 10, CPU: 10, Start: "2026-10-27T00:00:00Z", Stop: "2026-11-01T02:00:00Z"})
	}
	jobs = append(jobs, apitest.Job{ID: "waste", Group: "cms", User: "ann", Cores: 40, CPU: 3600, Start: "2026-11-05T00:00:00Z", Stop: "2026-11-06T02:00:00Z"})
	w := worldOfSource(t, "slurm", jobs...)
	query := url.Values{"of": {"group_id=cms"}, "period": {"2026-11"}}
	if rows := rowsOf(t, w, "projects", "jobs", query); len(rows) == 0 || !strings.HasPrefix(rows[0], "waste | ") {
		t.Errorf("the largest jobs are %v", rows)
	}
	if rows := rowsOf(t, w, "projects", "advice", query); len(rows) != 1 || !strings.Contains(rows[0], "waste") {
		t.Errorf("advice is %v", rows)
	}
	d, err := report.Make(t.Context(), w.API(), "projects", query, now())
	if err != nil || !slices.ContainsFunc(d.Notes, func(n string) bool {
		return strings.Contains(n, "The largest jobs are from a part of the jobs")
	}) {
		t.Errorf("%v: no note of that not all jobs were looked at: %q", err, d.Notes)
	}
}
