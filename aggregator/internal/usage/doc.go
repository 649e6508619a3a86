// Package usage answers questions of people about usage, from the exact sums of package sums.
//
// A [sums.Query] may name keys that no record has, but that follow from those that it has –
// a project from a group, a cluster from a site, a class from a host – and asks what
// usage is worth: in service units, in money. [Derivation.Answer] finds the [sums.Answer].
// What a record says never changes by it: a directory or a price list that is another
// one today gives other answers today. Keys and weights are dated: a query is cut at
// the instants at which they change, so each instant of a run counts with what held
// then, and the days of a month add up to the month.
//
// A [Table] is made for people: it has the groups, the buckets and the measures that a
// [Request] names, with the largest groups and all others in one line, and the
// difference to another window. It writes itself as columns in JSON, as a JSON object
// for each cell, and as CSV. Figures stay exact up to the text: sums are whole numbers
// of 128 bits, and only quotients and what is weighted with a score are floating point
// numbers.
package usage
