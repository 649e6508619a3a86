//go:build race

package run_test

// raceDetector says that this test is built with it.
const raceDetector = true
