// Package sums says who used how much of what, and when: exactly, for any window.
//
// A [Query] has buckets of time, keys to group by and conditions; [Index.Answer]
// finds the [Answer] from sums by day, from the rows of the store, or from both. The
// [Index] is derived from the store: it follows the change feed, can be thrown away at
// any time and be made again, and holds nothing that the rows do not.
package sums
