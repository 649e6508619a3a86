package main

import (
	"math/big"
	"slices"
	"testing"
)

func rats(t *testing.T, list ...string) (out []*big.Rat) {
	t.Helper()
	for _, s := range list {
		r, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatal(s)
		}
		out = append(out, r)
	}
	return out
}

func TestPrioritiesAreThoseOfAUDITOR(t *testing.T) {
	reference, unit := rats(t, "17280", "17760", "24000", "600", "0"), rats(t, "2", "4", "3")
	for _, x := range []struct {
		what     string
		usage    []*big.Rat
		min, max int64
		spread   bool
		want     []int64
	}{
		{"full spread", reference, 1, 65335, true, []int64{47041, 48348, 65335, 1634, 1}},
		{"scaled by sum", reference, 1, 65335, false, []int64{18931, 19457, 26292, 658, 1}},
		{"full spread, unit", unit, 1, 10, true, []int64{1, 10, 6}},
		{"scaled by sum, unit", unit, 1, 10, false, []int64{3, 5, 4}},
		{"a half is rounded up", rats(t, "1", "0", "2"), 0, 1, true, []int64{1, 0, 1}},
		{"all alike, full spread", rats(t, "5", "5"), 3, 9, true, []int64{3, 3}},
		{"all alike, scaled by sum", rats(t, "5", "5"), 3, 9, false, []int64{6, 6}},
		{"nothing, full spread", rats(t, "0", "0"), 3, 9, true, []int64{3, 3}},
		{"nothing, scaled by sum", rats(t, "0", "0"), 3, 9, false, []int64{3, 3}},
		{"one group, full spread", rats(t, "7"), 3, 9, true, []int64{3}},
		{"one group, scaled by sum", rats(t, "7"), 3, 9, false, []int64{9}},
		{"one value", rats(t, "1", "2"), 4, 4, true, []int64{4, 4}},
		{"huge", rats(t, "1e400", "3e400"), 0, 1 << 62, true, []int64{0, 1 << 62}},
	} {
		c := config{min: x.min, max: x.max, spread: x.spread}
		if got := c.prioritiesOf(x.usage); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.what, got, x.want)
		}
	}
}
