package sums

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestTimesIsTheProductOrSaysThatItIsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Sum{hi: rapid.Int64().Draw(t, "hi") >> rapid.IntRange(0, 63).Draw(t, "shift"), lo: rapid.Uint64().Draw(t, "lo")}
		n := rapid.Int64().Draw(t, "n")
		want := new(big.Int).Mul(s.Big(), big.NewInt(n))
		got, ok := s.Times(n)
		if fits := want.BitLen() <= 126; !ok && fits || ok && got.Big().Cmp(want) != 0 {
			t.Errorf("%v × %d = %v, %t; want %v", s, n, got, ok, want)
		}
	})
}
