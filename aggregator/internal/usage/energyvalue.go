package usage

import (
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// EnergyPart is which part of energy or CO2 a [Weight] is.
type EnergyPart uint8

// The parts of energy and of CO2.
const (
	Energy EnergyPart = iota
	EnergyMeasured
	EnergyModelled
	EnergyMetered // what the meters counted
	EnergyIdle    // of it what no job has
	CO2
	CO2Measured
	CO2Modelled
	CO2Embodied
)

// energyValue is a part of the energy or the CO2 in the unit of a [Value]. It is not known
// where the sum is 0 and there is something beside it; the embodied part of CO2 does not make
// the rest known.
func (f *folding) energyValue(w *Weight) Value {
	e := &f.base.Energy
	parts := []struct{ sum, beside [][]sums.Sum }{
		Energy:         {[][]sums.Sum{e.Measured, e.Modelled}, nil},
		EnergyMeasured: {[][]sums.Sum{e.Measured}, [][]sums.Sum{e.Modelled}},
		EnergyModelled: {[][]sums.Sum{e.Modelled}, [][]sums.Sum{e.Measured}},
		EnergyMetered:  {nil, nil},
		EnergyIdle:     {[][]sums.Sum{e.Measured, e.Modelled}, nil},
		CO2:            {[][]sums.Sum{e.CO2Measured, e.CO2Modelled, e.Embodied}, [][]sums.Sum{e.Ungraded}},
		CO2Measured:    {[][]sums.Sum{e.CO2Measured}, [][]sums.Sum{e.Ungraded, e.Modelled}},
		CO2Modelled:    {[][]sums.Sum{e.CO2Modelled}, [][]sums.Sum{e.Ungraded, e.Measured}},
		CO2Embodied:    {[][]sums.Sum{e.Embodied}, [][]sums.Sum{e.Measured, e.Modelled}},
	}[w.Part]
	out := Value{Name: w.Name, Unit: w.Unit, Sum: make([]sums.Sum, f.cells), Beside: make([]sums.Sum, f.cells)}
	for _, p := range parts.sum {
		sums.AddSums(out.Sum, f.foldSums(p))
	}
	for _, p := range parts.beside {
		sums.AddSums(out.Beside, f.foldSums(p))
	}
	for _, u := range e.Unmodelled {
		u.Used = f.foldSums(u.Used)
		sums.AddSums(out.Beside, u.Used)
		if w.Part != EnergyMeasured && w.Part != EnergyMetered && w.Part != CO2Measured {
			out.Lacking = appendSome(out.Lacking, u)
		}
	}
	if w.Part == CO2 {
		out.Apart = f.foldSums(e.Embodied)
	}
	if w.ofMeters() {
		f.applyMeters(&out, w.Part)
	}
	if w.Part >= CO2 && w.Part != CO2Embodied {
		u := sums.Unvalued{Component: "energy", Kind: record.Total, Used: f.foldSums(e.Ungraded)}
		for i := range u.Used {
			u.Used[i] = Millionths(u.Used[i])
		}
		out.Lacking = appendSome(out.Lacking, u)
	}
	return out
}

// EnergyBasis says what the energy and the CO2 of an answer rest on, in all groups and buckets
// together, in the unit of a [Value].
type EnergyBasis struct {
	// Total is the energy, and the others are the parts of it that are measured, of which no CO2
	// factor is known, that have a PUE of 1 because none is set, and that are modelled at full load
	// because records do not say how long there was load. They are 0 where no measure asks.
	Total, Measured, WithoutFactor, DefaultPUE, DefaultLoad sums.Sum
	// Meter is nil where no measure asks for it.
	Meter *MeterBasis
}

// Add adds the basis of other cells; meters are of no cell.
func (b *EnergyBasis) Add(o *EnergyBasis) {
	b.Total, b.Measured, b.WithoutFactor = b.Total.Add(o.Total), b.Measured.Add(o.Measured), b.WithoutFactor.Add(o.WithoutFactor)
	b.DefaultPUE, b.DefaultLoad = b.DefaultPUE.Add(o.DefaultPUE), b.DefaultLoad.Add(o.DefaultLoad)
}

// energyBasis is that of the answer; nil where neither energy nor CO2 is asked for.
func (f *folding) energyBasis() *EnergyBasis {
	columns := f.basisColumns()
	if columns == nil {
		return nil
	}
	b := &EnergyBasis{Meter: f.meterBasis()}
	for _, c := range columns {
		for _, s := range f.foldSums(c.sums) {
			c.add(b, s)
		}
	}
	return b
}

// energyBases are those of each cell; nil where they are not asked for.
func (f *folding) energyBases() []EnergyBasis {
	columns := f.basisColumns()
	if columns == nil || !f.q.Bases {
		return nil
	}
	out := make([]EnergyBasis, f.cells)
	for _, c := range columns {
		for i, s := range f.foldSums(c.sums) {
			c.add(&out[i], s)
		}
	}
	return out
}

// basisColumn is a column of the base with how it adds to a basis.
type basisColumn struct {
	sums []sums.Sum
	add  func(*EnergyBasis, sums.Sum)
}

// basisColumns are those that the measures of the question rest on; nil where none is of
// energy or CO2.
func (f *folding) basisColumns() []basisColumn {
	var total, load, factor bool
	asked := false
	for i := range f.weights {
		w := &f.weights[i]
		if w.Energy == nil {
			continue
		}
		asked = true
		total = total || w.Part != CO2Embodied && w.Part != EnergyMetered
		switch w.Part {
		case Energy, EnergyModelled, EnergyIdle, CO2, CO2Modelled:
			load = true
		case EnergyMeasured, EnergyMetered, CO2Measured, CO2Embodied:
		}
		factor = factor || w.Part == CO2 || w.Part == CO2Measured || w.Part == CO2Modelled
	}
	if !asked {
		return nil
	}
	e, out := &f.base.Energy, []basisColumn{}
	if total {
		out = append(out,
			basisColumn{e.Measured, func(b *EnergyBasis, s sums.Sum) { b.Total, b.Measured = b.Total.Add(s), b.Measured.Add(s) }},
			basisColumn{e.Modelled, func(b *EnergyBasis, s sums.Sum) { b.Total = b.Total.Add(s) }},
			basisColumn{e.DefaultPUE, func(b *EnergyBasis, s sums.Sum) { b.DefaultPUE = b.DefaultPUE.Add(s) }})
	}
	if load {
		out = append(out, basisColumn{e.DefaultLoad, func(b *EnergyBasis, s sums.Sum) { b.DefaultLoad = b.DefaultLoad.Add(s) }})
	}
	if factor {
		out = append(out, basisColumn{e.Ungraded, func(b *EnergyBasis, s sums.Sum) { b.WithoutFactor = b.WithoutFactor.Add(s) }})
	}
	return out
}

// appendSome appends what is not nothing.
func appendSome(list []sums.Unvalued, u sums.Unvalued) []sums.Unvalued {
	if unlessZero(u.Used) == nil {
		return list
	}
	return append(list, u)
}
