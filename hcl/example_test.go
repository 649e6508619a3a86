package hcl_test

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
)

// A daemon declares its configuration as a struct, loads it and reports all
// problems at once.
func ExampleDecode() {
	var cfg struct {
		Agent struct {
			Name   string       `hcl:"name"`
			Retain hcl.Duration `hcl:"retain,optional"`
		} `hcl:"agent,block"`
		Sources []struct {
			Type   string   `hcl:"type,label"`
			Label  string   `hcl:"label,label"`
			Config hcl.Body `hcl:"config,block"`
		} `hcl:"source,block"`
	}
	file, diags := hcl.Parse("agent.hcl", []byte(`
agent {
  nam    = "head1"
  retain = "30x"
}
source "slurm" {
}
`))
	diags.Extend(hcl.Decode(file, &cfg, file.Context()))
	fmt.Println(diags.Err())
	// Output:
	// agent.hcl:2:1: missing attribute; name must be set here
	// agent.hcl:3:3: unknown attribute "nam"; did you mean "name"?
	// agent.hcl:4:12: invalid value for "retain"; "30x" has the unknown unit "x"; expected one of ns, us, ms, s, m, h, d, w
	// agent.hcl:6:1: wrong number of labels on "source"; expected source "<type>" "<label>" { … }
}

// A plugin's block is read without a schema.
func ExampleEvaluate() {
	file, _ := hcl.Parse("agent.hcl", []byte("partitions = [\"compute\"]\npriority = { max = 2 * 50 }\n"))
	tree, diags := hcl.Evaluate(file.Body, file.Context())
	fmt.Println(diags.Err())
	for _, n := range tree.Nodes {
		fmt.Println(n.Name, n.Value.Kind, n.Value, n.Value.Range.Start.Line)
	}
	// Output:
	// <nil>
	// partitions list ["compute"] 1
	// priority map {"max" = 100} 2
}

// A mapping is checked before the first job comes.
func ExampleScope_Check() {
	var cfg struct {
		Amount hcl.Expression `hcl:"amount"`
	}
	file, diags := hcl.Parse("agent.hcl", []byte("amount = job.NCPU\n"))
	diags.Extend(hcl.Decode(file, &cfg, nil))
	scope := hcl.NewScope(file.Dir, map[string]hcl.Object{"job": {"NCPUS": cty.Number, "User": cty.String}})
	diags.Extend(scope.Check(cfg.Amount, cty.Number))
	fmt.Println(diags.Err())
	// Output:
	// agent.hcl:1:10: unknown attribute "job.NCPU"; did you mean "NCPUS"?
}
