package accounting

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// The measures of energy that budgets can be in, and their units.
const (
	EnergyMeasure = usage.PricedEnergy
	CO2Measure    = usage.PricedCO2
	KWh           = "kWh"
	CO2Unit       = "kg CO2e"
)

// The measures of a site with meters: what they counted, and of it what no job has.
const (
	EnergyMeteredMeasure = "energy_metered"
	EnergyIdleMeasure    = "energy_idle"
)

// Unconfigured says what is missing in a configuration without a measure that values usage,
// and what to add; "" of other names.
func Unconfigured(measure string) string {
	if measure == EnergyMeteredMeasure || measure == EnergyIdleMeasure {
		return "no meter is configured; add a meter block to the energy block"
	}
	word, _, _ := strings.Cut(measure, "_") // energy_measured
	switch word {
	case Cost:
		return "prices are not configured; add a price block"
	case ServiceUnitMeasure:
		return ErrNoUnits.Error()
	case EnergyMeasure, CO2Measure:
		return "energy is not configured; add an energy block"
	}
	return ""
}

// EnergySettings say how energy and CO2 follow from records.
type EnergySettings struct {
	// Measured is the total of joules that records may carry.
	Measured string
	// Overheads are the PUE by time, which ascends, and Zone whose CO2 factors count, where a
	// class has none. Before the first of them the PUE is 1.
	Overheads []Overhead
	Zone      string
	// Classes are tried in their order.
	Classes []PowerClass
	// Factors are CO2 by time; those of a zone ascend.
	Factors []CO2Factor
	// Meters together count what the site draws. Readings of a meter ascend and do not overlap.
	Meters []Meter
}

// Meter is what a meter counted.
type Meter struct {
	Name     string
	Readings []sums.MeterReading
}

// PowerClass says what components of some records draw.
type PowerClass struct {
	Name string
	// Match is what the first values of meta keys, or of the class of the host, must be; none
	// is all records.
	Match []NodeMatch
	// Overheads and Zone are those of all where there are none: before the first of Overheads,
	// and where Zone is "".
	Overheads []Overhead
	Zone      string
	Draws     []Draw
}

// Overhead is a PUE, what the site draws for a watt of its computers, from a time on.
type Overhead struct {
	From record.Time
	PUE  Decimal
}

// Draw is what an amount of a component draws.
type Draw struct {
	Component string
	// Amount is of what the other numbers are.
	Amount int64
	Watts  Decimal
	// Idle is the part of Watts that is drawn without load, and Busy the total of seconds of
	// an amount of one under load; "" is always under load.
	Idle Decimal
	Busy string
	// Embodied is the CO2 of its making in kg, over a life of so many years.
	Embodied, Years Decimal
}

// CO2Factor is how much CO2 a kWh of a zone is for a time.
type CO2Factor struct {
	Zone string
	// From is when it begins to hold, and To when it ends; without To it holds until the next
	// one of the zone begins.
	From, To record.Time
	// Grams of CO2 equivalents of a kWh, in millionths.
	Grams int64
	// Place is where it is written, such as co2.csv:3; "" where that is not known.
	Place string
}

// FactorError is a factor that cannot be.
type FactorError struct{ Place, Text string }

// Error implements error.
func (e *FactorError) Error() string { return e.Text }

// Bounds of what is written, so that sums stay within 128 bits.
const (
	MaxWatts = 1_000_000 * One // and kg, of a component
	MaxGrams = 100_000 * One   // of a kWh
)

const (
	yearLength = 31_557_600 * record.Second // 365.25 days
)

// Weights are those of energy and of CO2; none of nil.
func (s *EnergySettings) Weights() ([]usage.Weight, error) {
	if s == nil {
		return nil, nil
	}
	b := energyBuilder{EnergySettings: s, model: &sums.EnergyModel{Measured: s.Measured}}
	for _, m := range s.Meters {
		b.model.Meters = append(b.model.Meters, sums.NewMeter(m.Name, m.Readings))
	}
	zones, err := b.buildIntensities()
	if err != nil {
		return nil, err
	}
	for i := range s.Classes {
		if err := b.addClass(&s.Classes[i], zones); err != nil {
			return nil, fmt.Errorf("class %q: %w", s.Classes[i].Name, err)
		}
	}
	if err := b.addClass(&PowerClass{}, zones); err != nil {
		return nil, err
	}
	b.cuts, b.changes = sortDistinct(b.cuts), sortDistinct(append(b.changes, b.cuts...))
	b.model.From, b.model.Components = sortDistinct(b.model.From), sortDistinct(b.model.Components)
	b.model.Class = b.classOf
	return b.weights(), nil
}

