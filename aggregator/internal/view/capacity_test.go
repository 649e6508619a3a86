package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestCapacity_OfAWindow_HasEachChange(t *testing.T) {
	small, large := v1.Amounts{"Cores": figure("4")}, v1.Amounts{"Cores": figure("1000"), "Memory": figure("2048")}
	a := v1.Capacity{
		Clusters: []v1.Cluster{
			{Name: "nemo", Configured: true, Sources: []string{"head/slurm/nemo"}, Components: large, Steps: []v1.CapacityStep{{From: day(1, 1), Components: small}, {From: day(2, 1), Components: large}}},
			{Name: "tiny", Sources: []string{"head/slurm/tiny"}, Steps: []v1.CapacityStep{{From: day(1, 1), Components: v1.Amounts{"GPUs": figure("1")}}}},
		},
		Groups: []v1.ClusterGroup{{Name: "grid", Members: []string{"nemo"}, Unknown: []string{"tiny"}, Components: large}},
	}
	l := view.Capacity(a)
	if d := cmp.Diff([]string{"nemo|1000||2048|configuration, head/slurm/nemo", "tiny||||head/slurm/tiny", "grid|1000||2048|group: nemo, tiny"}, joinedRows(l.Rows)); d != "" {
		t.Errorf("now: -want +got:\n%s", d)
	}
	if d := cmp.Diff([]string{"No capacity configured or reported for tiny of grid."}, l.Notes); d != "" {
		t.Errorf("notes: -want +got:\n%s", d)
	}
	a.Window = &v1.Window{From: day(1, 1), To: day(3, 1)}
	l = view.Capacity(a)
	if got := heads(l); got != "Cluster|From|Cores|GPUs|Memory MiB|Source" {
		t.Error(got)
	}
	if d := cmp.Diff([]string{"nemo|2026-01-01|4|||configuration, head/slurm/nemo", "nemo|2026-02-01|1000||2048|configuration, head/slurm/nemo", "tiny|2026-01-01||1||head/slurm/tiny"}, joinedRows(l.Table(time.UTC).Rows)); d != "" {
		t.Errorf("window: -want +got:\n%s", d)
	}
	if l = view.Capacity(v1.Capacity{}); !strings.Contains(l.Empty, "add a cluster block") || len(l.Rows) > 0 {
		t.Errorf("no clusters: %+v", l)
	}
}

func TestCensus_ByEachKey_PutsMostJobsFirst(t *testing.T) {
	all := v1.Capacity{Census: &v1.Census{Running: 9, Pending: 43, Sources: []v1.CensusSource{
		{Source: "head/slurm/a", At: day(3, 1), Running: 8, Pending: 43, Rows: []v1.CensusRow{{User: "bob", Queue: "long", Running: 2, Pending: 3}, {User: "ann", Queue: "gpu", Running: 6, Pending: 40}}},
		{Source: "head/slurm/b", At: day(3, 2), Running: 1, Rows: []v1.CensusRow{{User: "bob", Queue: "q", Running: 1}}},
	}}}
	for by, want := range map[string][]string{
		"user":   {"ann|6|40", "bob|3|3", "Total|9|43"},
		"queue":  {"gpu|6|40", "long|2|3", "q|1|0", "Total|9|43"},
		"source": {"head/slurm/a|8|43", "head/slurm/b|1|0", "Total|9|43"},
		"all":    {"ann|gpu|head/slurm/a|6|40", "bob|long|head/slurm/a|2|3", "bob|q|head/slurm/b|1|0", "Total|||9|43"},
	} {
		l := view.Census(all, by, "Asia/Tokyo")
		if d := cmp.Diff(want, joinedRows(append(l.Rows, l.Totals))); d != "" {
			t.Errorf("%s: -want +got:\n%s", by, d)
		}
		if d := cmp.Diff([]string{"Jobs of head/slurm/a are as of 2026-03-01 09:00 Asia/Tokyo.", "Jobs of head/slurm/b are as of 2026-03-02 09:00 Asia/Tokyo."}, l.Notes); d != "" {
			t.Errorf("%s: -want +got:\n%s", by, d)
		}
	}
	all.Census.Sources[0].Rows, all.Census.Sources[1].Rows = nil, nil
	for want, a := range map[string]v1.Capacity{
		"access to whose jobs": all, "readers of all records": {}, "No source reports": {Census: &v1.Census{}},
		"No jobs run or wait.": {Census: &v1.Census{Sources: []v1.CensusSource{{Rows: []v1.CensusRow{}}}}},
	} {
		if l := view.Census(a, "user", "UTC"); !strings.Contains(l.Empty, want) || len(l.Rows) > 0 {
			t.Errorf("%s: %+v", want, l)
		}
	}
}
