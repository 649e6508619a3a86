package sums

import (
	"math"
	"math/bits"
)

// Over returns s ÷ n, rounded to a whole number, and away from 0 from the half on.
// n is not 0.
func (s Sum) Over(n uint64) Sum {
	if s.hi < 0 {
		return Sum{}.Sub(Sum{}.Sub(s).Over(n))
	}
	hi, rest := bits.Div64(0, uint64(s.hi), n)
	lo, rest := bits.Div64(rest, s.lo, n)
	out := Sum{hi: int64(hi), lo: lo}
	if rest >= n-rest {
		return out.Add(Sum{lo: 1})
	}
	return out
}

// Times returns s × n; false when that is no Sum.
func (s Sum) Times(n int64) (Sum, bool) {
	minus := s.hi < 0 != (n < 0)
	if s.hi < 0 {
		s = Sum{}.Sub(s)
	}
	by := uint64(n)
	if n < 0 {
		by = -by
	}
	carry, lo := bits.Mul64(s.lo, by)
	over, hi := bits.Mul64(uint64(s.hi), by)
	hi, more := bits.Add64(hi, carry, 0)
	if over != 0 || more != 0 || hi > math.MaxInt64 {
		return Sum{}, false
	}
	out := Sum{hi: int64(hi), lo: lo}
	if minus {
		out = Sum{}.Sub(out)
	}
	return out, true
}
