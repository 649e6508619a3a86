//go:build e2e

// Package faults breaks a bursar site in every way that it promises to survive,
// and counts afterwards.
//
// A [Site] has aggregators and agents as real processes, each with a file system
// of its own that can be filled, frozen and cut from power, and a proxy before
// every address at which one of them reaches another. A [Scheduler] makes up jobs
// and so owns the truth. A plan says which faults happen; it is a function of
// a seed. After each cycle of faults all is healed, and the oracle compares what
// every node holds with the truth.
//
// The tests need root. They run in a mount namespace of their own, so that no
// mount outlives them.
package faults
