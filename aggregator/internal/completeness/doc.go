// Package completeness compares, by source and day, what the runs of a scheduler come to
// with what the store has of them.
//
// An agent counts the runs of each past day of a source by two routes and sends
// what they come to (wire.Count). The store has the records. A [Day] has both and
// says what is missing. Days are those of UTC.
package completeness
