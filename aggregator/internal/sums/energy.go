package sums

import (
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// EnergyModel says how much energy runs took, and how much CO2 that was: measured where a
// record has its joules, else by what its components draw. It is never changed.
//
// Energy is counted in 1 ÷ 3600 of 10^-15 kWh, which is 10^-12 J, and CO2 equivalents in the
// same part of a kg: as [Worth.Sum]. The energy of a run is a whole number of
// these and spreads evenly over its time, so the days of a month add up to the month.
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
	// Meters together count what the site draws; none: it is not metered.
	Meters []*Meter
}

// EnergyClass is what holds for some records.
type EnergyClass struct {
	// Overheads ascend; the first also holds before its time.
	Overheads []Overhead
	// Intensity is how much CO2 a kWh is, by time; nil: not known.
	Intensity *Intensity
}

// Overhead is what the site draws for a watt of its computers, the PUE, from a time on.
type Overhead struct {
	From record.Time
	// PUE is in billionths. IsDefault says that none is set, so that it is 1.
	PUE       int64
	IsDefault bool
	// Powers are with the PUE; of all overheads of a class they are of the same components.
	Powers []Power
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

// EnergySums are the columns of an answer about energy.
type EnergySums struct {
	// Energy by measurement and by the model, and its CO2.
	Measured, Modelled, CO2Measured, CO2Modelled []Sum
	// Embodied is the CO2 of the making of what was used.
	Embodied []Sum
	// Ungraded is the energy of which no intensity is known, so that it is in no CO2.
	Ungraded []Sum
	// DefaultPUE is the energy with a PUE of 1 because none is set, and DefaultLoad that which is
	// modelled at full load because the run has no total of seconds under load.
	DefaultPUE, DefaultLoad []Sum
	// Unmodelled are the components of runs without a measurement that draw what no one
	// knows: they are in no figure.
	Unmodelled []Unvalued
}

// columnsByPortion are the columns by the portion that is added to them.
func (e *EnergySums) columnsByPortion() map[portion]*[]Sum {
	return map[portion]*[]Sum{
		measured: &e.Measured, modelled: &e.Modelled, co2Measured: &e.CO2Measured, co2Modelled: &e.CO2Modelled,
		embodied: &e.Embodied, ungraded: &e.Ungraded, defaultPUE: &e.DefaultPUE, defaultLoad: &e.DefaultLoad,
	}
}

// drawn is what a run took in all.
type drawn struct {
	known    bool    // that it was computed
	of, co2  portion // of energy: measured or modelled
	pieces   []drawnPiece
	embodied Sum
	unknown  []int // the parts that are not modelled
}

// drawnPiece is what a run takes from from to to: that share of energy, which is what all of it
// would take by the overhead of that time.
type drawnPiece struct {
	from, to record.Time
	energy   Sum
	loaded   Sum  // of energy, at full load because nothing says how long there was load
	plain    bool // without a PUE that is set
}

// addEnergy adds what a run took from from to to, which lie within its start and its end.
func (t *accumulator) addEnergy(r *run, end record.Time, group uint32, bucket int, from, to record.Time) {
	d := &t.drawn
	if !d.known {
		t.computeDraw(d, r, end)
	}
	add := func(name columnName, s Sum) {
		if !s.IsZero() {
			u := &t.rowOf(t.columnFor(name), group)[bucket]
			*u = u.Add(s)
		}
	}
	share := func(whole Sum, from, to record.Time) Sum {
		if from == r.start && to == end {
			return whole
		}
		s := spread{whole: whole, over: uint64(end - r.start)}
		return s.givenUntil(uint64(to - r.start)).Sub(s.givenUntil(uint64(from - r.start)))
	}
	add(columnName{of: embodied}, share(d.embodied, from, to))
	for _, k := range d.unknown {
		add(columnName{name: r.layout.parts[k].name, kind: record.Rate, of: unmodelled}, r.usedBetween(k, end, from, to))
	}
	for i := range d.pieces {
		p := &d.pieces[i]
		from, to := max(from, p.from), min(to, p.to)
		if from > to || from == to && r.start != end {
			continue
		}
		used := share(p.energy, from, to)
		add(columnName{of: d.of}, used)
		add(columnName{of: defaultLoad}, share(p.loaded, from, to))
		if p.plain {
			add(columnName{of: defaultPUE}, used)
		}
		if r.class.Intensity == nil {
			add(columnName{of: ungraded}, used)
			continue
		}
		co2, without := r.class.Intensity.co2Of(p.energy, r.start, end, from, to)
		add(columnName{of: d.co2}, co2)
		add(columnName{of: ungraded}, without)
	}
}

// computeDraw computes what a run takes from its start to its end.
func (t *accumulator) computeDraw(d *drawn, r *run, end record.Time) {
	*d = drawn{known: true, of: modelled, co2: co2Modelled, unknown: d.unknown[:0], pieces: d.pieces[:0]}
	joules := r.totalOf(t.q.Energy.Measured)
	if joules > 0 {
		d.of, d.co2 = measured, co2Measured
	}
	list := r.class.Overheads
	t.computeEmbodied(d, r, end, list[0].Powers)
	for i := range list {
		p := drawnPiece{from: r.start, to: end, plain: list[i].IsDefault}
		if i > 0 {
			p.from = max(p.from, list[i].From)
		}
		if i+1 < len(list) {
			p.to = min(p.to, list[i+1].From)
		}
		if p.from > p.to || p.from == p.to && (r.start != end || len(d.pieces) > 0) {
			continue
		}
		if d.of == measured { // a joule is 10^12 of the unit, the PUE is in 10^-9
			p.energy = t.checkedSum(Product(joules, 1000).Times(list[i].PUE))
		} else {
			p.energy, p.loaded = t.modelledEnergy(r, end, list[i].Powers)
		}
		d.pieces = append(d.pieces, p)
	}
}

// totalOf is an amount of the run; 0 where it has none.
func (r *run) totalOf(name string) int64 {
	for k := range r.layout.parts {
		if p := &r.layout.parts[k]; p.name == name && p.kind == record.Total {
			return r.amounts[k]
		}
	}
	return 0
}

// computeEmbodied computes the CO2 of the making of what a run held, and lists what is not
// modelled.
func (t *accumulator) computeEmbodied(d *drawn, r *run, end record.Time, powers []Power) {
	for k := range r.layout.parts {
		p := &r.layout.parts[k]
		if p.kind == record.Total {
			continue
		}
		if power := powerOf(powers, p.name); power != nil {
			d.embodied = d.embodied.Add(t.checkedSum(Product(r.amounts[k], int64(end-r.start)).Times(power.Embodied)))
		} else if list := t.q.Energy.Components; d.of == modelled && (len(list) == 0 || slices.Contains(list, p.name)) {
			d.unknown = append(d.unknown, k)
		}
	}
	d.embodied = d.embodied.Over(million)
}

// modelledEnergy is what a run takes by the powers of its components, and of it what is at
// full load because the run has no total of seconds under load.
func (t *accumulator) modelledEnergy(r *run, end record.Time, powers []Power) (energy, loaded Sum) {
	for k := range r.layout.parts {
		p := &r.layout.parts[k]
		power := powerOf(powers, p.name)
		if power == nil || p.kind == record.Total {
			continue
		}
		taken, known := t.componentEnergy(power, r, Product(r.amounts[k], int64(end-r.start)))
		if energy = energy.Add(taken); !known {
			loaded = loaded.Add(taken)
		}
	}
	return energy.Over(million), loaded.Over(million) // 10^-12 W × 10^-6 s are millionths of the unit, as embodied CO2 is
}

// componentEnergy is what a component took that was held for an amount × microseconds: under
// load for as long as the run was busy, and at most for all of it. known is false where the
// run does not say how long that was.
func (t *accumulator) componentEnergy(p *Power, r *run, held Sum) (taken Sum, known bool) {
	busy, known := held, p.Busy == ""
	for k := range r.layout.parts {
		if o := &r.layout.parts[k]; p.Busy != "" && o.name == p.Busy && o.kind == record.Total {
			if busy, known = Product(r.amounts[k], million), true; held.Less(busy) {
				busy = held
			}
			break
		}
	}
	return t.checkedSum(held.Times(p.Idle)).Add(t.checkedSum(busy.Times(p.Full - p.Idle))), known
}

// checkedSum returns a product, and notes where it is no Sum.
func (t *accumulator) checkedSum(s Sum, ok bool) Sum {
	t.tooMuch = t.tooMuch || !ok
	return s
}

// powerOf is what a component draws; nil: not known.
func powerOf(list []Power, component string) *Power {
	for i := range list {
		if list[i].Component == component {
			return &list[i]
		}
	}
	return nil
}

// Unvalued is the part of a component that a weight does not know.
type Unvalued struct {
	Component string
	Kind      record.Kind
	// Used is for each cell, as [Component.Used].
	Used []Sum
}
