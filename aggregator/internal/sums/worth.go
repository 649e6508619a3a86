package sums

import "github.com/bursar-accounting/bursar/proto/record"

// Whole is a number of runs of each group in all buckets together, and of all groups: a run
// whose group changes is in two groups and is one of All.
type Whole struct {
	Groups []uint64
	All    uint64
}

// Worth is what was used in the unit of a weight.
type Worth struct {
	Name, Unit string
	// Sum has a figure for each cell, as [Component.Used] has. It is in 1 ÷ 3600
	// of 10^-15 of the unit, so that it is exact, see [Millionths].
	Sum []Sum
	// Beside is nil, or says of each cell whose Sum is 0 whether that is not known.
	Beside []Sum
	// Apart is nil, or the part of each Sum that is known whatever the rest is: a Sum of no more
	// counts as 0 for Beside.
	Apart []Sum
	// Strict says that a sum of cells is not known where that of one is not.
	Strict bool
	// Lacking are the parts of components that have no price, in their units; empty
	// if all have a price.
	Lacking []Unvalued
}

// EnergyBasis says what the energy and the CO2 of an answer rest on, in all groups and buckets
// together, in the unit of a [Worth].
type EnergyBasis struct {
	// Total is the energy, and the others are the parts of it that are measured, of which no CO2
	// factor is known, that have a PUE of 1 because none is set, and that are modelled at full load
	// because records do not say how long there was load. They are 0 where no measure asks.
	Total, Measured, WithoutFactor, DefaultPUE, DefaultLoad Sum
	// Meter is nil where no measure asks for it.
	Meter *MeterBasis
}

// Add adds the basis of other cells; meters are of no cell.
func (b *EnergyBasis) Add(o *EnergyBasis) {
	b.Total, b.Measured, b.WithoutFactor = b.Total.Add(o.Total), b.Measured.Add(o.Measured), b.WithoutFactor.Add(o.WithoutFactor)
	b.DefaultPUE, b.DefaultLoad = b.DefaultPUE.Add(o.DefaultPUE), b.DefaultLoad.Add(o.DefaultLoad)
}

// MeterBasis says where meters leave something unknown, or contradict the jobs.
type MeterBasis struct {
	// Gaps are the times without a reading, up to the present, of each meter.
	Gaps []MeterGap
	// Exceeded are the buckets in which the jobs had more than the meters counted.
	Exceeded []MeterExcess
	// More is how many others are in neither list, which are bounded.
	More int
}

// MeterGap is a time for which a meter has no reading.
type MeterGap struct {
	Meter    string
	From, To record.Time
}

// MeterExcess is by how much the jobs exceed the meters in a time.
type MeterExcess struct {
	From, To record.Time
	By       Sum
}

// Millionths is a figure of [Worth.Sum] in millionths of the unit, rounded to the nearest.
func Millionths(s Sum) Sum { return s.Over(3600 * 1_000_000_000) }

// IsUnknown reports whether the figure of a cell is not known.
func (w *Worth) IsUnknown(cell int) bool {
	if w.Beside == nil || w.Beside[cell].IsZero() {
		return false
	}
	known := w.Sum[cell]
	if w.Apart != nil {
		known = known.Sub(w.Apart[cell])
	}
	return known.IsZero()
}
