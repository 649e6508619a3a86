package source_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/source"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// sharing is what a site with shards and slices of cards has.
const sharing = `NodeName=s1 CPUTot=4 RealMemory=8000 Gres=gpu:a100:2,shard:8
NodeName=m1 CPUTot=4 RealMemory=8000 Gres=gpu:a100_3g.20gb:2,gpu:h100:1
NodeName=w1 CPUTot=4 RealMemory=8000 Gres=gpu:a100:4
`

// collectGPUs returns the components about GPUs of jobs by their number, by the default
// mapping, and the attributes that cannot be known.
func collectGPUs(t *testing.T, jobs []string, scontrol fakesacct.Tool, capacity bool) (components []string, unknown map[int]string) {
	t.Helper()
	db := &fakesacct.DB{}
	for i, job := range jobs {
		node, tres, _ := strings.Cut(job, " ")
		db.Rows = append(db.Rows, fakesacct.Row{"JobIDRaw": fmt.Sprint(i), "JobID": fmt.Sprint(i), "State": "COMPLETED", "Cluster": "c", "Partition": "p", "User": "u", "Group": "g",
			"Submit": "1767225600", "Eligible": "1767225600", "Start": "1767225601", "End": fmt.Sprint(1767225700 + i), "AllocCPUS": "4", "NodeList": node, "AllocTRES": tres})
	}
	db.Columns = slices.Collect(maps.Keys(db.Rows[0]))
	dir := t.TempDir()
	fakesacct.InstallTool(t, dir, "scontrol", scontrol)
	config := plugintest.Block("config", plugintest.Attr("sacct", fakesacct.Install(t, dir, db)), plugintest.Attr("earliest", "2025-10-01"),
		plugintest.Attr("window", "366d"), plugintest.Attr("capacity", capacity), plugintest.Attr("census", false), plugintest.Attr("directory", false))
	d, got := plugintest.CollectFresh(t, func() sdk.Source { return source.New(slog.New(slog.DiscardHandler)) }, &bursarv1.ConfigureRequest{Label: "test", Config: config})
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "test", Attributes: d.GetAttributes(), Default: d.GetMapping()})
	if diags.HasErrors() || len(got.Jobs()) != len(jobs) {
		t.Fatal(diags, len(got.Jobs()))
	}
	unknown = map[int]string{}
	for i, j := range got.Jobs() {
		r, keep, err := m.Map(j)
		if err != nil || !keep {
			t.Fatal(i, keep, err)
		}
		var some []string
		for _, c := range r.Components {
			if strings.Contains(c.Name, "GPU") {
				some = append(some, fmt.Sprintf("%s=%d", c.Name, c.Amount))
			}
		}
		slices.Sort(some)
		components = append(components, strings.Join(some, " "))
		for _, u := range j.GetUnread() {
			unknown[i] += u.GetAttribute()
		}
	}
	return components, unknown
}

func TestMapping_PartsOfCards_AreCountedByWhatTheNodesHave(t *testing.T) {
	jobs := []string{"s1 gres/shard=2", "m1 gres/gpu:a100_3g.20gb=1,gres/gpu=1", "w1 gres/gpu=2", "w1 gres/gpu:a100=1,gres/gpu=1", "gone gres/shard=2", "m1 gres/gpu=1", "w1 cpu=1"}
	whole := []string{"GPUs=2", "GPUs:a100=1 GPUs=1"}
	slice, silent := "GPUs:a100_3g.20gb=1 GPUs=1 MilliGPUs=429", ""
	for name, c := range map[string]struct {
		scontrol fakesacct.Tool
		capacity bool
		want     []string
		unknown  map[int]string
	}{
		"nodes":    {fakesacct.Tool{Output: sharing}, true, []string{"MilliGPUs=500", slice, whole[0], whole[1], silent, "GPUs=1", ""}, map[int]string{4: "milli_gpus", 5: "milli_gpus"}},
		"failure":  {fakesacct.Tool{Stderr: "slurm_load error\n", Exit: 1}, true, []string{silent, slice, whole[0], whole[1], silent, "GPUs=1", ""}, map[int]string{0: "milli_gpus", 4: "milli_gpus"}},
		"no facts": {fakesacct.Tool{Output: sharing}, false, []string{silent, slice, whole[0], whole[1], silent, "GPUs=1", ""}, map[int]string{0: "milli_gpus", 4: "milli_gpus"}},
	} {
		got, unknown := collectGPUs(t, jobs, c.scontrol, c.capacity)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.unknown, unknown); diff != "" {
			t.Errorf("%s: unknown (-want +got):\n%s", name, diff)
		}
	}
}
