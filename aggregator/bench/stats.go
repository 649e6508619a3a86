package main

import (
	"slices"
	"time"
)

// medianOf returns the middle of the values; 0 of none.
func medianOf(values []float64) float64 { return percentileOf(values, 50) }

// meanOf returns the average of the values; 0 of none.
func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / max(1, float64(len(values)))
}

// percentileOf returns the value that p percent of the values do not exceed.
func percentileOf(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// millisecondsSince returns the milliseconds since a moment.
func millisecondsSince(t time.Time) float64 { return float64(time.Since(t).Nanoseconds()) / 1e6 }
