// Package month makes the summaries of whole months.
//
// A month is a calendar month in UTC, and a job belongs to the one in which it
// stopped. The receiver replaces a row by its key, so a summary is always that of
// the whole month as far as it is known, never of a part.
//
// All sums are of integers. What is normalised is rounded once for each job, half to
// even, from the product of two float64 numbers, as AUDITOR does; so a month's sum
// does not depend on the order of its jobs.
package month

import (
	"fmt"
	"math"
	"time"
)

// Month is a calendar month in UTC. Months compare by Before.
type Month struct {
	Year  int
	Month time.Month
}

// Of returns the month that an instant is in.
func Of(t time.Time) Month {
	t = t.UTC()
	return Month{t.Year(), t.Month()}
}

// Parse reads a month such as 2026-10.
func Parse(s string) (Month, error) {
	t, err := time.Parse("2006-01", s)
	if err != nil {
		return Month{}, fmt.Errorf("%q is no month; expected something like 2026-10", s)
	}
	return Of(t), nil
}

// String is the month as Parse reads it.
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m.Year, int(m.Month)) }

// Start is the month's first instant.
func (m Month) Start() time.Time { return time.Date(m.Year, m.Month, 1, 0, 0, 0, 0, time.UTC) }

// End is the first instant after the month.
func (m Month) End() time.Time { return m.Start().AddDate(0, 1, 0) }

// Add returns the month that is n months later.
func (m Month) Add(n int) Month { return Of(m.Start().AddDate(0, n, 0)) }

// Before reports whether m is earlier than o.
func (m Month) Before(o Month) bool { return m.Start().Before(o.Start()) }

// Through returns the months from m to last, both included.
func (m Month) Through(last Month) []Month {
	var out []Month
	for ; !last.Before(m); m = m.Add(1) {
		out = append(out, m)
	}
	return out
}

// Normalise returns seconds times score, rounded half to even.
func Normalise(seconds int64, score float64) (int64, error) {
	product := math.RoundToEven(float64(seconds) * score)
	if math.IsNaN(product) || product >= math.MaxInt64 || product < 0 {
		return 0, fmt.Errorf("%d seconds with the score %v cannot be normalised", seconds, score)
	}
	return int64(product), nil
}
