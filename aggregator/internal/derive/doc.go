// Package derive answers questions about usage by keys that no record has, but that
// follow from those that it has – a project from a group, a cluster from a site, a
// class from a host – and values what was used: in service units, in money.
//
// What a record says never changes by it: a directory or a price list that is
// another one today gives other answers today. Keys and weights are dated: a
// question is cut at the instants at which they change, so each instant of a run
// counts with what held then, and the days of a month add up to the month.
package derive
