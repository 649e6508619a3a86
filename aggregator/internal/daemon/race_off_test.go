//go:build !race

package daemon_test

// raceDetector says that this test is built with it.
const raceDetector = false
