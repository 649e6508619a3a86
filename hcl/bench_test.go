package hcl_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
)

func BenchmarkExpressions(b *testing.B) {
	job := cty.ObjectVal(map[string]cty.Value{
		"Mem": cty.StringVal("16Gn"), "CPU": cty.StringVal("1-02:03:04.567"), "TRES": cty.StringVal("cpu=4,mem=16G,gres/gpu=2"),
		"Comment": cty.StringVal(`{"voms":"/atlas"}`), "Partition": cty.StringVal("gpu"), "Submit": cty.StringVal("2024-01-01T10:00:00"),
	})
	ctx := &hcl.EvalContext{Functions: hcl.ExpressionFunctions(), Variables: map[string]cty.Value{"job": job}}
	for name, src := range map[string]string{
		"bytes":      `bytes(job.Mem)`,
		"seconds":    `seconds(job.CPU)`,
		"regex":      `regex("gres/gpu=([0-9]+)", job.TRES)[0]`,
		"jsondecode": `try(jsondecode(job.Comment).voms, null)`,
		"lookup":     `lookup({ gpu = 21.5, cpu = 10 }, job.Partition, 1)`,
		"time":       `time(job.Submit, "Europe/Berlin")`,
		"condition":  `job.Partition == "gpu" ? 21.5 : 10.0`,
	} {
		expr := expression(b, src)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, diags := expr.Value(ctx); diags.HasErrors() {
					b.Fatal(diags)
				}
			}
		})
	}
}
