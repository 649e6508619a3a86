package v1_test

import (
	"slices"
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestUsageEnergy_Notes_NameDefaultsAndWhatIsInNoCO2(t *testing.T) {
	var none *v1.UsageEnergy
	if got := none.Notes(); got != nil {
		t.Error(got)
	}
	if got := (&v1.UsageEnergy{Total: "8", WithoutFactor: "0", DefaultPue: "0", DefaultLoad: "0"}).Notes(); got != nil {
		t.Error(got)
	}
	want := []string{
		"8 kWh (100\u202f%) of energy have a PUE of 1, because none is set; set pue in the energy block.",
		"2 kWh (25.0\u202f%) of energy are modelled at full load, because records lack the seconds under load, such as TotalCPU.",
		"4 kWh (50.0\u202f%) of energy have no CO2 factor at their time and are in no CO2.",
	}
	if got := (&v1.UsageEnergy{Total: "8", WithoutFactor: "4", DefaultPue: "8", DefaultLoad: "2"}).Notes(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
