package usage

import (
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// EnergyModel says how much energy runs took, and how much CO2 that was: measured where a
// record has its joules, else by what its components draw. It is never changed.
//
// Energy is counted in 1 ÷ 3600 of 10^-15 kWh, which is 10^-12 J, and CO2 equivalents in the
// same part of a kg: as [Value.Sum]. The energy of a run is a whole number of these and spreads
// evenly over its time, so the days of a month add up to the month.
type EnergyModel struct {
	// Measured is the name of the total of joules.
	Measured string
	// From are the meta keys, or the classes, that Class needs, each once.
	From []string
	// Class returns what holds for a record with these first values of From. lacks says of each of From whether the record has no value. Class is called by
	// several goroutines at once.
	Class func(values []string, lacks []bool) *EnergyClass
	// Components are the rates for which a class has a [Power].
	Components []string
}

// EnergyClass is what holds for some records.
type EnergyClass struct {
	// Overhead is what the site draws for a watt of its computers, the PUE, in billionths.
	Overhead int64
	Powers   []Power
	// Intensity is how much CO2 a kWh is, by time; nil: not known.
	Intensity *Intensity
}

// Power is what a component draws. Its numbers are of an amount of one.
type Power struct {
	Component string
	// Full and Idle are what it draws under load and without, in 10^-12 W with the overhead.
	Full, Idle int64
	// Busy is the total of seconds for which it was under load; without one it always was.
	Busy string
	// Embodied is the CO2 of its making for the part of its life that is used: millionths of
	// the unit of CO2 for each microsecond.
	Embodied int64
}

// EnergyPart is which part of energy or CO2 a [Weight] is.
type EnergyPart uint8

// The parts of energy and of CO2.
const (
	Energy EnergyPart = iota
	EnergyMeasured
	EnergyModelled
	CO2
	CO2Measured
	CO2Modelled
	CO2Embodied
)

// EnergySums are the columns of an answer about energy.
type EnergySums struct {
	// Energy by measurement and by the model, and its CO2.
	Measured, Modelled, CO2Measured, CO2Modelled []Sum
	// Embodied is the CO2 of the making of what was used.
	Embodied []Sum
	// Ungraded is the energy of which no intensity is known, so that it is in no CO2.
	Ungraded []Sum
	// Unmodelled are the components of runs without a measurement that draw what no one
	// knows: they are in no figure.
	Unmodelled []Unvalued
}

// portions are the columns by the portion that is added to them.
func (e *EnergySums) portions() map[portion]*[]Sum {
	return map[portion]*[]Sum{
		measured: &e.Measured, modelled: &e.Modelled, co2Measured: &e.CO2Measured, co2Modelled: &e.CO2Modelled,
		embodied: &e.Embodied, ungraded: &e.Ungraded,
	}
}

// drawn is what a run took in all.
type drawn struct {
	known    bool // that it was computed
	energy   Sum
	of, co2  portion // of energy: measured or modelled
	embodied Sum
	unknown  []int // the parts that are not modelled
}

// energy adds what a run took from from to to, which lie within its start and its end.
func (t *tally) energy(r *run, end record.Time, group uint32, bucket int, from, to record.Time) {
	d := &t.drawn
	if !d.known {
		t.draw(d, r, end)
	}
	add := func(name columnName, s Sum) {
		if !s.IsZero() {
			u := &t.row(t.column(name), group)[bucket]
			*u = u.Add(s)
		}
	}
	share := func(whole Sum) Sum {
		if from == r.start && to == end {
			return whole
		}
		s := spread{whole: whole, over: uint64(end - r.start)}
		return s.until(uint64(to - r.start)).Sub(s.until(uint64(from - r.start)))
	}
	used := share(d.energy)
	add(columnName{of: d.of}, used)
	add(columnName{of: embodied}, share(d.embodied))
	for _, k := range d.unknown {
		add(columnName{name: r.layout.parts[k].name, kind: record.Rate, of: unmodelled}, r.used(k, end, from, to))
	}
	if r.class.Intensity == nil {
		add(columnName{of: ungraded}, used)
		return
	}
	co2, without := r.class.Intensity.of(d.energy, r.start, end, from, to)
	add(columnName{of: d.co2}, co2)
	add(columnName{of: ungraded}, without)
}

// draw computes what a run takes from its start to its end.
func (t *tally) draw(d *drawn, r *run, end record.Time) {
	m, span := t.q.Energy, int64(end-r.start)
	*d = drawn{known: true, of: modelled, co2: co2Modelled, unknown: d.unknown[:0]}
	for k := range r.layout.parts {
		if p := &r.layout.parts[k]; p.name == m.Measured && p.kind == record.Total && r.amounts[k] > 0 {
			// A joule is 10^12 of the unit, the overhead is in 10^-9.
			d.of, d.co2 = measured, co2Measured
			d.energy = t.fits(product(r.amounts[k], 1000).Times(r.class.Overhead))
			break
		}
	}
	for k := range r.layout.parts {
		p := &r.layout.parts[k]
		if p.kind == record.Total {
			continue
		}
		power := r.class.power(p.name)
		if power == nil {
			if d.of == modelled && (len(m.Components) == 0 || slices.Contains(m.Components, p.name)) {
				d.unknown = append(d.unknown, k)
			}
			continue
		}
		held := product(r.amounts[k], span)
		d.embodied = d.embodied.Add(t.fits(held.Times(power.Embodied)))
		if d.of == modelled {
			d.energy = d.energy.Add(t.taken(power, r, held))
		}
	}
	// 10^-12 W × 10^-6 s are millionths of the unit, as embodied CO2 is.
	d.embodied = d.embodied.Over(million)
	if d.of == modelled {
		d.energy = d.energy.Over(million)
	}
}

// taken is what a component took that was held for an amount × microseconds: under load for as
// long as the run was busy, and at most for all of it.
func (t *tally) taken(p *Power, r *run, held Sum) Sum {
	busy := held
	for k := range r.layout.parts {
		if o := &r.layout.parts[k]; p.Busy != "" && o.name == p.Busy && o.kind == record.Total {
			if busy = product(r.amounts[k], million); held.Less(busy) {
				busy = held
			}
			break
		}
	}
	return t.fits(held.Times(p.Idle)).Add(t.fits(busy.Times(p.Full - p.Idle)))
}

// fits notes a product that is no Sum.
func (t *tally) fits(s Sum, ok bool) Sum {
	t.tooMuch = t.tooMuch || !ok
	return s
}

// power is what a component of the class draws; nil: not known.
func (c *EnergyClass) power(component string) *Power {
	for i := range c.Powers {
		if c.Powers[i].Component == component {
			return &c.Powers[i]
		}
	}
	return nil
}

// energy is a part of the energy or the CO2 in the unit of a [Value]. It is not known where the
// sum is 0 and there is something beside it.
func (f *folding) energy(w *Weight) Value {
	e := &f.base.Energy
	parts := []struct{ sum, beside [][]Sum }{
		Energy:         {[][]Sum{e.Measured, e.Modelled}, nil},
		EnergyMeasured: {[][]Sum{e.Measured}, [][]Sum{e.Modelled}},
		EnergyModelled: {[][]Sum{e.Modelled}, [][]Sum{e.Measured}},
		CO2:            {[][]Sum{e.CO2Measured, e.CO2Modelled, e.Embodied}, [][]Sum{e.Ungraded}},
		CO2Measured:    {[][]Sum{e.CO2Measured}, [][]Sum{e.Ungraded, e.Modelled}},
		CO2Modelled:    {[][]Sum{e.CO2Modelled}, [][]Sum{e.Ungraded, e.Measured}},
		CO2Embodied:    {[][]Sum{e.Embodied}, [][]Sum{e.Measured, e.Modelled}},
	}[w.Part]
	out := Value{Name: w.Name, Unit: w.Unit, Sum: make([]Sum, f.cells), Beside: make([]Sum, f.cells)}
	for _, p := range parts.sum {
		addSums(out.Sum, f.sums(p))
	}
	for _, p := range parts.beside {
		addSums(out.Beside, f.sums(p))
	}
	for _, u := range e.Unmodelled {
		u.Used = f.sums(u.Used)
		addSums(out.Beside, u.Used)
		if w.Part != EnergyMeasured && w.Part != CO2Measured {
			out.Lacking = appendSome(out.Lacking, u)
		}
	}
	if w.Part >= CO2 && w.Part != CO2Embodied {
		u := Unvalued{Component: "energy", Kind: record.Total, Used: f.sums(e.Ungraded)}
		for i := range u.Used {
			u.Used[i] = Millionths(u.Used[i])
		}
		out.Lacking = appendSome(out.Lacking, u)
	}
	return out
}

// appendSome appends what is not nothing.
func appendSome(list []Unvalued, u Unvalued) []Unvalued {
	if unlessZero(u.Used) == nil {
		return list
	}
	return append(list, u)
}
