package source_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// TestMapping_TightParallelJobs_AreOneJobWithParts maps jobs with any number of slave tasks:
// all records but one are parts of the run.
func TestMapping_TightParallelJobs_AreOneJobWithParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(24, 0))
	var text strings.Builder
	jobs, lines := 1+rng.IntN(9), 0
	for n := range jobs {
		tasks := []string{"NONE"}
		for k := range rng.IntN(4) {
			tasks = append(tasks, fmt.Sprintf("%d.node%d", k+1, k))
		}
		for _, task := range tasks {
			lines++
			fmt.Fprintf(&text, "all.q:n1:phys:alice:run:%d:sge:0:%d:%d:%d:0:0:60:1:1:10.0:0:0:0:0:1:0:0:0:0:0:0:0:1:1:NONE:defaultdepartment:mpi:4:0:2.5:1:1:NONE:0:%s:1000:0:0\n",
				n+1, 1778413790, 1778413800, 1778413860, task)
		}
	}
	d, got := look(t, text.String())
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "test", Attributes: d.GetAttributes(), Default: d.GetMapping()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	runs, records := 0, 0
	for _, j := range got.Jobs() {
		r, kept, err := m.Map(j)
		if err != nil || !kept {
			t.Fatal(j.GetRun(), kept, err)
		}
		records++
		if !r.Meta.IsPart() {
			runs++
		}
	}
	if runs != jobs || records != lines {
		t.Errorf("%d runs of %d records, want %d of %d", runs, records, jobs, lines)
	}
}

func TestMapping_RequestedGPUs_AreAComponentOfTheJobAlone(t *testing.T) {
	var text strings.Builder
	requests := []string{"-l gpu=2 -pe mpi 4", "-l gpu=2 -pe mpi 4", "-l gpu=k80", "-l gpu=0", "NONE"}
	tasks := []string{"NONE", "1.node1", "NONE", "NONE", "NONE"}
	for n, request := range requests {
		fmt.Fprintf(&text, "all.q:n1:phys:alice:run:%d:sge:0:%d:%d:%d:0:0:60:1:1:10.0:0:0:0:0:1:0:0:0:0:0:0:0:1:1:NONE:defaultdepartment:mpi:4:0:2.5:1:1:%s:0:%s:1000:0:0\n",
			n+1, 1778413790, 1778413800, 1778413860, request, tasks[n])
	}
	d, got := look(t, text.String())
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "test", Attributes: d.GetAttributes(), Default: d.GetMapping()})
	if diags.HasErrors() || len(got.Jobs()) != len(requests) {
		t.Fatal(diags, len(got.Jobs()))
	}
	for i, j := range got.Jobs() {
		r, keep, err := m.Map(j)
		if err != nil || !keep {
			t.Fatal(i, keep, err)
		}
		gpus := int64(0)
		for _, c := range r.Components {
			if c.Name == "GPUs" {
				gpus = c.Amount
			}
		}
		if want := []int64{8, 0, 0, 0, 0}[i]; gpus != want || len(j.GetUnread()) != []int{0, 0, 1, 0, 0}[i] {
			t.Errorf("%s of %s: %d GPUs, unread %v; want %d", requests[i], tasks[i], gpus, j.GetUnread(), want)
		}
	}
}

// Of a pattern, and without a request, the model that a job got is not known.
func TestMapping_RequestedModelOfGPU_IsKnownWhereItIsOne(t *testing.T) {
	var text strings.Builder
	asked := map[string]string{
		"-l gpu=2,gpu_model=a100 -pe mpi 4": "a100", "-l gpu_type=h100,gpu=1,gpu_model=a100": "a100", "-l gpu=1,gpu_type=h100": "h100", "-l gpu=1": "", "-l gpu_model=a100": "",
		"-l gpu=1,gpu_model=a*": "", "-l gpu=1,gpu_model=a100|h100": "", "-l gpu=1,gpu_model=!a100": "", "-l gpu=1,gpu_model": "", "-soft -l gpu_model=a100 -hard -l gpu=1": "",
		"-l gpu=0,gpu_model=a100": "", "-l gpu=k80,gpu_model=a100": "",
	}
	requests := slices.Sorted(maps.Keys(asked))
	for n, request := range requests {
		fmt.Fprintf(&text, "all.q:n1:phys:alice:run:%d:sge:0:%d:%d:%d:0:0:60:1:1:10.0:0:0:0:0:1:0:0:0:0:0:0:0:1:1:NONE:defaultdepartment:mpi:4:0:2.5:1:1:%s:0:NONE:1000:0:0\n",
			n+1, 1778413790, 1778413800, 1778413860, request)
	}
	for _, configured := range []bool{true, false} {
		var more []*bursarv1.Node
		if configured {
			more = append(more, plugintest.Attr("gpu_model_requests", []string{"gpu_model", "gpu_type"}))
		}
		d, got := look(t, text.String(), more...)
		m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "test", Attributes: d.GetAttributes(), Default: d.GetMapping()})
		if diags.HasErrors() || len(got.Jobs()) != len(requests) {
			t.Fatal(diags, len(got.Jobs()))
		}
		for i, j := range got.Jobs() {
			r, keep, err := m.Map(j)
			if err != nil || !keep {
				t.Fatal(i, keep, err)
			}
			var amounts [2]int64 // of GPUs and of those of the model
			for _, c := range r.Components {
				if c.Name == "GPUs" {
					amounts[0] = c.Amount
				} else if strings.HasPrefix(c.Name, "GPUs:") {
					amounts[1] = c.Amount
				}
			}
			model := strings.Join(r.Meta.Get("gpu_model"), ",")
			want := ""
			if configured {
				want = asked[requests[i]]
			}
			if model != want || (amounts[1] > 0) != (want != "") || want != "" && amounts[0] != amounts[1] {
				t.Errorf("%s, configured %t: %q, amounts %v; want %q", requests[i], configured, model, amounts, want)
			}
		}
	}
}
