package health

import (
	"context"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestThereIsAMetricForAllThatStatusSays(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	w := &Watch{Sources: []Source{func(_ context.Context, f *Facts) {
		*f = trio()
		f.Nodes[2].Fenced = "x"
		f.Data.Silent = []Silent{{Source: "head1/slurm/nemo"}}
		f.Data.Lacking = []Lacking{{Source: "head1/slurm/nemo", Runs: 3}, {Source: "head1/slurm/nemo", Runs: 4}}
		f.Nodes = append(f.Nodes, f.Nodes[2])
	}}}
	NewMetrics(w, reg)
	if got, err := reg.Gather(); err != nil || len(got) != 0 {
		t.Error("before the first report:", got, err)
	}
	w.Report(t.Context())
	got, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range got {
		names = append(names, f.GetName())
		switch value := f.GetMetric()[0].GetGauge().GetValue(); f.GetName() {
		case "bursar_health_state", "bursar_cluster_voters", "bursar_agent_behind_frames":
			if want := map[string]float64{"bursar_health_state": 2, "bursar_cluster_voters": 4, "bursar_agent_behind_frames": 12}[f.GetName()]; value != want {
				t.Errorf("%s is %v, want %v", f.GetName(), value, want)
			}
		}
	}
	for _, m := range metricList() {
		if !slices.Contains(names, "bursar_"+m.name) {
			t.Errorf("%s is missing", m.name)
		}
	}
}
