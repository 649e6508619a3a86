package usage

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// price is what a component is worth for a group in a phase.
type price struct {
	billionths int64
	known      bool
}

// parts are the places of the components of an answer that have a worth.
func (w *weighing) parts(a *Answer) (list []int) {
	for i := range a.Components {
		if w.Energy == nil && slices.Contains(w.Components, a.Components[i].Name) {
			list = append(list, i)
		}
	}
	return list
}

// price sets to to the prices of parts.
func (w *weighing) price(to []price, parts []int, a *Answer, r *reading, phase int) {
	for k, i := range parts {
		r.pick(w.columns)
		p := &to[k]
		p.billionths, p.known = w.Of(a.Components[i].Name, a.Components[i].Kind, r.from, r.fromLack, r.phases[phase])
	}
}

// worths is what was used in the units of the weights.
func (f *folding) worths() ([]Value, error) {
	var out []Value
	for i := range f.weights {
		w, err := f.worth(i)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

func (f *folding) worth(i int) (Value, error) {
	w := &f.weights[i]
	if w.Energy != nil {
		return f.energy(w.Weight), nil
	}
	out := Value{Name: w.Name, Unit: w.Unit, Sum: make([]Sum, f.cells)}
	parts := w.parts(f.base)
	fits := true
	for k, n := range parts {
		c := &f.base.Components[n]
		lacking := Unvalued{Component: c.Name, Kind: c.Kind}
		hourly := c.Kind != record.Total || slices.Contains(w.Seconds, c.Name)
		f.each(func(from, to, at int, _ bool) {
			p := f.prices[i][at*len(parts)+k]
			switch {
			case c.Used[from].IsZero():
			case !p.known:
				if lacking.Used == nil {
					lacking.Used = make([]Sum, f.cells)
				}
				lacking.Used[to] = lacking.Used[to].Add(c.Used[from])
			default:
				value, ok := worth(c.Used[from], hourly, p.billionths)
				fits = fits && ok
				out.Sum[to] = out.Sum[to].Add(value)
			}
		})
		if lacking.Used != nil {
			out.Lacking = append(out.Lacking, lacking)
		}
	}
	if !fits {
		return out, fmt.Errorf("%w: %s is more than can be added up", ErrQuestion, w.Name)
	}
	return out, nil
}

// hour is by what totals are multiplied, so that they have the unit of rates, which
// are amounts for a microsecond and have their price by the hour.
const hour = 3600

// worth is used × price in the unit of [Worth.Sum]; false when it does not fit. A price
// is of an hour, or of one.
func worth(used Sum, hourly bool, billionths int64) (Sum, bool) {
	value, ok := used.Times(billionths)
	if hourly {
		return value, ok
	}
	value, fits := value.Times(hour)
	return value, ok && fits
}

// Millionths is a figure of [Worth.Sum] in millionths of the unit, rounded to
// the nearest.
func Millionths(s Sum) Sum { return s.Over(hour * 1_000_000_000) }
