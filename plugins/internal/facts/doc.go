// Package facts bounds and compares what sources tell beside runs: the census, the
// directory, and whether one is the same as the one that was sent last.
package facts
