// Package serve is the agent's side of the pull: a gRPC server by mutual TLS,
// which answers aggregators only.
//
// It hands out what the buffer holds, takes acknowledgements, agrees with a
// cluster on where to go on after a loss, and passes orders on to the sources.
package serve
