// Package health says how the cluster is doing: facts in, findings out.
//
// [Judge] is a pure function. The facts are gathered by a [Watch] from sources
// that the daemon wires; what a node knows of itself alone ([Local]) travels to
// the others, so that every node can answer for the whole cluster.
package health
