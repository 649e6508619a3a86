package job_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
)

// js1 is a summary as Jobstats stores it.
func js1(t testing.TB, text string) string { return fakesacct.Jobstats(t, strings.NewReader(text)) }

// Two nodes with three GPUs, as Jobstats writes them.
const twoNodes = `{"nodes":{"n1":{"total_memory":4294967296,"used_memory":1073741824,"total_time":150.4,"cpus":4,"gpu_total_memory":{"0":42949672960,"1":42949672960},` +
	`"gpu_used_memory":{"0":2097152,"1":1048576},"gpu_utilization":{"0":87.5,"1":100}},"n2":{"total_memory":4294967296,"used_memory":524288,"total_time":0.2,"cpus":4,` +
	`"gpu_total_memory":{"0":42949672960},"gpu_used_memory":{"0":0},"gpu_utilization":{"0":0.0}}},"total_time":100,"gpus":3}`

// measurements are the attributes that Jobstats tells, as values of a run.
func measurements(t testing.TB, columns row) (got map[string]any, unread map[string]string) {
	t.Helper()
	db := one(columns)
	plan, err := job.NewPlan(all, db.Columns)
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Run(plan.Fields(db.Rows[0]))
	if err != nil {
		t.Fatal(err)
	}
	values, bad := plan.Values(r)
	got, unread = map[string]any{}, map[string]string{}
	for i, a := range job.Attributes() {
		if name, ours := strings.CutPrefix(a.Name, "jobstats_"); ours {
			got[name] = plain(values[i])
		}
	}
	for _, u := range bad {
		if name, ours := strings.CutPrefix(u.Attribute, "jobstats_"); ours {
			unread[name] = u.Problem
		}
	}
	return got, unread
}

func TestJobstats_Summary_GivesWhatWasUsed(t *testing.T) {
	cpu, gpu := map[string]any{"cpu_seconds": int64(151), "memory_mb": int64(1024)}, map[string]any{"gpu_seconds": int64(188), "gpu_memory_mb": int64(3), "gpu_total_memory_mb": int64(3 * 40960)} // 150.6; 1024.5; 187.5
	none := map[string]any{"cpu_seconds": nil, "memory_mb": nil, "gpu_seconds": nil, "gpu_memory_mb": nil, "gpu_total_memory_mb": nil}
	with := func(parts ...map[string]any) map[string]any {
		out := maps.Clone(none)
		for _, p := range parts {
			maps.Copy(out, p)
		}
		return out
	}
	for _, c := range []struct {
		name string
		row  row
		want map[string]any
	}{
		{"all is measured", row{"AdminComment": js1(t, twoNodes), "AllocNodes": "2", "AllocTRES": "cpu=8,gres/gpu=3"}, with(cpu, gpu)},
		{"Slurm does not say nodes and GPUs", row{"AdminComment": js1(t, twoNodes)}, with(cpu, gpu)},
		{"a node is not measured", row{"AdminComment": js1(t, twoNodes), "AllocNodes": "3", "AllocTRES": "gres/gpu=3"}, with(gpu)},
		{"a GPU is not measured", row{"AdminComment": js1(t, twoNodes), "AllocNodes": "2", "AllocTRES": "gres/gpu=4"}, with(cpu)},
		{"a value of a node is missing", row{"AdminComment": js1(t, strings.Replace(twoNodes, `"total_time":0.2`, `"total_time":null`, 1))}, with(gpu, map[string]any{"memory_mb": int64(1024)})},
		{"no GPUs", row{"AdminComment": js1(t, `{"nodes":{"n1":{"total_time":0.0,"used_memory":1048576,"cpus":1}},"total_time":100,"gpus":0}`)}, with(map[string]any{"cpu_seconds": int64(0), "memory_mb": int64(1)})},
		{"memory that was not measured", row{"AdminComment": js1(t, `{"nodes":{"n1":{"total_time":1,"used_memory":0}}}`)}, with(map[string]any{"cpu_seconds": int64(1)})},
		{"the run goes on", row{"AdminComment": js1(t, twoNodes), "State": "RUNNING", "End": "Unknown"}, none},
		{"it goes on, and nothing can be read", row{"AdminComment": "JS1:?", "State": "RUNNING", "End": "Unknown"}, none},
		{"no data", row{"AdminComment": "JS1:None"}, none},
		{"a short run", row{"AdminComment": "JS1:Short"}, none},
		{"a comment of the site", row{"AdminComment": "moved to gpu by hand"}, none},
		{"no comment", row{"AdminComment": ""}, none},
		{"no column", row{}, none},
		{"a comment of the user", row{"Comment": js1(t, twoNodes)}, none},
	} {
		if got, unread := measurements(t, c.row); !cmp.Equal(got, c.want) || len(unread) > 0 {
			t.Errorf("%s: %v, unread %v; want %v", c.name, got, unread, c.want)
		}
	}
}

