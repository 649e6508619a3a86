package usage

import "math/bits"

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
