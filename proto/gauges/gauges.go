// Package gauges gives conditions and times as the values of Prometheus gauges.
package gauges

import "time"

// OneIf returns 1 where a condition holds, and otherwise 0.
func OneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// UnixSeconds returns an instant in seconds since 1970, with milliseconds; 0 for the zero Time.
func UnixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