func TestJobstats_UnreadableSummary_IsNamedAndNull(t *testing.T) {
	names := []string{"cpu_seconds", "gpu_memory_mb", "gpu_seconds", "gpu_total_memory_mb", "memory_mb"}
	check := func(t interface{ Errorf(string, ...any) }, row row, got map[string]any, unread map[string]string, want ...string) {
		for _, name := range names {
			problem, named := unread[name]
			if named != slices.Contains(want, name) || named && (got[name] != nil || !strings.Contains(problem, ":")) {
				t.Errorf("%q: %s is %v, named %q", row, name, got[name], problem)
			}
		}
	}
	for text, want := range map[string][]string{
		js1(t, strings.Replace(twoNodes, "150.4", "-150.4", 1)):    {"cpu_seconds"},
		js1(t, strings.Replace(twoNodes, "1073741824", "1e30", 1)): {"memory_mb"},
		js1(t, strings.Replace(twoNodes, "87.5", "101", 1)):        {"gpu_seconds"},
		js1(t, strings.Replace(twoNodes, "2097152", "-1", 1)):      {"gpu_memory_mb"},
		js1(t, strings.Replace(twoNodes, "42949672960", "-1", 1)):  {"gpu_total_memory_mb"},
		js1(t, strings.Replace(twoNodes, "150.4", `"150.4"`, 1)):   names,
		js1(t, strings.Repeat(" ", 1<<20)+twoNodes):                names,
		"JS1:" + strings.Repeat("A", 64<<10):                       names,
	} {
		columns := row{"AdminComment": text, "AllocNodes": "2", "AllocTRES": "gres/gpu=3"}
		got, unread := measurements(t, columns)
		check(t, columns, got, unread, want...)
	}
	for column, want := range map[string][]string{"AllocNodes": {"cpu_seconds", "memory_mb"}, "AllocTRES": {"gpu_seconds", "gpu_memory_mb", "gpu_total_memory_mb"}} {
		columns := row{"AdminComment": js1(t, twoNodes), column: "16?"}
		got, unread := measurements(t, columns)
		check(t, columns, got, unread, want...)
	}
	whole := js1(t, twoNodes)
	rapid.Check(t, func(rt *rapid.T) { // bytes that came to harm
		broken := []byte(whole)
		for range rapid.IntRange(1, 5).Draw(rt, "bytes") {
			broken[rapid.IntRange(4, len(broken)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		columns := row{"AdminComment": string(broken[:rapid.IntRange(4, len(broken)).Draw(rt, "length")])}
		if got, unread := measurements(t, columns); len(unread) > 0 {
			check(rt, columns, got, unread, names...)
		}
	})
}

func TestJobstats_AttributeNotWanted_AdminCommentNotAskedFor(t *testing.T) {
	available := []string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End", "AllocNodes", "AllocTRES", "AdminComment", "TotalCPU"}
	for _, a := range job.Attributes() {
		plan, err := job.NewPlan(func(name string) bool { return name == a.Name }, available)
		if err != nil {
			t.Fatal(err)
		}
		want := a.Name == "AdminComment" || strings.HasPrefix(a.Name, "jobstats_")
		if slices.Contains(plan.Columns, "AdminComment") != want || strings.HasPrefix(a.Name, "jobstats_") && plan.Steps {
			t.Errorf("%s: %v, steps %t", a.Name, plan.Columns, plan.Steps)
		}
	}
}
