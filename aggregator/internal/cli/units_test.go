package cli

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestUsageHead_MeasuresWithUnits_ShowThem(t *testing.T) {
	for want, m := range map[string]v1.Measure{
		"Memory MiB-hours": {Name: "Memory", Component: "Memory", Kind: "rate", Unit: "hour"}, "TotalCPU CPU-seconds": {Name: "TotalCPU", Component: "TotalCPU", Kind: "total"},
		"Cores core-seconds": {Name: "Cores", Component: "Cores", Kind: "rate", Unit: "second"}, "events": {Name: "events", Component: "events", Kind: "total"},
		"CAPACITY core-hours": {Name: "capacity", Kind: "capacity", Unit: "hour"}, "RECORDS": {Name: "records", Kind: "count"}, "COST EUR": {Name: "cost", Kind: "worth", Unit: "EUR"},
	} {
		column := view.MeasureColumn(&m)
		if got := usageHead(&column); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
