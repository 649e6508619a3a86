// Package health says how the cluster is doing: facts in, findings out.
//
// [Judge] is a pure function. The facts are gathered by a [Watch] from sources
// that the daemon wires; what a node knows of itself alone ([Local]) travels to
// the others, so that every node can answer for the whole cluster.
//
// A [DiskGuard] keeps a node from writing into a full disk, and a [Watchdog] from leading
// on one that hangs. Long before writes fail the guard refuses them, so that reads go on
// and compaction has room; a [Ballast] is a file, room that an operator can give back at
// the worst moment.
//
// A [Learner] learns how long a source is usually silent, and says which one is silent
// for longer. A source speaks when its watermark moves or something of it is counted.
// The longest pause of each day is remembered for two weeks; what is usual is the
// longest but one, so that a single outage is not taken for a habit. It is kept in
// memory: until a node has seen some pauses, as after a start, the default holds.
package health
