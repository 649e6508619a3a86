//go:build race

package racetest

// Enabled says that this test is built with the race detector.
const Enabled = true
