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

// SkipRaft skips a test under the race detector that gives a member of a running cluster
// another address. Raft v1.7.3 (and v1.8.0) reads followerReplication.peer without its lock
// in updateLastAppended while startStopReplication replaces it by one with the same id and
// the new address. Only the id is read, so the value is right either way; the detector still
// ends the check, about once in ten runs. Without the detector the test runs.
func SkipRaft(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("raft reads the id of a peer without its lock while its address changes")
	}
}