type energyBuilder struct {
	*EnergySettings

	model *sums.EnergyModel
	// classes are those of the settings, and behind them one for all other records.
	classes []sums.EnergyClass
	// cuts are where an overhead begins, and changes also where a factor does.
	cuts, changes []record.Time
}

// buildIntensities returns the intensities by zone.
func (b *energyBuilder) buildIntensities() (map[string]*sums.Intensity, error) {
	steps := map[string][]sums.IntensityStep{}
	last := map[string]*CO2Factor{}
	for i := range b.Factors {
		f := &b.Factors[i]
		list := steps[f.Zone]
		if before := last[f.Zone]; before != nil {
			ended := before.To.Present()
			switch {
			case f.From < before.From || ended && f.From < before.To:
				return nil, &FactorError{f.Place, fmt.Sprintf("the factor of zone %q from %s%s begins before the one from %s%s ends", f.Zone, f.From, placeText(f), before.From, placeText(before))}
			case f.From == before.From:
				return nil, &FactorError{f.Place, fmt.Sprintf("zone %q has two factors from %s%s%s", f.Zone, f.From, placeText(before), placeText(f))}
			case ended && before.To < f.From:
				list = append(list, sums.IntensityStep{From: before.To, Grams: -1})
				b.changes = append(b.changes, before.To)
			}
		}
		last[f.Zone] = f
		steps[f.Zone] = append(list, sums.IntensityStep{From: f.From, Grams: f.Grams})
		b.changes = append(b.changes, f.From)
	}
	for zone, f := range last {
		if f.To.Present() {
			steps[zone] = append(steps[zone], sums.IntensityStep{From: f.To, Grams: -1})
			b.changes = append(b.changes, f.To)
		}
	}
	out := map[string]*sums.Intensity{}
	for zone, list := range steps {
		out[zone] = sums.NewIntensity(list)
	}
	return out, nil
}

// placeText is where a factor is written, for a message.
func placeText(f *CO2Factor) string {
	if f.Place == "" {
		return ""
	}
	return " (" + filepath.Base(f.Place) + ")"
}

func (b *energyBuilder) addClass(c *PowerClass, zones map[string]*sums.Intensity) error {
	zone := cmp.Or(c.Zone, b.Zone)
	out := sums.EnergyClass{Intensity: zones[zone]}
	if out.Intensity == nil && zone != "" {
		return fmt.Errorf("no factors of zone %q", zone)
	}
	overheads, isSet := b.overheadsOf(c)
	for i, o := range overheads {
		add := sums.Overhead{From: o.From, PUE: int64(o.PUE), IsDefault: i == 0 && !isSet}
		for i := range c.Draws {
			p, err := c.Draws[i].unitPower(o.PUE)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Draws[i].Component, err)
			}
			add.Powers = append(add.Powers, p)
		}
		out.Overheads = append(out.Overheads, add)
		if o.From > record.MinTime {
			b.cuts = append(b.cuts, o.From)
		}
	}
	for i := range c.Draws {
		b.model.Components = append(b.model.Components, c.Draws[i].Component)
	}
	for _, m := range c.Match {
		b.model.From = append(b.model.From, m.Key)
	}
	b.classes = append(b.classes, out)
	return nil
}

// overheadsOf are the overheads of a class by time, from the first instant on. isSet is false where the
// first of them is 1 because none is set.
func (b *energyBuilder) overheadsOf(c *PowerClass) (list []Overhead, isSet bool) {
	list = slices.Clone(b.Overheads)
	if len(c.Overheads) > 0 {
		from := c.Overheads[0].From
		list = append(slices.DeleteFunc(list, func(o Overhead) bool { return o.From >= from }), c.Overheads...)
	}
	if len(list) > 0 && list[0].From == record.MinTime {
		return list, true
	}
	return append([]Overhead{{From: record.MinTime, PUE: One}}, list...), false
}

