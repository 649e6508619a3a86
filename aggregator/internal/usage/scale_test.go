package usage

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestAQuotientIsRoundedToTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Sum{hi: rapid.Int64Range(-1<<59, 1<<59).Draw(t, "hi"), lo: rapid.Uint64().Draw(t, "lo")}
		if rapid.Bool().Draw(t, "small") {
			s.hi >>= 63
		}
		n := rapid.Uint64Range(1, 1<<40).Draw(t, "n")
		got := s.Over(n).Big()
		// |2 (got n - s)| <= n
		off := new(big.Int).Mul(got, new(big.Int).SetUint64(n))
		off.Sub(off, s.Big()).Lsh(off, 1)
		if off.CmpAbs(new(big.Int).SetUint64(n)) > 0 {
			t.Fatalf("%s ÷ %d = %s", s, n, got)
		}
		if minus := (Sum{}).Sub(s).Over(n); !minus.Add(s.Over(n)).IsZero() {
			t.Fatalf("-%s ÷ %d = %s", s, n, minus)
		}
	})
}
