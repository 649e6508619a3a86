package sums

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Intensity is how much CO2 a kWh is, by time. It is never changed.
type Intensity struct {
	steps []intensityStep
}

// IntensityStep is an intensity that holds from a time on, until the next one.
type IntensityStep struct {
	From record.Time
	// Grams of CO2 equivalents of a kWh, in millionths; negative: not known.
	Grams int64
}

// intensityStep knows what came before it.
type intensityStep struct {
	IntensityStep

	grams Sum         // millionths × microseconds, of all steps before
	gap   record.Time // for which nothing is known, since the first
}

// NewIntensity makes the intensity of steps, which ascend. Before the first nothing is known.
func NewIntensity(list []IntensityStep) *Intensity {
	var n Intensity
	for i, s := range list {
		step := intensityStep{IntensityStep: s}
		if i > 0 {
			step.grams, step.gap = n.steps[i-1].totalsUntil(s.From)
		}
		n.steps = append(n.steps, step)
	}
	return &n
}

// totalsUntil is what there is before a time that is not before the step.
func (s *intensityStep) totalsUntil(at record.Time) (grams Sum, gap record.Time) {
	if s.Grams < 0 {
		return s.grams, s.gap + at - s.From
	}
	return s.grams.Add(Product(s.Grams, int64(at-s.From))), s.gap
}

// stepAt is the last step that is not after a time; nil before the first.
func (n *Intensity) stepAt(t record.Time) *intensityStep {
	i, found := slices.BinarySearchFunc(n.steps, t, func(s intensityStep, t record.Time) int { return cmp.Compare(s.From, t) })
	if found {
		return &n.steps[i]
	}
	if i == 0 {
		return nil
	}
	return &n.steps[i-1]
}

// At is the intensity at a time, in millionths of a gram; false where it is not known.
func (n *Intensity) At(t record.Time) (grams int64, known bool) {
	if s := n.stepAt(t); s != nil && s.Grams >= 0 {
		return s.Grams, true
	}
	return 0, false
}

// totalsUntil is what there is before a time, of which only differences have a meaning.
func (n *Intensity) totalsUntil(t record.Time) (grams Sum, gap record.Time) {
	if s := n.stepAt(t); s != nil {
		return s.totalsUntil(t)
	}
	if len(n.steps) == 0 {
		return Sum{}, t
	}
	return Sum{}, t - n.steps[0].From
}

// co2Of is the CO2 of energy that is spread evenly from start to end, as far as it is from from to
// to, and the energy there of which no intensity is known. Pieces add up to the whole.
func (n *Intensity) co2Of(energy Sum, start, end, from, to record.Time) (co2, without Sum) {
	if start == end {
		if grams, known := n.At(start); known {
			return mulDiv(energy, SumOf(grams), ofKilogram), Sum{}
		}
		return Sum{}, energy
	}
	grams, gap := n.totalsUntil(start)
	pieces := func(to record.Time) (co2, without Sum) {
		g, gone := n.totalsUntil(to)
		over := int64(end - start)
		return mulDiv(energy, g.Sub(grams), ofKilogram, over), mulDiv(energy, SumOf(int64(gone-gap)), over)
	}
	co2, without = pieces(to)
	if from > start {
		co2Before, withoutBefore := pieces(from)
		co2, without = co2.Sub(co2Before), without.Sub(withoutBefore)
	}
	return co2, without
}

// ofKilogram is how many millionths of a gram a kilogram has.
const ofKilogram = 1_000_000_000

// mulDiv is a × b ÷ the product of over, rounded down; none is negative.
func mulDiv(a, b Sum, over ...int64) Sum {
	if b.IsZero() {
		return Sum{}
	}
	n := a.Big()
	n.Mul(n, b.Big())
	for _, o := range over {
		n.Quo(n, big.NewInt(o))
	}
	lo := new(big.Int).And(n, new(big.Int).SetUint64(1<<64-1))
	return Sum{hi: n.Rsh(n, 64).Int64(), lo: lo.Uint64()}
}
