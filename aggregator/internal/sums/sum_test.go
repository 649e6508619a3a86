package sums

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestASumIsWrittenWithAllItsDigits compares with the text of a fraction.
func TestASumIsWrittenWithAllItsDigits(t *testing.T) {
	check := func(s Sum) {
		want := new(big.Rat).SetFrac(s.Big(), big.NewInt(million)).FloatString(6)
		want = strings.TrimSuffix(strings.TrimRight(want, "0"), ".")
		if got := string(s.AppendDecimal([]byte("x"))); got != "x"+want {
			t.Errorf("got %s, want x%s", got, want)
		}
	}
	for _, v := range []int64{0, 1, 9, 10, 99, 100, 999_999, million, million + 1, 10 * million, 99_990_000, 100 * million, math.MaxInt64, -1, -million} {
		check(SumOf(v))
		check(Sum{hi: 1, lo: uint64(v)})
		check(Sum{hi: v, lo: 1})
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Sum{hi: rapid.Int64().Draw(t, "hi"), lo: rapid.Uint64().Draw(t, "lo")}
		s.hi >>= rapid.IntRange(0, 63).Draw(t, "shift")
		check(s)
		check(Sum{lo: s.lo >> rapid.IntRange(0, 63).Draw(t, "low shift")})
	})
}
