package auditor

import (
	"maps"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Kinds returns the kinds of components that AUDITOR's clients push, which cannot say
// them: CPU seconds under the names that AUDITOR's collectors and their documentation
// give them are totals. Where own has a name, own counts.
//
// The component "cpu" of the Kubernetes collector with Prometheus is not among them:
// others push a number of cores under that name.
func Kinds(own record.Kinds) record.Kinds {
	kinds := record.Kinds{
		"TotalCPU": record.Total, "UserCPU": record.Total, "SystemCPU": record.Total, // Slurm, HTCondor
		"naive_cpu_time": record.Total, // Kubernetes without Prometheus
	}
	maps.Copy(kinds, own)
	return kinds
}
