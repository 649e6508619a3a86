package accounting

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// lines are those of a file in testdata.
func lines(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// sort says what became of each line: its run's id, or why there is none.
func sorted(t testing.TB, name string) (runs []string, skipped map[string]int) {
	skipped = map[string]int{}
	for i, text := range lines(t, name) {
		l, err := Parse(text)
		switch {
		case err == nil:
			runs = append(runs, l.ID())
		case errors.Is(err, ErrComment), errors.Is(err, ErrBlank), errors.Is(err, ErrNeverStarted):
			skipped[err.Error()]++
		default:
			t.Errorf("line %d: %v", i+1, err)
		}
	}
	return runs, skipped
}

func TestEveryLineOfARealFileIsARunOrHasAReasonToBeNone(t *testing.T) {
	runs, skipped := sorted(t, "accounting-8.1.9")
	want := []string{
		"2-1795239620", "1-1795239620", "3.1-1795239620", "3.2-1795239620", "5-1795239622", "3.3-1795239623", "8-1795239622",
		"3.4-1795239625", "9-1795239627", "6-1795239622", "11-1795239628", "11-1795239651", "4-1795239621", "12-1795239651", "13-1795239713",
	}
	if d := cmp.Diff(want, runs); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]int{"a comment": 4, "the job never started": 2}, skipped); d != "" {
		t.Error(d)
	}
}

// The file of 26 lines of which ClusterAccountant takes 20: it drops the second run
// of job 110 and the line of 45 columns, and counts a job that never started.
func TestOfTheReportsFileEveryRunIsTakenOnce(t *testing.T) {
	runs, skipped := sorted(t, "accounting-6.1")
	seen := map[string]bool{}
	for _, id := range runs {
		if seen[id] {
			t.Errorf("%s given more than once", id)
		}
		seen[id] = true
	}
	for _, id := range []string{"110-1349913600", "110-1350000000", "111-1350086400", "101.3-1349654400", "102-1350259200", "102-1350259200-1.geo-b1", "102-1350259200-2.geo-b2"} {
		if !seen[id] {
			t.Errorf("%s is not there: %q", id, runs)
		}
	}
	if d := cmp.Diff(map[string]int{"a comment": 2, "the job never started": 3}, skipped); d != "" || len(runs) != 21 {
		t.Error(len(runs), d)
	}
}

// The worked example says how many service units each owner used in October; here
// the sums of CPU seconds of all months that lead to them.
func TestTheCPUOfSlavesAndTheSlotsOfJobsAreEachCountedOnce(t *testing.T) {
	var cpu, slots int64
	plan := NewPlan(func(string) bool { return true }, Site{})
	for _, text := range lines(t, "accounting-6.1") {
		l, err := Parse(text)
		if err != nil || l.Job != 102 {
			continue
		}
		v := values(t, plan, l)
		cpu += v["cpu_seconds"].Int()
		slots += v["cores"].Int() * v["runtime_seconds"].Int()
	}
	if cpu != 35500 || slots != 8*7200 {
		t.Errorf("%d CPU seconds and %d slot seconds", cpu, slots)
	}
}

func values(t testing.TB, p *Plan, l *Line) map[string]sdk.Value {
	t.Helper()
	list, unread := p.Values(l)
	if len(unread) > 0 {
		t.Fatal(unread)
	}
	out := map[string]sdk.Value{}
	for i, a := range Attributes() {
		out[a.Name] = list[i]
	}
	return out
}

// show writes values as a test compares them.
func show(v sdk.Value) any {
	switch v.Type() {
	case sdk.TypeString:
		return v.Str()
	case sdk.TypeInt:
		return v.Int()
	case sdk.TypeFloat:
		return v.Float()
	case sdk.TypeBool:
		return v.Bool()
	case sdk.TypeTime:
		return v.Time().Format(time.RFC3339Nano)
	case sdk.TypeMap:
		m := map[string]string{}
		for k, e := range v.Map() {
			m[k] = e.Str()
		}
		return m
	case sdk.TypeList:
		list := []string{}
		for _, e := range v.List() {
			list = append(list, e.Str())
		}
		return list
	}
	return nil
}

func usual() Site {
	return Site{Memory: Ask{Requests: []string{"h_vmem", "mem_free"}}, GPUs: Ask{Requests: []string{"gpu", "ngpus"}}}
}

