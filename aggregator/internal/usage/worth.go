package usage

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// price is what a component is worth for a group in a phase.
type price struct {
	billionths int64
	known      bool
}

// valued is what has a worth.
type valued struct {
	name string
	kind record.Kind
	used []sums.Sum // of each cell of the base, as [sums.Component.Used], or of energy as [sums.Worth.Sum]
	// scale is by what the product of used and a price is multiplied, and over divided, to be a
	// [sums.Worth.Sum].
	scale int64
	over  uint64
	// unknown are parts of records of which no energy or CO2 is known.
	unknown []sums.Unvalued
}

// pricedParts are what of an answer has a worth.
func (w *weighing) pricedParts(a *sums.Answer) (list []valued) {
	if w.Energy != nil {
		return nil
	}
	for i := range a.Components {
		c := &a.Components[i]
		if !slices.Contains(w.Components, c.Name) || w.Priced != nil && (c.Name == PricedEnergy || c.Name == PricedCO2) {
			continue
		}
		p := valued{name: c.Name, kind: c.Kind, used: c.Used, scale: 1, over: 1}
		if c.Kind == record.Total && !slices.Contains(w.Seconds, c.Name) {
			p.scale = hour
		}
		list = append(list, p)
	}
	return append(list, w.energyParts(a)...)
}

// energyParts are energy and CO2, where they have a worth.
func (w *weighing) energyParts(a *sums.Answer) (list []valued) {
	if w.Priced == nil {
		return nil
	}
	e := &a.Energy
	for _, of := range []struct {
		name    string
		columns [][]sums.Sum
		without []sums.Sum
	}{
		{PricedEnergy, [][]sums.Sum{e.Measured, e.Modelled}, nil},
		{PricedCO2, [][]sums.Sum{e.CO2Measured, e.CO2Modelled, e.Embodied}, e.Ungraded},
	} {
		if !slices.Contains(w.Components, of.name) {
			continue
		}
		p := valued{name: of.name, kind: record.Total, used: make([]sums.Sum, len(a.Groups)*(len(a.Edges)-1)), scale: 1, over: billion}
		for _, column := range of.columns {
			sums.AddSums(p.used, column)
		}
		for _, u := range e.Unmodelled {
			p.unknown = append(p.unknown, sums.Unvalued{Component: of.name + " of " + u.Component, Kind: u.Kind, Used: u.Used})
		}
		if of.without != nil {
			kWh := slices.Clone(of.without)
			for i := range kWh {
				kWh[i] = sums.Millionths(kWh[i])
			}
			p.unknown = append(p.unknown, sums.Unvalued{Component: of.name + " of " + PricedEnergy, Kind: record.Total, Used: kWh})
		}
		list = append(list, p)
	}
	return list
}

// setPrices sets to to the prices of parts.
func (w *weighing) setPrices(to []price, parts []valued, r *reading, phase int) {
	for k := range parts {
		r.pickColumns(w.columns)
		p := &to[k]
		p.billionths, p.known = w.Of(parts[k].name, parts[k].kind, r.from, r.fromLack, r.phases[phase])
	}
}

// addWorths adds what was used in the units of the weights, and what that rests on.
func (f *folding) addWorths(a *sums.Answer) error {
	for i := range f.weights {
		if w := f.weights[i].Weight; w.Energy != nil {
			a.Worths = append(a.Worths, f.energyWorth(w, a))
			continue
		}
		w, err := f.pricedWorth(i)
		if err != nil {
			return err
		}
		a.Worths = append(a.Worths, w)
	}
	f.addBases(a)
	return nil
}

// pricedWorth is what was used of components by their prices.
func (f *folding) pricedWorth(i int) (sums.Worth, error) {
	w := &f.weights[i]
	out := sums.Worth{Name: w.Name, Unit: w.Unit, Sum: make([]sums.Sum, f.cells.Cells())}
	parts := f.parts[i]
	fits := true
	for k := range parts {
		c := &parts[k]
		lacking := sums.Unvalued{Component: c.name, Kind: c.kind}
		f.cells.EachCell(func(from, to, at int, _ bool) {
			p := f.prices[i][at*len(parts)+k]
			switch {
			case c.used[from].IsZero():
			case !p.known:
				if lacking.Used == nil {
					lacking.Used = make([]sums.Sum, f.cells.Cells())
				}
				lacking.Used[to] = lacking.Used[to].Add(c.unpricedPart(from))
			default:
				value, ok := c.worthOf(c.used[from], p.billionths)
				fits = fits && ok
				out.Sum[to] = out.Sum[to].Add(value)
			}
		})
		out.Lacking = appendSome(out.Lacking, lacking)
		for _, u := range c.unknown {
			u.Used = f.cells.SumCells(u.Used)
			out.Lacking = appendSome(out.Lacking, u)
		}
	}
	if !fits {
		return out, fmt.Errorf("%w: %s is more than can be added up", sums.ErrQuery, w.Name)
	}
	return out, nil
}

const billion = 1_000_000_000

// hour is by what totals are multiplied, so that they have the unit of rates, which
// are amounts for a microsecond and have their price by the hour.
const hour = 3600

// worthOf is used × price in the unit of [sums.Worth.Sum]; false when it does not fit.
func (p *valued) worthOf(used sums.Sum, billionths int64) (sums.Sum, bool) {
	value, ok := used.Times(billionths)
	value, fits := value.Times(p.scale)
	if p.over > 1 {
		value = value.Over(p.over)
	}
	return value, ok && fits
}

// unpricedPart is a cell in the unit of [sums.Unvalued].
func (p *valued) unpricedPart(cell int) sums.Sum {
	if p.over == billion {
		return sums.Millionths(p.used[cell])
	}
	return p.used[cell]
}
