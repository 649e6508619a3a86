package store

import (
	"bytes"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

func TestKeysOfTimesAreInTheOrderOfTheTimes(t *testing.T) {
	times := []record.Time{record.None, record.MinTime, -record.Hour, -1, 0, 1, t0, record.MaxTime}
	gap := func(from, to record.Time) []byte { return gapKey(&Gap{Source: slurm, From: from, To: to}) }
	for i := 1; i < len(times); i++ {
		for name, pair := range map[string][2][]byte{
			"start of a gap": {gap(times[i-1], 7), gap(times[i], 3)},
			"end of a gap":   {gap(3, times[i-1]), gap(3, times[i])},
			"capacity": {factKey(&Fact{Kind: FactCapacity, Source: slurm, At: times[i-1]}),
				factKey(&Fact{Kind: FactCapacity, Source: slurm, At: times[i]})},
		} {
			if bytes.Compare(pair[0], pair[1]) >= 0 {
				t.Errorf("%s: the key of %d is not below that of %d", name, times[i-1], times[i])
			}
		}
	}
}
