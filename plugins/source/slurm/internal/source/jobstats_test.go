package source_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestMapping_Jobstats_ComesBeforeSacct(t *testing.T) {
	summary := fakesacct.Jobstats(t, strings.NewReader(
		`{"nodes":{"n1":{"used_memory":1073741824,"total_time":150.4,"cpus":4,"gpu_used_memory":{"0":1073741824},"gpu_total_memory":{"0":42949672960},"gpu_utilization":{"0":87.5}}},"total_time":100,"gpus":1}`))
	sacct := map[string]int64{"Cores": 4, "TotalCPU": 20}
	cases := []struct {
		comment string
		want    map[string]int64
		unread  int
	}{
		{summary, map[string]int64{"Cores": 4, "TotalCPU": 150, "MemoryUsed": 1024, "TotalGPU": 88, "GPUMemory": 40960, "GPUMemoryUsed": 1024}, 0},
		{"JS1:None", sacct, 0}, {"JS1:Short", sacct, 0}, {"", sacct, 0}, {"moved by hand", sacct, 0},
		{summary[:len(summary)-4], sacct, 5},
	}
	db := &fakesacct.DB{}
	for i, c := range cases {
		end := time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC).Unix()
		db.Rows = append(db.Rows, fakesacct.Row{"JobIDRaw": fmt.Sprint(i), "JobID": fmt.Sprint(i), "State": "COMPLETED", "Cluster": "c", "Partition": "p", "User": "u", "Group": "g",
			"Submit": fmt.Sprint(end - 200), "Eligible": fmt.Sprint(end - 200), "Start": fmt.Sprint(end - 100), "End": fmt.Sprint(end),
			"AllocCPUS": "4", "TotalCPU": "00:20", "AdminComment": c.comment})
	}
	db.Columns = slices.Collect(maps.Keys(db.Rows[0]))
	d, got := look(t, db)
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "test", Attributes: d.GetAttributes(), Default: d.GetMapping()})
	if diags.HasErrors() || len(got.Jobs()) != len(cases) {
		t.Fatal(diags, len(got.Jobs()))
	}
	for i, j := range got.Jobs() {
		r, keep, err := m.Map(j)
		if err != nil || !keep {
			t.Fatal(i, keep, err)
		}
		amounts := map[string]int64{}
		for _, c := range r.Components {
			amounts[c.Name] = c.Amount
			if total := c.Name == "TotalCPU" || c.Name == "TotalGPU"; (c.Kind == record.Total) != total {
				t.Errorf("%s is a %v", c.Name, c.Kind)
			}
		}
		if want := cases[i]; !cmp.Equal(amounts, want.want) || len(j.GetUnread()) != want.unread {
			t.Errorf("%q: %v, unread %v; want %v", want.comment, amounts, j.GetUnread(), want.want)
		}
	}
}
