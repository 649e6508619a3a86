// Package capacity says what clusters have and since when – cores, memory, GPUs,
// service units – so that what was used can be compared with what was there.
//
// A [Plan] is what the configuration says, [Fact] is what a source says, and
// [Capacities] is both together: the integral of an amount over any time, exact, of a
// cluster, of a group of clusters, of all. What nobody says is unknown, never zero.
package capacity
