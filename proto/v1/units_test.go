package v1_test

import (
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestMeasure_OfEachKind_HasUnit(t *testing.T) {
	for _, c := range []struct {
		m    v1.Measure
		want string
	}{
		{v1.Measure{Name: "Cores", Component: "Cores", Kind: "rate", Unit: "hour"}, "core-hours"},
		{v1.Measure{Name: "GPUs:a100", Component: "GPUs:a100", Kind: "rate", Unit: "hour"}, "GPU-hours"},
		{v1.Measure{Name: "capacity*GPUs:a100", Kind: "capacity", Unit: "hour"}, "GPU-hours"},
		{v1.Measure{Name: "License:matlab", Component: "License:matlab", Kind: "rate", Unit: "hour"}, "License:matlab-hours"},
		{v1.Measure{Name: "Cores", Component: "Cores", Kind: "rate", Unit: "second"}, "core-seconds"},
		{v1.Measure{Name: "GPUs", Component: "GPUs", Kind: "rate", Unit: "hour"}, "GPU-hours"},
		{v1.Measure{Name: "TotalGPU", Component: "TotalGPU", Kind: "total"}, "GPU-seconds"},
		{v1.Measure{Name: "Memory", Component: "Memory", Kind: "rate", Unit: "hour"}, "MiB-hours"},
		{v1.Measure{Name: "GPUMemory", Component: "GPUMemory", Kind: "rate", Unit: "hour"}, "MiB-hours"},
		{v1.Measure{Name: "GPUMemoryUsed", Component: "GPUMemoryUsed", Kind: "rate", Unit: "hour"}, "MiB-hours"},
		{v1.Measure{Name: "Disk", Component: "Disk", Kind: "rate", Unit: "second"}, "MiB-seconds"},
		{v1.Measure{Name: "Licences", Component: "Licences", Kind: "rate", Unit: "hour"}, "Licence-hours"},
		{v1.Measure{Name: "TotalCPU", Component: "TotalCPU", Kind: "total"}, "CPU-seconds"},
		{v1.Measure{Name: "Cores*HS", Component: "Cores", Score: "HS", Kind: "weighted", Unit: "hour"}, "HS-hours"},
		{v1.Measure{Name: "TotalCPU*HS", Component: "TotalCPU", Score: "HS", Kind: "weighted"}, ""},
		{v1.Measure{Name: "joules", Component: "joules", Kind: "total"}, "J"},
		{v1.Measure{Name: "events", Component: "events", Kind: "total"}, ""},
		{v1.Measure{Name: "capacity", Kind: "capacity", Unit: "hour"}, "core-hours"},
		{v1.Measure{Name: "capacity*Memory", Kind: "capacity", Unit: "second"}, "MiB-seconds"},
		{v1.Measure{Name: "capacity*su", Kind: "capacity", Unit: "SU"}, "SU"},
		{v1.Measure{Name: "utilization", Kind: "ratio"}, ""},
		{v1.Measure{Name: "records", Kind: "count"}, ""},
		{v1.Measure{Name: "wait", Kind: "mean", Unit: "second"}, "seconds"},
		{v1.Measure{Name: "cost", Kind: "worth", Unit: "EUR"}, "EUR"},
	} {
		got := c.m.UnitText()
		if got != c.want {
			t.Errorf("%s is in %q, want %q", c.m.Name, got, c.want)
		}
		if got != "" && c.m.Kind != "worth" && v1.Currency(got) {
			t.Errorf("%s of %s is shown as money", got, c.m.Name)
		}
	}
	for _, c := range []struct{ component, per, want string }{
		{"Cores", "hour", "core-hour"}, {"GPUs", "hour", "GPU-hour"}, {"Memory", "hour", "MiB-hour"}, {"Licences", "hour", "Licence-hour"},
		{"TotalCPU", "unit", "CPU-second"}, {"TotalGPU", "unit", "GPU-second"}, {"Energy", "unit", "J"}, {"energy", "unit", "kWh"}, {"co2", "unit", "kg CO2e"}, {"events", "unit", "unit"},
	} {
		if got := (&v1.Price{Component: c.component, Per: c.per}).PerText(); got != c.want {
			t.Errorf("a price of %s per %s is for a %q, want %q", c.component, c.per, got, c.want)
		}
	}
	for _, component := range []string{"Cores", "GPUs", "Memory", "TotalCPU", "TotalGPU", "Energy", "MHz"} {
		if unit := v1.AmountUnit(component); v1.Currency(unit) {
			t.Errorf("%s of %s is shown as money", unit, component)
		}
	}
}
