package sums

import (
	"cmp"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Meter is what a meter counted of the energy that the site draws. It is never changed.
type Meter struct {
	Name string

	readings []MeterReading
	before   []Sum // of each reading: what those before it come to
}

// MeterReading is the energy that a meter counted from From to To, in the unit of an
// [EnergyModel]. It spreads evenly over that time.
type MeterReading struct {
	From, To record.Time
	Energy   Sum
}

// NewMeter makes a meter of readings, which ascend, do not overlap and are not negative.
func NewMeter(name string, readings []MeterReading) *Meter {
	m := &Meter{Name: name, readings: readings, before: make([]Sum, len(readings))}
	for i := 1; i < len(readings); i++ {
		m.before[i] = m.before[i-1].Add(readings[i-1].Energy)
	}
	return m
}

// readingAfter is the number of the first reading that ends after a time.
func (m *Meter) readingAfter(at record.Time) int {
	i, found := slices.BinarySearchFunc(m.readings, at, func(r MeterReading, at record.Time) int { return cmp.Compare(r.To, at) })
	if found {
		i++
	}
	return i
}

// Until is what all readings counted before a time.
func (m *Meter) Until(at record.Time) Sum {
	i := m.readingAfter(at)
	if i == len(m.readings) {
		if i == 0 {
			return Sum{}
		}
		return m.before[i-1].Add(m.readings[i-1].Energy)
	}
	r := &m.readings[i]
	if at <= r.From {
		return m.before[i]
	}
	part := spread{whole: r.Energy, over: uint64(r.To - r.From)}
	return m.before[i].Add(part.givenUntil(uint64(at - r.From)))
}

// Gaps calls gap with the parts of the time from from to to that no reading has.
func (m *Meter) Gaps(from, to record.Time, gap func(from, to record.Time)) {
	for i := m.readingAfter(from); i < len(m.readings) && m.readings[i].From < to; i++ {
		if r := &m.readings[i]; from < r.From {
			gap(from, r.From)
		}
		from = m.readings[i].To
	}
	if from < to {
		gap(from, to)
	}
}

// Covers reports whether readings have all of a time.
func (m *Meter) Covers(from, to record.Time) bool {
	all := true
	m.Gaps(from, to, func(_, _ record.Time) { all = false })
	return all
}
