package main

import (
	"slices"
	"time"
)

// median returns the middle of the values; 0 of none.
func median(values []float64) float64 { return percentile(values, 50) }

// mean returns the average of the values; 0 of none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / max(1, float64(len(values)))
}

// percentile returns the value that p percent of the values do not exceed.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// since returns the milliseconds since a moment.
func since(t time.Time) float64 { return float64(time.Since(t).Nanoseconds()) / 1e6 }
