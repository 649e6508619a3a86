// Package nomad asks a Nomad server over its HTTP API: listings, single objects and
// the event stream, with a token and certificates that are read again when their
// files change.
//
// The types here have only those fields of Nomad's that accounting needs, which
// keeps listings small in memory. Nomad's own Go types are not used for them: they
// lack the reserved cores and the history of an allocation's states.
package nomad
