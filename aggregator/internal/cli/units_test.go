package cli

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestComponents_WithUnits_ShowThem(t *testing.T) {
	list := []v1.FullComponent{{Name: "Cores", Amount: 8}, {Name: "Memory", Amount: 16000}, {Name: "TotalCPU", Amount: 5}, {Name: "Licences", Amount: 2}}
	if got, want := componentsText(list), "Cores=8 Memory=16000MiB TotalCPU=5s Licences=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
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
