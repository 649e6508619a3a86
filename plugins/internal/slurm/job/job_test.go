package job_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	fakesacct.Main()
	os.Exit(m.Run())
}

func all(string) bool { return true }

// runs assembles the runs of a database.
func runs(t *testing.T, db *fakesacct.DB, wants func(string) bool) []*job.Run {
	t.Helper()
	c := &sacct.Client{Path: fakesacct.Install(t, t.TempDir(), db), Timeout: time.Minute}
	plan, err := job.NewPlan(wants, db.Columns)
	if err != nil {
		t.Fatal(err)
	}
	var out []*job.Run
	q := sacct.Query{Columns: plan.Columns, From: time.Unix(86400, 0), To: time.Unix(1<<33, 0), Steps: true}
	err = c.Rows(context.Background(), q, func(row sacct.Row) error {
		if _, step := plan.IsStep(row.Fields); step {
			out[len(out)-1].Step(row.Fields, nil)
			return nil
		}
		r, err := plan.Run(row.Fields)
		out = append(out, r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// values are a run's by name, as JSON can show them.
func values(t *testing.T, wants func(string) bool, db *fakesacct.DB, r *job.Run) map[string]any {
	t.Helper()
	plan, err := job.NewPlan(wants, db.Columns)
	if err != nil {
		t.Fatal(err)
	}
	vs, unread := plan.Values(r)
	if len(unread) > 0 {
		t.Fatal(unread)
	}
	out := map[string]any{}
	for i, a := range job.Attributes() {
		if !vs[i].IsNull() && vs[i].Type() != a.Type {
			t.Errorf("%s is declared as %s and is %s", a.Name, a.Type, vs[i].Type())
		}
		if !vs[i].IsNull() {
			out[a.Name] = plain(vs[i])
		}
	}
	return out
}

func plain(v sdk.Value) any {
	switch v.Type() {
	case sdk.TypeString:
		return v.Str()
	case sdk.TypeInt:
		return v.Int()
	case sdk.TypeFloat:
		return v.Float()
	case sdk.TypeTime:
		return v.Time().Format(time.RFC3339)
	case sdk.TypeList:
		out := []any{}
		for _, e := range v.List() {
			out = append(out, plain(e))
		}
		return out
	case sdk.TypeBool:
		return v.Bool()
	case sdk.TypeMap:
		out := map[string]any{}
		for k, e := range v.Map() {
			out[k] = plain(e)
		}
		return out
	}
	return nil
}

func TestRecordedJobsGiveTheValuesOfTheGoldenFiles(t *testing.T) {
	for _, version := range []string{"22.05", "24.11"} {
		t.Run(version, func(t *testing.T) {
			db := fakesacct.Recorded(t, filepath.Join("testdata", "sacct-"+version+".txt"))
			var got strings.Builder
			for _, r := range runs(t, db, all) {
				b, err := json.MarshalIndent(map[string]any{
					"raw": r.Raw, "started": r.Started(), "ended": r.Ended(), "values": values(t, all, db, r)}, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "%s\n", b)
			}
			golden(t, filepath.Join("testdata", "jobs-"+version+".golden"), got.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// one makes a database of one job, with the columns that are given.
func one(columns fakesacct.Row, steps ...fakesacct.Row) *fakesacct.DB {
	base := fakesacct.Row{"JobIDRaw": "7", "JobID": "7", "State": "COMPLETED", "Submit": "1000000", "Eligible": "1000000",
		"Start": "1000010", "End": "1000110", "Cluster": "c"}
	maps.Copy(base, columns)
	db := &fakesacct.DB{Rows: []fakesacct.Row{base}}
	for i, s := range steps {
		s["JobIDRaw"] = fmt.Sprintf("7.%d", i)
		s["JobID"] = s["JobIDRaw"]
		db.Rows = append(db.Rows, s)
	}
	for _, r := range db.Rows {
		for c := range r {
			if !slices.Contains(db.Columns, c) {
				db.Columns = append(db.Columns, c)
			}
		}
	}
	return db
}

type row = fakesacct.Row

func TestDerivedValues(t *testing.T) {
	for _, c := range []struct {
		name string
		db   *fakesacct.DB
		want map[string]any // nil: null
	}{
		{"memory per node of old Slurm", one(row{"ReqMem": "2000Mn", "AllocNodes": "3"}), map[string]any{"memory_mb": int64(6000)}},
		{"memory per core of old Slurm", one(row{"ReqMem": "4Gc", "AllocCPUS": "8"}), map[string]any{"memory_mb": int64(32768)}},
		{"memory of the whole job", one(row{"ReqMem": "600M"}), map[string]any{"memory_mb": int64(600), "req_memory_bytes": int64(600 << 20)}},
		{"all memory of the node", one(row{"ReqMem": "0n", "AllocNodes": "1", "AllocTRES": "mem=64G"}), map[string]any{"memory_mb": int64(65536)}},
		{"memory that nobody said", one(row{}), map[string]any{"memory_mb": nil}},
		{"memory by ReqTRES", one(row{"ReqTRES": "cpu=1,mem=1.50G"}), map[string]any{"memory_mb": int64(1536)}},
		{"CPU time by the job's row", one(row{"TotalCPU": "00:02.500"}, row{"TotalCPU": "00:09"}), map[string]any{"cpu_seconds": int64(2)}},
		{"CPU time by the steps, rounded once", one(row{"TotalCPU": "00:00:00"}, row{"TotalCPU": "00:00.500"}, row{"TotalCPU": "00:01.000"}), map[string]any{"cpu_seconds": int64(2)}},
		{"CPU time that is not known", one(row{"TotalCPU": "INVALID"}), map[string]any{"cpu_seconds": nil}},
		{"largest task of all steps", one(row{}, row{"MaxRSS": "3168K"}, row{"MaxRSS": "162416K"}, row{"MaxRSS": ""}), map[string]any{
			"max_rss_bytes": int64(162416 << 10), "max_rss_sum_bytes": int64((3168 + 162416) << 10), "steps": int64(3)}},
		{"all tasks of a step", one(row{}, row{"TRESUsageInTot": "cpu=00:00:03,fs/disk=10,mem=5M"}, row{"TRESUsageInTot": "fs/disk=5,mem=9M"}), map[string]any{
			"total_rss_bytes": int64(9 << 20), "disk_read_bytes": int64(15)}},
		{"energy of the job", one(row{"ConsumedEnergyRaw": "4200"}, row{"ConsumedEnergyRaw": "1"}), map[string]any{"energy_joules": int64(4200)}},
		{"energy of the steps", one(row{"ConsumedEnergyRaw": ""}, row{"ConsumedEnergyRaw": "40"}, row{"ConsumedEnergyRaw": "2"}), map[string]any{"energy_joules": int64(42)}},
		{"energy that was not measured", one(row{"ConsumedEnergyRaw": "18446744073709551614"}), map[string]any{"energy_joules": nil}},
		{"energy on nodes without a meter", one(row{"ConsumedEnergyRaw": "0"}, row{"ConsumedEnergyRaw": "0"}), map[string]any{"energy_joules": nil}},
		{"energy of the steps that have a meter", one(row{"ConsumedEnergyRaw": "0"}, row{"ConsumedEnergyRaw": "0"}, row{"ConsumedEnergyRaw": "7"}), map[string]any{"energy_joules": int64(7)}},
		{"memory that was not sampled", one(row{}, row{"MaxRSS": "0", "TRESUsageInTot": "fs/disk=0,mem=0"}), map[string]any{
			"max_rss_bytes": nil, "max_rss_sum_bytes": nil, "total_rss_bytes": nil, "disk_read_bytes": nil}},
		{"a step that was sampled and read nothing", one(row{}, row{"MaxRSS": "4K", "MaxDiskRead": "0", "MaxPages": "0", "MaxVMSize": "0", "TRESUsageInTot": "fs/disk=0,mem=4096"}), map[string]any{
			"disk_read_bytes": int64(0), "MaxDiskRead": int64(0), "MaxPages": int64(0), "MaxVMSize": nil}},
		{"a step that was not sampled", one(row{}, row{"MaxRSS": "0", "MaxDiskRead": "0", "MaxPages": "0", "MaxVMSize": "0"}), map[string]any{
			"max_rss_bytes": nil, "MaxDiskRead": nil, "MaxPages": nil, "MaxVMSize": nil}},
		{"CPU time that nothing gathers", one(row{"TotalCPU": "00:00:00", "UserCPU": "00:00:00", "SystemCPU": "00:00:00"}, row{"TotalCPU": "00:00:00"}), map[string]any{
			"cpu_seconds": nil, "TotalCPU": nil, "UserCPU": nil, "SystemCPU": nil}},
		{"CPU time in the kernel alone", one(row{"TotalCPU": "00:00.004", "UserCPU": "00:00:00", "SystemCPU": "00:00.004"}), map[string]any{
			"cpu_seconds": int64(0), "UserCPU": 0.0, "SystemCPU": 0.004}},
		{"all memory of the nodes, whose size is not known", one(row{"ReqMem": "0"}), map[string]any{"memory_mb": nil, "req_memory_bytes": nil}},
		{"CPU time that neither the job nor a step says", one(row{"TotalCPU": ""}, row{"TotalCPU": ""}), map[string]any{"cpu_seconds": nil}},
		{"waiting", one(row{"Eligible": "1000004"}), map[string]any{"wait_seconds": int64(10), "eligible_wait_seconds": int64(6)}},
		{"no limit", one(row{"Timelimit": "UNLIMITED", "TimelimitRaw": "UNLIMITED"}), map[string]any{"time_limit_seconds": nil, "TimelimitRaw": nil}},
		{"a limit", one(row{"Timelimit": "1-00:00:00"}), map[string]any{"time_limit_seconds": int64(86400)}},
		{"suspended", one(row{"Suspended": "00:00:30"}), map[string]any{"suspended_seconds": int64(30), "runtime_seconds": int64(100)}},
		{"cancelled by somebody", one(row{"State": "CANCELLED by 1002"}), map[string]any{"state": "CANCELLED", "cancelled_by": int64(1002)}},
		{"exit", one(row{"ExitCode": "7:15"}), map[string]any{"exit_code": int64(7), "exit_signal": int64(15)}},
		{"a running job says nothing that grows", one(row{"State": "RUNNING", "End": "Unknown", "ElapsedRaw": "5", "ExitCode": "0:0"}), map[string]any{
			"ElapsedRaw": nil, "exit_code": nil, "runtime_seconds": nil, "End": nil}},
		{"GPUs by type", one(row{"AllocTRES": "gres/gpu:a100=4,gres/gpu=4"}), map[string]any{"gpus": int64(4), "gpus_by_type": map[string]any{"a100": int64(4)}}},
		{"columns that this version lacks", one(row{}), map[string]any{"Comment": nil, "Restarts": nil, "TotalCPU": nil, "MaxRSS": nil}},
		{"waiting time under its old name", one(row{"Reserved": "00:01:00"}), map[string]any{"Planned": 60.0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := values(t, all, c.db, runs(t, c.db, all)[0])
			for name, want := range c.want {
				if diff := cmp.Diff(want, got[name]); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func TestTextThatIsNoUTF8IsKeptAsItIs(t *testing.T) {
	plan, err := job.NewPlan(all, []string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End", "Comment"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := plan.Run([]string{"7", "7", "FAILED", "1", "2", "3", "caf\xe9\nx|y"})
	if err != nil {
		t.Fatal(err)
	}
	vs, unread := plan.Values(run)
	if len(unread) > 0 {
		t.Fatal(unread)
	}
	i := slices.IndexFunc(job.Attributes(), func(a sdk.Attribute) bool { return a.Name == "Comment" })
	if got := vs[i].Str(); got != "caf\xe9\nx|y" {
		t.Errorf("%q", got)
	}
}

func TestJobsThatNeverStartedAreNoRuns(t *testing.T) {
	for _, c := range []struct {
		name    string
		row     row
		started bool
	}{
		{"waiting", row{"State": "PENDING", "Start": "Unknown", "End": "Unknown"}, false},
		{"waiting with an expected start", row{"State": "PENDING", "End": "Unknown"}, false},
		{"cancelled while waiting", row{"State": "CANCELLED by 0", "Start": "None"}, false},
		{"cancelled while waiting, as old Slurm shows it", row{"State": "CANCELLED", "Start": "1000110", "AllocNodes": "0", "AllocTRES": ""}, false},
		{"array tasks that wait", row{"JobID": "7_[1-4]", "State": "PENDING", "Start": "Unknown", "End": "Unknown"}, false},
		{"cancelled before the start that was set for it", row{"State": "CANCELLED by 0", "AllocNodes": "0", "AllocTRES": "", "AllocCPUS": "12"}, false},
		{"cancelled without nodes, with those that it asked for", row{"State": "CANCELLED", "NodeList": "None assigned", "AllocNodes": "1", "AllocTRES": "cpu=12", "AllocCPUS": "12"}, false},
		{"past its deadline without nodes", row{"State": "DEADLINE", "AllocNodes": "0", "AllocTRES": ""}, false},
		{"cancelled while it ran", row{"State": "CANCELLED by 0", "NodeList": "n1", "AllocNodes": "1", "AllocTRES": "cpu=12"}, true},
		{"cancelled, and this sacct does not tell nodes", row{"State": "CANCELLED", "NodeList": "", "AllocNodes": ""}, true},
		{"cancelled, of which slurmdbd knows only the end", row{"State": "CANCELLED", "Partition": "", "AllocNodes": "0", "AllocTRES": ""}, true},
		{"completed without nodes", row{"State": "COMPLETED", "AllocNodes": "0", "AllocTRES": ""}, true},
		{"array tasks that were cancelled while they waited", row{"JobID": "7_[1-4]", "State": "CANCELLED", "NodeList": "None assigned", "AllocNodes": "0", "AllocTRES": ""}, false},
		{"ended within its first second", row{"Start": "1000110", "AllocNodes": "1", "AllocTRES": "cpu=1"}, true},
		{"running", row{"State": "RUNNING", "End": "Unknown"}, true},
		{"requeued", row{"State": "REQUEUED"}, true},
	} {
		if got := runs(t, one(c.row), all)[0].Started(); got != c.started {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestOnlyColumnsThatAreWantedAndThereAreAskedFor(t *testing.T) {
	plan, err := job.NewPlan(func(name string) bool { return name == "memory_mb" || name == "SLUID" },
		[]string{"JobID", "jobidraw", "State", "Submit", "Start", "End", "ReqMem", "Comment", "AllocTRES"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"jobidraw", "JobID", "State", "Submit", "Start", "End", "AllocTRES", "ReqMem"}
	if !cmp.Equal(plan.Columns, want) {
		t.Errorf("%v, want %v", plan.Columns, want)
	}
}

func TestStepsAreAskedForOnlyByThoseWhoNeedThem(t *testing.T) {
	available := []string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End", "AllocCPUS", "TotalCPU", "MaxRSS"}
	for wanted, steps := range map[string]bool{
		"AllocCPUS": false, "ElapsedRaw": false, "gpus": false, "exit_code": false,
		"steps": true, "cpu_seconds": true, "TotalCPU": true, "max_rss_bytes": true, "MaxRSS": true, "energy_joules": true, "disk_read_bytes": true,
	} {
		plan, err := job.NewPlan(func(a string) bool { return a == wanted || a == "id" }, available)
		if err != nil || plan.Steps != steps {
			t.Errorf("%s: %+v, %v", wanted, plan, err)
		}
	}
}

func TestAnSacctWithoutANeededColumnIsRefused(t *testing.T) {
	if _, err := job.NewPlan(all, []string{"JobID", "State", "Submit", "Start", "End"}); err == nil || !strings.Contains(err.Error(), "JobIDRaw") {
		t.Error(err)
	}
}

func TestRowsThatAreNoJobsAreErrorsThatNameTheColumn(t *testing.T) {
	plan, err := job.NewPlan(all, []string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End", "Restarts"})
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"7", "7", "FAILED", "1", "2", "3", "0"}
	if _, err := plan.Run(good); err != nil {
		t.Fatal(err)
	}
	for i, column := range plan.Columns {
		bad := slices.Clone(good)
		if bad[i] = "?"; column == "Restarts" {
			continue
		}
		if _, err := plan.Run(bad); err == nil || !strings.Contains(err.Error(), column) {
			t.Errorf("%s: %v", column, err)
		}
	}
}

// Amounts of which Slurm's own counters ran over, and sums over steps that would.
func TestValues_AmountsThatRanOver_AreNamedOrNull(t *testing.T) {
	values := map[string]string{
		"JobIDRaw": "7", "JobID": "7", "State": "COMPLETED", "Submit": "1000000", "Start": "1000010", "End": "1000110",
		"TotalCPU": "213503982334601-07:00:15", "ReqMem": "17592186044415M", "AllocTRES": "billing=4,cpu=4,mem=17592186044415M,gres/gpu:a=4E,gres/gpu:b=5E",
		"AllocCPUS": "4294967294", "NCPUS": "-4", "Eligible": "16?", "Restarts": "x", "ElapsedRaw": "9223372036854775808",
		"Suspended": "-00:00:01", "Timelimit": "9999999999:00:00", "MaxRSS": "", "ConsumedEnergyRaw": "",
	}
	plan, err := job.NewPlan(all, slices.Collect(maps.Keys(values)))
	if err != nil {
		t.Fatal(err)
	}
	run, err := plan.Run(plan.Fields(values))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		run.Step(plan.Fields(map[string]string{"JobIDRaw": "7.0", "JobID": "7.0", "MaxRSS": "6E", "ConsumedEnergyRaw": "5E"}), nil)
	}
	got, unread := plan.Values(run)
	named := map[string]bool{}
	for _, u := range unread {
		named[u.Attribute] = true
	}
	for i, a := range job.Attributes() {
		switch a.Name {
		case "cpu_seconds", "TotalCPU", "memory_mb", "req_memory_bytes", "alloc_memory_bytes", "gpus", "gpus_by_type", "NCPUS", "Eligible", "eligible_wait_seconds",
			"Restarts", "ElapsedRaw", "Suspended", "suspended_seconds", "time_limit_seconds", "max_rss_sum_bytes", "energy_joules":
			if !named[a.Name] || !got[i].IsNull() {
				t.Errorf("%s is %v, named %t", a.Name, plain(got[i]), named[a.Name])
			}
		case "AllocCPUS":
			if !got[i].IsNull() {
				t.Errorf("AllocCPUS is %d: that is Slurm's word for none", got[i].Int())
			}
		case "alloc_tres":
			if m := got[i].Map(); !named[a.Name] || m["cpu"].Int() != 4 || !m["mem"].IsNull() {
				t.Errorf("alloc_tres is %v, named %t", plain(got[i]), named[a.Name])
			}
		}
	}
}

func FuzzRun(f *testing.F) {
	f.Add("7", "7", "COMPLETED", "1", "2", "3", "600M", "cpu=1,mem=1M", "00:01.5", "0:0")
	f.Add("7", "7_[1-4]", "PENDING", "1", "Unknown", "Unknown", "4Gc", "gres/gpu=18446744073709551615", "9-99:99:99", "x")
	f.Fuzz(func(t *testing.T, raw, id, state, submit, start, end, mem, tres, cpu, exit string) {
		plan, err := job.NewPlan(all, []string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End", "ReqMem", "AllocTRES", "TotalCPU", "ExitCode"})
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]string{"JobIDRaw": raw, "JobID": id, "State": state, "Submit": submit, "Start": start, "End": end,
			"ReqMem": mem, "AllocTRES": tres, "TotalCPU": cpu, "ExitCode": exit}
		var fields []string
		for _, c := range plan.Columns {
			fields = append(fields, byName[c])
		}
		r, err := plan.Run(fields)
		if err != nil {
			return
		}
		r.Step(fields, nil)
		r.Started()
		vs, _ := plan.Values(r)
		if len(vs) != len(job.Attributes()) {
			t.Errorf("%d values", len(vs))
		}
		if r.RunName() == "" {
			t.Error("a run without a name")
		}
	})
}
