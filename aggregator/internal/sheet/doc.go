// Package sheet makes answers about usage ready for people: a [Sheet] has the groups,
// the buckets and the measures that a [Request] asks for by their names, with the
// largest groups and all others in one line, and the difference to another window.
//
// It writes itself as columns in JSON, as a JSON object for each cell, and as CSV.
// Figures stay exact up to the text: sums are whole numbers of 128 bits, and only
// quotients and what is weighted with a score are floating point numbers.
package sheet
