// Package fakenomad is a Nomad server for tests: jobs, allocations and nodes that a
// test changes, with Nomad's listings, objects and event stream over HTTP. A
// [Player] plays a recorded cluster on it, change by change.
package fakenomad
