// Package columnstest makes the benchmark record for the tests of what keeps
// records: it hands on package benchmark.
package columnstest

import "github.com/bursar-accounting/bursar/proto/benchmark"

// The kinds of record ids.
const (
	Slurm = benchmark.Slurm
	UUID  = benchmark.UUID
)

// Gen generates records. It belongs to one goroutine.
type Gen = benchmark.Gen

// Generator returns a generator of n records whose stops are spread over a year,
// with ids of kind [Slurm] or [UUID].
func Generator(seed uint64, n int, ids string) *Gen { return benchmark.Generator(seed, n, ids) }