func TestUnitsOfALineOf45Columns(t *testing.T) {
	plan := NewPlan(func(string) bool { return true }, usual())
	l, err := Parse(lines(t, "accounting-8.1.9")[19])
	if err != nil {
		t.Fatal(err)
	}
	v := values(t, plan, l)
	for name, want := range map[string]any{
		"id": "12-1795239651", "qualified_id": "12-1795239651", "job_id": "12", "cell": nil, "columns": int64(45),
		"qname": "all.q", "hostname": "vm", "owner": "alice", "account": "acct_x", "project": "astro", "granted_pe": "smp", "slots": int64(2),
		"submission_time": "2026-11-21T05:40:51Z", "start_time": "2026-11-21T05:40:51Z", "end_time": "2026-11-21T05:40:54Z",
		"cores": int64(2), "slave": false, "cpu": 1.353534, "cpu_seconds": int64(1), "memory_mb": int64(4096), "req_memory_bytes": int64(4 << 30),
		"max_rss_bytes": int64(111616 * 1024), "max_vmem_bytes": int64(116248576), "mem": 0.117244, "io_bytes": int64(318901), "runtime_seconds": int64(3), "wait_seconds": int64(0),
		"requests": map[string]string{"h_rt": "600", "h_vmem": "2G"}, "h_rt_seconds": int64(600), "h_vmem_bytes": int64(2 << 30),
		"pe_taskid": nil, "arid": int64(0), "ar_submission_time": nil, "job_class": nil, "maxrss": nil, "submit_cmd": nil, "array_task_id": nil,
		"state": "COMPLETED", "failure": nil, "exit_signal": int64(0), "extra": []string{},
	} {
		if got := show(v[name]); !cmp.Equal(got, want) {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
	}
}

func TestUnitsOfALineOfUniva(t *testing.T) {
	plan := NewPlan(func(string) bool { return true }, usual())
	l, err := Parse(lines(t, "accounting-uge")[0])
	if err != nil {
		t.Fatal(err)
	}
	v := values(t, plan, l)
	for name, want := range map[string]any{
		"id": "4711-1700000060456", "start_time": "2023-11-14T22:14:20.456Z", "end_time": "2023-11-14T23:14:20.957Z", "submission_time": "2023-11-14T22:13:20.123Z",
		"runtime_seconds": int64(3600), "wait_seconds": int64(60), "max_rss_bytes": int64(2147483648), "memory_mb": int64(24576),
		"submit_host": "login1", "cwd": "/home/ann", "wallclock": 3590.5, "ioops": 1000.0, "qdel_info": nil, "extra": []string{"node7=0,1", "x"},
	} {
		if got := show(v[name]); !cmp.Equal(got, want) {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
	}
	l, err = Parse(lines(t, "accounting-uge")[1])
	if err != nil {
		t.Fatal(err)
	}
	v = values(t, plan, l)
	for name, want := range map[string]any{
		"id": "4712.3-1700000060456", "array_task_id": int64(3), "state": "CANCELLED", "exit_signal": int64(9), "failure": "assumedly after job",
		"qdel_info": "ann@login1", "cwd": "/home/a:nn", "submit_cmd": "qsub -t 1-3 /home/ann/r:un.sh", "memory_mb": nil,
	} {
		if got := show(v[name]); !cmp.Equal(got, want) {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
	}
}

// line makes a line of 45 columns from changes to a good one.
func line(changes map[int]string) string {
	f := strings.Split("all.q:n1:phys:ann:job:7:sge:0:1700000000:1700000010:1700000110:0:0:100:1:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1:0:2.5:1:1:NONE:0:NONE:1000:0:0", ":")
	for i, s := range changes {
		f[i] = s
	}
	return strings.Join(f, ":")
}

func TestHowARunEnded(t *testing.T) {
	for _, c := range []struct {
		failed, exit, category, want string
		signal                       int64
	}{
		{"0", "0", none, Completed, 0},
		{"0", "7", none, Fail, 0},
		{"0", "137", none, Fail, 0},
		{"100", "137", none, Killed, 9},
		{"100", "137", "-l h_rt=100", Timeout, 9},
		{"100", "137", "-l h_rt=101", Killed, 9},
		{"37", "137", "-l h_rt=5", Timeout, 9},
		{"25", "99", none, Requeued, 0},
		{"24", "0", none, Requeued, 0},
		{"30", "100", none, Fail, 0},
		{"19", "0", none, Fail, 0},
		{"777", "0", none, Fail, 0},
	} {
		l, err := Parse(line(map[int]string{failed: c.failed, exitStatus: c.exit, category: c.category}))
		if err != nil {
			t.Fatal(err)
		}
		if l.State() != c.want || l.Signal() != c.signal || (l.Failure() == "") != (c.failed == "0") {
			t.Errorf("failed %s, exit %s: %s, signal %d, %q", c.failed, c.exit, l.State(), l.Signal(), l.Failure())
		}
	}
}

func TestALineThatCannotBeReadSaysWhy(t *testing.T) {
	for text, want := range map[string]string{
		"garbage":                                           "it has 1 columns instead of 43",
		strings.Repeat(":", 500):                            "more than 128 columns",
		line(map[int]string{endTime: "0"}):                  "the run has a start and no end",
		line(map[int]string{endTime: "soon"}):               `column end_time: "soon" is not a whole number`,
		line(map[int]string{jobNumber: ""}):                 "column job_number",
		line(map[int]string{jobName: "a:b"}):                "is not a whole number",
		line(map[int]string{endTime: "999999999999999999"}): "no times of this age",
		line(map[int]string{category: "-l h_rt=0:1:41"}):    `column arid: "NONE" is not a number`,
		`{"job_number":7}`:                                  "old_accounting=true",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
}

func TestAValueThatCannotBeReadNamesItsColumn(t *testing.T) {
	plan := NewPlan(func(string) bool { return true }, usual())
	for _, column := range []int{ruMaxrss, cpu, mem, ruUtime} {
		l, err := Parse(line(map[int]string{column: "plenty"}))
		if err != nil {
			t.Fatal(err)
		}
		_, unread := plan.Values(l)
		if !slices.ContainsFunc(unread, func(u sdk.Unread) bool {
			return u.Attribute == Name(column) && strings.Contains(u.Problem, "column "+Name(column))
		}) {
			t.Errorf("%s: %v", Name(column), unread)
		}
	}
}

func TestAmountsAndTimesOfRequests(t *testing.T) {
	for s, want := range map[string]int64{"2G": 2 << 30, "2g": 2e9, "1.5K": 1536, "100": 100, "1T": 1 << 40, "INFINITY": -1, "": -1, "G": -1, "-1": -1, "1e300G": -1} {
		n, ok := Bytes(s)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("Bytes(%q) is %d, not %d", s, n, want)
		}
	}
	for s, want := range map[string]int64{"600": 600, "1:0:0": 3600, "0:10": 10, "01:02:03": 3723, "::5": 5, "INFINITY": -1, "": -1, "1:2:3:4": -1} {
		n, ok := Seconds(s)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("Seconds(%q) is %d, not %d", s, n, want)
		}
	}
	got := Requests("-U staff -l h_rt=600,gpu=1,exclusive -soft -l mem_free=9G -hard -q all.q -l h_vmem=1G -pe smp 2")
	want := map[string]string{"h_rt": "600", "gpu": "1", "exclusive": "TRUE", "h_vmem": "1G"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestGPUs_Requests_AreCountedForEachSlotOrTheJob(t *testing.T) {
	const unknown, none = -1, -2
	for _, c := range []struct {
		category, slots string
		slot, job       int64
	}{
		{"-l gpu=1", "1", 1, 1}, {"-l gpu=2,h_rt=600 -pe smp 4", "4", 8, 2}, {"-l ngpus=1", "2", 2, 1}, {"-l ngpus=4,gpu=1", "2", 2, 1}, {"-l gpu=1.000000", "3", 3, 1},
		{"-l gpu=0.25 -pe smp 4", "4", 1, unknown}, {"-l gpu=0.25 -pe smp 2", "2", unknown, unknown}, {"-l gpu=0", "4", 0, 0},
		{"-l gpu", "1", unknown, unknown}, {"-l gpu=k80", "1", unknown, unknown}, {"-l gpu=1e9", "1", unknown, unknown}, {"-l gpu=1/2", "2", unknown, unknown},
		{"-l gpu=-1", "1", unknown, unknown}, {"-l gpu=999999999999999999", "99", unknown, 999999999999999999}, {"-l gpu=INFINITY", "1", unknown, unknown},
		{"-l gpu=1", "x", unknown, 1},
		{"NONE", "4", none, none}, {"-l h_rt=600", "4", none, none}, {"-soft -l gpu=1", "4", none, none}, {"-l gpus=1", "4", none, none},
	} {
		for perJob, want := range map[bool]int64{false: c.slot, true: c.job} {
			site := usual()
			site.GPUs.PerJob = perJob
			plan := NewPlan(func(name string) bool { return name == "gpus" }, site)
			for _, task := range []string{"NONE", "1.n2"} {
				l, err := Parse(line(map[int]string{category: c.category, slots: c.slots, peTaskID: task}))
				if err != nil {
					t.Fatal(err)
				}
				want := want
				if task != "NONE" {
					want = none // they are in the line of the job
				}
				list, unread := plan.Values(l)
				v, got := list[slices.IndexFunc(Attributes(), func(a sdk.Attribute) bool { return a.Name == "gpus" })], int64(none)
				switch {
				case len(unread) > 0:
					got = unknown
				case !v.IsNull():
					got = v.Int()
				}
				if got != want {
					t.Errorf("%s, slots %s, task %s, for the job %t: %d (%v), not %d", c.category, c.slots, task, perJob, got, unread, want)
				}
			}
		}
	}
}

func TestGPUs_PerHost_AreKnownWhereTheJobHasOneHost(t *testing.T) {
	for name, c := range map[string]struct {
		pe, slots string
		want      int64 // -1: null, with why
	}{
		"no parallel environment": {"NONE", "1", 2},
		"one slot of any":         {"mpi", "1", 2},
		"slots on one host":       {"smp", "8", 2},
		"slots on several hosts":  {"mpi", "8", -1},
		"unreadable slots":        {"mpi", "x", -1},
	} {
		t.Run(name, func(t *testing.T) {
			site := usual()
			site.GPUs.PerHost, site.GPUs.OneHost = true, []string{"smp"}
			l, err := Parse(line(map[int]string{category: "-l gpu=2", slots: c.slots, grantedPE: c.pe}))
			if err != nil {
				t.Fatal(err)
			}
			list, unread := NewPlan(func(name string) bool { return name == "gpus" }, site).Values(l)
			v := list[slices.IndexFunc(Attributes(), func(a sdk.Attribute) bool { return a.Name == "gpus" })]
			if unknown := c.want < 0; v.IsNull() != unknown || (len(unread) == 1) != unknown || !unknown && v.Int() != c.want {
				t.Errorf("%v, unread %v; want %d", v, unread, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"accounting-8.1.9", "accounting-6.1", "accounting-uge"} {
		for _, text := range lines(f, name) {
			f.Add(text)
		}
	}
	f.Add(line(map[int]string{category: "-l h_rt=99999999999999999:1,h_vmem=1e40G"}))
	plan := NewPlan(func(string) bool { return true }, usual())
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		if l.ID() == "" || l.Start.IsZero() || l.End.IsZero() {
			t.Errorf("a run without name or times: %+v", l)
		}
		if values, _ := plan.Values(l); len(values) != len(Attributes()) {
			t.Errorf("%d values", len(values))
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for name, wants := range map[string]func(string) bool{
		"all": func(string) bool { return true },
		"default mapping": func(a string) bool {
			return strings.Contains(" qualified_id start_time end_time submission_time state exit_status exit_signal owner group account qname cell project department hostname granted_pe cores slave memory_mb gpus cpu_seconds ", " "+a+" ")
		},
	} {
		b.Run(name, func(b *testing.B) {
			plan := NewPlan(wants, usual())
			all := lines(b, "accounting-8.1.9")[4:]
			b.ReportAllocs()
			n, l := 0, new(Line)
			for b.Loop() {
				for _, text := range all {
					if l.Parse(text) == nil {
						_ = sdk.Job{Run: l.ID(), Values: mustValues(b, plan, l), Ended: true}
					}
					n++
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

func mustValues(b *testing.B, p *Plan, l *Line) []sdk.Value {
	v, unread := p.Values(l)
	if len(unread) > 0 {
		b.Fatal(unread)
	}
	return v
}
