package main

import (
	"encoding/binary"
	"math/bits"
)

// sum is a whole number of 128 bits with a sign, in millionths: of core-seconds, for example,
// amount × microseconds. Its zero value is 0.
type sum struct {
	hi int64
	lo uint64
}

// multiply returns a × b.
func multiply(a, b int64) sum {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h := int64(hi)
	if a < 0 {
		h -= b
	}
	if b < 0 {
		h -= a
	}
	return sum{h, lo}
}

func (s sum) add(o sum) sum {
	lo, carry := bits.Add64(s.lo, o.lo, 0)
	return sum{s.hi + o.hi + int64(carry), lo}
}

func (s sum) subtract(o sum) sum {
	lo, borrow := bits.Sub64(s.lo, o.lo, 0)
	return sum{s.hi - o.hi - int64(borrow), lo}
}

// appendTo appends s as RowBinary has a Decimal(38, 6).
func (s sum) appendTo(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, s.lo), uint64(s.hi))
}

// usedUntil is what of s, which is not negative, was used at a time of a run, which takes the
// time over: evenly, and what does not divide goes to the last piece. It is the rule by which
// /v1/usage divides a total; of a rate it is exactly amount × time.
func (s sum) usedUntil(at, over uint64) sum {
	if at == over {
		return s
	}
	hi, rest := bits.Div64(0, uint64(s.hi), over)
	lo, rest := bits.Div64(rest, s.lo, over) // s = (hi, lo) × over + rest
	top, low := bits.Mul64(lo, at)
	out := sum{int64(hi*at + top), low}
	top, low = bits.Mul64(rest, at)
	part, _ := bits.Div64(top, low, over)
	return out.add(sum{lo: part})
}
