//go:build !faults

package calendar_test

const withFaults = false
