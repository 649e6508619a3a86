package usage

import (
	"slices"

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

// energyWorth is a part of the energy or the CO2 in the unit of a [sums.Worth]. It is not known
// where the sum is 0 and there is something beside it; the embodied part of CO2 does not make
// the rest known.
func (f *folding) energyWorth(w *Weight, a *sums.Answer) sums.Worth {
	e := &a.Energy
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
	cells := f.cells.Cells()
	out := sums.Worth{Name: w.Name, Unit: w.Unit, Sum: make([]sums.Sum, cells), Beside: make([]sums.Sum, cells)}
	for _, p := range parts.sum {
		sums.AddSums(out.Sum, p)
	}
	for _, p := range parts.beside {
		sums.AddSums(out.Beside, p)
	}
	for _, u := range e.Unmodelled {
		sums.AddSums(out.Beside, u.Used)
		if w.Part != EnergyMeasured && w.Part != EnergyMetered && w.Part != CO2Measured {
			out.Lacking = appendSome(out.Lacking, u)
		}
	}
	if w.Part == CO2 {
		out.Apart = e.Embodied
	}
	if w.ofMeters() {
		f.applyMeters(&out, w.Part)
	}
	if w.Part >= CO2 && w.Part != CO2Embodied {
		u := sums.Unvalued{Component: "energy", Kind: record.Total, Used: slices.Clone(e.Ungraded)}
		for i := range u.Used {
			u.Used[i] = sums.Millionths(u.Used[i])
		}
		out.Lacking = appendSome(out.Lacking, u)
	}
	return out
}

// addBases adds what energy and CO2 of the answer rest on.
func (f *folding) addBases(a *sums.Answer) {
	columns := f.basisColumns(&a.Energy)
	if columns == nil {
		return
	}
	a.Basis = &sums.EnergyBasis{Meter: f.meterBasis(&a.Energy)}
	if f.q.Bases {
		a.Bases = make([]sums.EnergyBasis, f.cells.Cells())
	}
	for _, c := range columns {
		for i, s := range c.sums {
			c.add(a.Basis, s)
			if a.Bases != nil {
				c.add(&a.Bases[i], s)
			}
		}
	}
}

// basisColumn is a column of an answer with how it adds to a basis.
type basisColumn struct {
	sums []sums.Sum
	add  func(*sums.EnergyBasis, sums.Sum)
}

// basisColumns are those that the measures of the query rest on; nil where none is of
// energy or CO2.
func (f *folding) basisColumns(e *sums.EnergySums) []basisColumn {
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
	out := []basisColumn{}
	if total {
		out = append(out,
			basisColumn{e.Measured, func(b *sums.EnergyBasis, s sums.Sum) { b.Total, b.Measured = b.Total.Add(s), b.Measured.Add(s) }},
			basisColumn{e.Modelled, func(b *sums.EnergyBasis, s sums.Sum) { b.Total = b.Total.Add(s) }},
			basisColumn{e.DefaultPUE, func(b *sums.EnergyBasis, s sums.Sum) { b.DefaultPUE = b.DefaultPUE.Add(s) }})
	}
	if load {
		out = append(out, basisColumn{e.DefaultLoad, func(b *sums.EnergyBasis, s sums.Sum) { b.DefaultLoad = b.DefaultLoad.Add(s) }})
	}
	if factor {
		out = append(out, basisColumn{e.Ungraded, func(b *sums.EnergyBasis, s sums.Sum) { b.WithoutFactor = b.WithoutFactor.Add(s) }})
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
