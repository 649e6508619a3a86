package v1_test

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

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
		"6 kWh (75.0\u202f%) of energy are measured, 2 kWh (25.0\u202f%) are modelled.",
		"8 kWh (100\u202f%) of energy have a PUE of 1, because none is set; set pue in the energy block.",
		"2 kWh (25.0\u202f%) of energy are modelled at full load, because records lack the seconds under load, such as TotalCPU.",
		"4 kWh (50.0\u202f%) of energy have no CO2 factor at their time and are in no CO2.",
	}
	if got := (&v1.UsageEnergy{Total: "8", Measured: "6", WithoutFactor: "4", DefaultPue: "8", DefaultLoad: "2"}).Notes(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestUsageEnergy_Meter_NotesNameGapsAndExcess(t *testing.T) {
	at := func(day int) v1.Time { return v1.Time{Time: time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC)} }
	e := &v1.UsageEnergy{Total: "8", WithoutFactor: "0", DefaultPue: "0", DefaultLoad: "0", Meter: &v1.UsageMeter{
		Gaps: []v1.MeterGap{{Meter: "hall", From: at(1), To: at(2)}}, Exceeded: []v1.MeterExcess{{From: at(3), To: at(4), By: "2.5"}}, More: 3,
	}}
	want := []string{
		`Meter "hall" has no reading from 2026-03-01T00:00:00Z to 2026-03-02T00:00:00Z: the metered and the idle energy of that time are unknown.`,
		"Jobs exceed the meter by 2.50 kWh from 2026-03-03T00:00:00Z to 2026-03-04T00:00:00Z; check the watts and the PUE of the energy block, and whether the meter has all nodes.",
		"3 more gaps of meters and times in which jobs exceed them are not listed.",
	}
	if got := e.Notes(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestEnergyWay_PartsOfAFigure_SayHowItCameAbout(t *testing.T) {
	one, none := big.NewRat(1, 1), new(big.Rat)
	for _, c := range []struct {
		figure, measured, modelled *big.Rat
		want                       string
	}{
		{nil, nil, nil, "unknown"},
		{one, one, nil, "measured"},
		{one, nil, one, "modelled"},
		{one, one, one, "measured and modelled"},
		{none, none, none, "modelled"},
	} {
		if got := v1.EnergyWay(c.figure, c.measured, c.modelled); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestUsageEnergy_Way_IsOfItsParts(t *testing.T) {
	some, none := json.Number("3"), (*json.Number)(nil)
	for _, c := range []struct {
		total, measured json.Number
		figure          *json.Number
		want, note      string
	}{
		{"8", "8", &some, "measured", "8 kWh of energy are measured."},
		{"8", "0", &some, "modelled", "8 kWh of energy are modelled."},
		{"8", "2", &some, "measured and modelled", "2 kWh (25.0\u202f%) of energy are measured, 6 kWh (75.0\u202f%) are modelled."},
		{"0", "0", none, "unknown", ""},
		{"8", "8", none, "unknown", "8 kWh of energy are measured."}, // CO2 without a factor
		{"8", "", &some, "", ""},                                     // an answer of a release that does not say it
	} {
		e := &v1.UsageEnergy{Total: c.total, Measured: c.measured, WithoutFactor: "0", DefaultPue: "0", DefaultLoad: "0"}
		if got := e.Way(v1.Figure(c.figure).Number()); got != c.want {
			t.Errorf("%s of %s: got %q, want %q", c.measured, c.total, got, c.want)
		}
		if got := strings.Join(e.Notes(), "\n"); got != c.note {
			t.Errorf("%s of %s: got %q, want %q", c.measured, c.total, got, c.note)
		}
	}
}
