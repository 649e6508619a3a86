package source_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// exampleOfSlurm is the record block of the source nemo of the example.
func exampleOfSlurm(t *testing.T) hcl.Body {
	t.Helper()
	file, diags := hcl.Load("../../hcl/examples/slurm.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var text struct {
		Sources []struct {
			Type   hcl.String `hcl:"type,label"`
			Label  hcl.String `hcl:"label,label"`
			Record hcl.Body   `hcl:"record,block"`
			Rest   hcl.Body   `hcl:",remain"`
		} `hcl:"source,block"`
		Rest hcl.Body `hcl:",remain"`
	}
	if diags := hcl.Decode(file, &text, &hcl.EvalContext{}); diags.HasErrors() {
		t.Fatal(diags)
	}
	return text.Sources[0].Record
}

// Slurm's meter is the node's: jobs that share a node would each have the energy of all.
func TestExampleOfSlurm_JobOnSharedNodes_HasNoEnergy(t *testing.T) {
	all := describeAll(t)
	d := all[slices.IndexFunc(all, func(d *bursarv1.DescribeResponse) bool { return d.GetType() == "slurm" })]
	m, diags := mapping.Compile(mapping.Options{
		Agent: "head1", Type: d.GetType(), Label: label, Attributes: d.GetAttributes(), Default: d.GetMapping(), Record: exampleOfSlurm(t),
	})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	measured := 0
	for range 2000 {
		nodes := 1 + r.Int64N(4)
		cpus := 64 * nodes
		if r.IntN(2) == 0 {
			cpus = 1 + r.Int64N(64*nodes)
		}
		partition := []string{"compute", "gpu", "short"}[r.IntN(3)]
		job := randomJob(r, d.GetAttributes())
		set := func(name string, v *bursarv1.Value) {
			job.Values[slices.IndexFunc(d.GetAttributes(), func(a *bursarv1.Attribute) bool { return a.GetName() == name })] = v
		}
		number := func(n int64) *bursarv1.Value {
			return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: n}}
		}
		set("node_count", number(nodes))
		set("AllocCPUS", number(cpus))
		set("energy_joules", number(1+r.Int64N(1_000_000)))
		set("Partition", &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: partition}})
		got, keep, err := m.Map(job)
		if err != nil || !keep {
			continue // a job that no source sends
		}
		has := slices.ContainsFunc(got.Components, func(c record.Component) bool { return c.Name == "Energy" })
		if want := partition == "compute" && cpus == 64*nodes; has != want {
			t.Fatalf("seed %d: %d CPUs on %d nodes of %s: energy %v, want %v", seed, cpus, nodes, partition, has, want)
		}
		if has {
			measured++
		}
	}
	if measured < 20 {
		t.Errorf("seed %d: %d of 2000 jobs have energy", seed, measured)
	}
}
