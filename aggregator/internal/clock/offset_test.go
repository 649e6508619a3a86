//go:build !faults

package clock_test

const withFaults = false