// unitPower is what an amount of one draws: products are rounded to 10^-12 W, and embodied CO2 to
// 10^-6 of the unit of sums for a microsecond.
func (d *Draw) unitPower(overhead Decimal) (p sums.Power, err error) {
	p = sums.Power{Component: d.Component, Busy: d.Busy}
	of := big.NewRat(1, max(1, d.Amount))
	full := new(big.Rat).Mul(new(big.Rat).Mul(d.Watts.rat(), overhead.rat()), of)
	full.Mul(full, big.NewRat(1_000_000_000_000, 1))
	idle := new(big.Rat).Mul(full, d.Idle.rat())
	made := new(big.Rat).Mul(d.Embodied.rat(), of)
	if d.Years > 0 {
		life := new(big.Rat).Mul(d.Years.rat(), big.NewRat(int64(yearLength), 1))
		made.Mul(made, new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(3_600_000_000_000_000_000), big.NewInt(1_000_000))))
		made.Quo(made, life)
	}
	for _, n := range []struct {
		from *big.Rat
		to   *int64
	}{{full, &p.Full}, {idle, &p.Idle}, {made, &p.Embodied}} {
		whole := roundRat(n.from)
		if !whole.IsInt64() {
			return p, errors.New("it is too much")
		}
		*n.to = whole.Int64()
	}
	return p, nil
}

// roundRat returns the whole number nearest to n, which is not negative.
func roundRat(r *big.Rat) *big.Int {
	n := new(big.Int).Mul(r.Num(), big.NewInt(2))
	n.Add(n, r.Denom())
	return n.Quo(n, new(big.Int).Mul(r.Denom(), big.NewInt(2)))
}

// classOf is the class of a record with these values of the model's keys.
func (b *energyBuilder) classOf(values []string, lacks []bool) *sums.EnergyClass {
	i := slices.IndexFunc(b.Classes, func(c PowerClass) bool { return matchesAll(c.Match, b.model.From, values, lacks) })
	if i < 0 {
		i = len(b.Classes)
	}
	return &b.classes[i]
}

func matchesAll(match []NodeMatch, keys, values []string, lacks []bool) bool {
	return !slices.ContainsFunc(match, func(m NodeMatch) bool {
		at := slices.Index(keys, m.Key)
		return lacks[at] || !m.matchesValue(values[at])
	})
}

// weights are those of energy and of CO2, by measurement and by the model.
func (b *energyBuilder) weights() (list []usage.Weight) {
	for _, w := range []struct {
		name, unit string
		part       usage.EnergyPart
	}{
		{EnergyMeasure, KWh, usage.Energy},
		{"energy_measured", KWh, usage.EnergyMeasured},
		{"energy_modelled", KWh, usage.EnergyModelled},
		{EnergyMeteredMeasure, KWh, usage.EnergyMetered},
		{EnergyIdleMeasure, KWh, usage.EnergyIdle},
		{CO2Measure, CO2Unit, usage.CO2},
		{"co2_measured", CO2Unit, usage.CO2Measured},
		{"co2_modelled", CO2Unit, usage.CO2Modelled},
		{"co2_embodied", CO2Unit, usage.CO2Embodied},
	} {
		if len(b.Meters) == 0 && (w.part == usage.EnergyMetered || w.part == usage.EnergyIdle) {
			continue
		}
		add := usage.Weight{
			Name: w.name, Unit: w.unit, Energy: b.model, Part: w.part, Components: b.model.Components, From: b.model.From, Of: b.expectedUse(w.part), Cuts: b.cuts,
		}
		if w.part >= usage.CO2 {
			add.Cuts = b.changes
		}
		list = append(list, add)
	}
	return list
}

// expectedUse is what runs that go on will take: at full load, and with the factors that are known
// for that time.
func (b *energyBuilder) expectedUse(part usage.EnergyPart) func(string, record.Kind, []string, []bool, record.Time) (int64, bool) {
	return func(component string, kind record.Kind, values []string, lacks []bool, at record.Time) (int64, bool) {
		c := b.classOf(values, lacks)
		powers := c.Overheads[0].Powers
		for _, o := range c.Overheads[1:] {
			if o.From <= at {
				powers = o.Powers
			}
		}
		i := slices.IndexFunc(powers, func(p sums.Power) bool { return p.Component == component })
		if i < 0 || kind != record.Rate {
			return 0, false
		}
		const micro = 1_000_000 // 10^-12 W for an hour are 10^-15 kWh
		switch p := &powers[i]; {
		case part == usage.Energy:
			return p.Full / micro, true
		case part == usage.CO2 && c.Intensity != nil:
			grams, known := c.Intensity.At(at)
			co2 := new(big.Int).Mul(big.NewInt(p.Full), big.NewInt(grams))
			return co2.Quo(co2, big.NewInt(micro*int64(One))).Int64() + p.Embodied/micro, known
		}
		return 0, false
	}
}
