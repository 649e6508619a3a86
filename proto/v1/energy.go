package v1

import (
	"encoding/json"
	"fmt"
	"math/big"
)

// Notes are sentences about what the figures of energy and CO2 rest on that is not measured and
// not configured, and about what is in no CO2; none of nil.
func (e *UsageEnergy) Notes() (notes []string) {
	if e == nil {
		return nil
	}
	for _, part := range []struct {
		energy json.Number
		text   string
	}{
		{e.DefaultPue, "of energy have a PUE of 1, because none is set; set pue in the energy block."},
		{e.DefaultLoad, "of energy are modelled at full load, because records lack the seconds under load, such as TotalCPU."},
		{e.WithoutFactor, "of energy have no CO2 factor at their time and are in no CO2."},
	} {
		used := Rational(part.energy.String())
		if used == nil || used.Sign() == 0 {
			continue
		}
		text := Show("number", Rat(used)) + " kWh"
		if all := Rational(e.Total.String()); all != nil && all.Sign() > 0 {
			share := new(big.Rat).Quo(used, all)
			text += " (" + Show("share", Rat(share)) + ")"
		}
		notes = append(notes, fmt.Sprintf("%s %s", text, part.text))
	}
	return append(notes, e.Meter.notes()...)
}

// EnergyWay is how a figure of energy or of CO2 came about: measured, modelled, both, or unknown,
// where it is nil. measured and modelled are its parts; nil where they are unknown.
func EnergyWay(figure, measured, modelled *big.Rat) string {
	isMeasured, isModelled := measured != nil && measured.Sign() != 0, modelled != nil && modelled.Sign() != 0
	switch {
	case figure == nil:
		return "unknown"
	case isMeasured && isModelled:
		return "measured and modelled"
	case isMeasured:
		return "measured"
	}
	return "modelled"
}

// notes are sentences about what meters leave unknown or contradict; none of nil.
func (m *UsageMeter) notes() (notes []string) {
	if m == nil {
		return nil
	}
	for _, g := range m.Gaps {
		notes = append(notes, fmt.Sprintf("Meter %q has no reading from %s to %s: the metered and the idle energy of that time are unknown.", g.Meter, g.From, g.To))
	}
	for _, x := range m.Exceeded {
		by := Show("number", Rat(Rational(x.By.String())))
		notes = append(notes, fmt.Sprintf("Jobs exceed the meter by %s kWh from %s to %s; check the watts and the PUE of the energy block, and whether the meter has all nodes.", by, x.From, x.To))
	}
	if m.More > 0 {
		notes = append(notes, fmt.Sprintf("%d more gaps of meters and times in which jobs exceed them are not listed.", m.More))
	}
	return notes
}
