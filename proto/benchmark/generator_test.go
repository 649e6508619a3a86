package benchmark_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestTheBenchmarkRecordIsAlwaysTheSameValidAndInOrderOfStop(t *testing.T) {
	const n = 20_000
	for _, ids := range []string{benchmark.Slurm, benchmark.UUID} {
		g, again := benchmark.Generator(7, n, ids), benchmark.Generator(7, n, ids)
		g.Extended, again.Extended = true, true
		seen, last, arrays := map[string]bool{}, record.MinTime, 0
		for r := range g.All() {
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			if other, ok := again.Next(); !ok || !cmp.Equal(r, other) {
				t.Fatalf("record %s is another the second time", r.ID)
			}
			if seen[r.ID] || r.Stop < last || r.Open() || r.Negative() {
				t.Fatalf("record %s given more than once, out of order or has no runtime", r.ID)
			}
			seen[r.ID], last = true, r.Stop
			if strings.Contains(r.ID, "_") {
				arrays++
			}
		}
		if len(seen) != n {
			t.Errorf("%d records, want %d", len(seen), n)
		}
		if ids == benchmark.Slurm && (arrays < n/9 || arrays > n/5) {
			t.Errorf("%d array tasks of %d, want about a seventh", arrays, n)
		}
	}
}
