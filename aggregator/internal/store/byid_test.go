package store

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNewIDsAreIndexedInTheOrderOfTheirKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom([]string{"", "nemo-slurm-", "\xff\x00"}).Draw(t, "start")
		var list []plainIndex
		for i, id := range rapid.SliceOfDistinct(rapid.StringMatching(`[ab\x00]{0,12}[0-9]{0,3}`), func(s string) string { return s }).Draw(t, "ids") {
			list = append(list, plainIndex{id: start + id, seq: uint64(i)})
		}
		want := slices.Clone(list)
		slices.SortFunc(want, func(a, b plainIndex) int { return strings.Compare(a.id, b.id) })
		sortByID(list)
		if !slices.Equal(list, want) {
			t.Fatalf("got %v, want %v", list, want)
		}
	})
}
