// Package intake is where bursar-epilog hands over events: a unix socket for those on
// this machine, and TCP with mutual TLS for those on others.
//
// A connection carries lines, see package event. Each is answered with a line, in
// their order, when the event is on disk; an empty line, which asks whether someone
// listens, with an empty answer. What comes is not trusted: who may speak is decided
// before a byte is read, lines and their number at once are bounded, and a
// connection on which nothing comes is closed.
package intake
