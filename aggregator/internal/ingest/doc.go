// Package ingest brings the agents' frames into the store: one loop an agent, on the
// leader only.
//
// The order is always pull → commit → acknowledge. Where to pull is the cursor in the
// store, never memory; a command that does not continue the cursor changes nothing, so
// that a repeated one, one of a deposed leader and one whose outcome is unknown are
// harmless. What is acknowledged is the cursor that the store answers. While one batch
// is committed the next is pulled already.
//
// A connection lasts for some minutes: then the agent ends it in order (GOAWAY of HTTP/2), calls under
// way are answered on it, and the next call makes a new one with the current certificates. A
// certificate renewed in time is shown before the one before it ends, and no call fails for that.
// A pull that is broken off nevertheless, since the other end's certificate is not valid any more
// ([identity.Keys.Guard]), is repeated from the cursor.
//
// An agent without an address dials in. Its connection waits in [Arrivals], on every node,
// until the loop of the leader needs one; with it comes the proof of who the agent is, so
// gRPC makes no handshake of its own.
package ingest
