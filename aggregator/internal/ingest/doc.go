// Package ingest brings the agents' frames into the store: one loop an agent, on the
// leader only.
//
// The order is always pull → commit → acknowledge. Where to pull is the cursor in the
// store, never memory; a command that does not continue the cursor changes nothing, so
// that a repeated one, one of a deposed leader and one whose outcome is unknown are
// harmless. What is acknowledged is the cursor that the store answers. While one batch
// is committed the next is pulled already.
//
// A [Connection] of gRPC follows the certificates of its own end. gRPC keeps a
// connection for as long as it works, and with it the certificates that were shown when
// it was made; a Connection makes another one beside it when they were renewed. Calls go
// on over the old one until the new one stands, and those that are under way there are
// finished before it is closed, so that no call fails for it. Where the other end does
// not accept the new certificate the old connection stays in use.
//
// An agent without an address dials in. Its connection waits in [Arrivals], on every node,
// until the loop of the leader needs one; with it comes the proof of who the agent is, so
// gRPC makes no handshake of its own.
package ingest
