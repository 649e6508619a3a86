// Package line is a connection of gRPC that follows the certificates of its own
// end.
//
// gRPC keeps a connection for as long as it works, and with it the certificates
// that were shown when it was made. A [Line] makes another one beside it when they
// were renewed. Calls go on over the old one until the new one stands, and those
// that are under way there are finished before it is closed, so that no call fails
// for it. Where the other end does not accept the new certificate the old
// connection stays in use.
package line
