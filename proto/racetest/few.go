package racetest

import "testing"

// Few returns n, the repetitions or the size of a test; a fifth of it under the race
// detector where go test has -short, as in the check: there one pass through the code that
// shares memory tells as much as many, and takes several times as long as without.
func Few(n int) int {
	if Enabled && testing.Short() {
		return max(n/5, 1)
	}
	return n
}
