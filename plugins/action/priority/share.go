package main

import "math/big"

// prioritiesOf are the priorities that follow from usages, which are at least zero: each from
// min to max. Where usages tell no difference, all are min.
func (c *config) prioritiesOf(usage []*big.Rat) []int64 {
	low, whole := new(big.Rat), new(big.Rat)
	if c.spread {
		low, whole = findBounds(usage)
		whole.Sub(whole, low)
	} else {
		for _, u := range usage {
			whole.Add(whole, u)
		}
	}
	width := new(big.Rat).SetInt(new(big.Int).Sub(big.NewInt(c.max), big.NewInt(c.min)))
	out := make([]int64, len(usage))
	for i, u := range usage {
		if out[i] = c.min; whole.Sign() == 0 {
			continue
		}
		part := new(big.Rat).Sub(u, low)
		part.Quo(part.Mul(part, width), whole)
		out[i] += roundHalfUp(part)
	}
	return out
}

// findBounds returns the least and the greatest.
func findBounds(list []*big.Rat) (low, high *big.Rat) {
	low, high = new(big.Rat), new(big.Rat)
	for i, r := range list {
		if i == 0 || r.Cmp(low) < 0 {
			low.Set(r)
		}
		if i == 0 || r.Cmp(high) > 0 {
			high.Set(r)
		}
	}
	return low, high
}

// roundHalfUp is the nearest whole number of what is at least zero, a half up: away from
// zero.
func roundHalfUp(r *big.Rat) int64 {
	twice := new(big.Int).Add(new(big.Int).Lsh(r.Num(), 1), r.Denom())
	return twice.Quo(twice, new(big.Int).Lsh(r.Denom(), 1)).Int64()
}
