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
	if note := e.wayNote(); note != "" {
		notes = append(notes, note)
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
		notes = append(notes, fmt.Sprintf("%s %s", e.partText(used), part.text))
	}
	return append(notes, e.Meter.meterNotes()...)
}

// partText is a part of the energy, with its share.
func (e *UsageEnergy) partText(part *big.Rat) string {
	text := Show("number", Rat(part)) + " kWh"
	if all := Rational(e.Total.String()); all != nil && all.Sign() > 0 {
		text += " (" + Show("share", Rat(new(big.Rat).Quo(part, all))) + ")"
	}
	return text
}

// measuredParts is the energy that is measured and that is modelled; nil where the answer does
// not say.
func (e *UsageEnergy) measuredParts() (measured, modelled *big.Rat) {
	total, measured := Rational(e.Total.String()), Rational(e.Measured.String())
	if total == nil || measured == nil {
		return nil, nil
	}
	return measured, new(big.Rat).Sub(total, measured)
}

// Way is how a figure of all this energy or of its CO2 came about, as [EnergyWay] says it; ""
// where the answer does not say.
func (e *UsageEnergy) Way(figure *big.Rat) string {
	if e == nil {
		return ""
	}
	measured, modelled := e.measuredParts()
	if measured == nil && figure != nil {
		return ""
	}
	return EnergyWay(figure, measured, modelled)
}

// wayNote says how much energy is measured and how much modelled; "" where there is none.
func (e *UsageEnergy) wayNote() string {
	measured, modelled := e.measuredParts()
	if measured == nil || measured.Sign() == 0 && modelled.Sign() == 0 {
		return ""
	}
	if way := e.Way(measured); measured.Sign() == 0 || modelled.Sign() == 0 {
		return fmt.Sprintf("%s kWh of energy are %s.", Show("number", Figure(&e.Total)), way)
	}
	return fmt.Sprintf("%s of energy are measured, %s are modelled.", e.partText(measured), e.partText(modelled))
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

// meterNotes are sentences about what meters leave unknown or contradict; none of nil.
func (m *UsageMeter) meterNotes() (notes []string) {
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
