package usage

import (
	"encoding/binary"
	"math/big"
	"math/bits"
	"strconv"
)

// Sum is a whole number of 128 bits with a sign. Its zero value is 0. Sums of
// usage are exact: the greatest record adds less than 2^123.
type Sum struct {
	hi int64
	lo uint64
}

// SumOf returns v as a Sum.
func SumOf(v int64) Sum { return Sum{hi: v >> 63, lo: uint64(v)} }

// product returns a × b.
func product(a, b int64) Sum {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h := int64(hi)
	if a < 0 {
		h -= b
	}
	if b < 0 {
		h -= a
	}
	return Sum{hi: h, lo: lo}
}

// Add returns s + o.
func (s Sum) Add(o Sum) Sum {
	lo, carry := bits.Add64(s.lo, o.lo, 0)
	return Sum{hi: s.hi + o.hi + int64(carry), lo: lo}
}

// Sub returns s - o.
func (s Sum) Sub(o Sum) Sum {
	lo, borrow := bits.Sub64(s.lo, o.lo, 0)
	return Sum{hi: s.hi - o.hi - int64(borrow), lo: lo}
}

// IsZero reports whether s is 0.
func (s Sum) IsZero() bool { return s.hi == 0 && s.lo == 0 }

// Less reports whether s < o.
func (s Sum) Less(o Sum) bool { return s.hi < o.hi || s.hi == o.hi && s.lo < o.lo }

// Float returns the float64 nearest to s, or next to it.
func (s Sum) Float() float64 { return float64(s.hi)*(1<<64) + float64(s.lo) }

// Big returns s as a big.Int.
func (s Sum) Big() *big.Int {
	b := new(big.Int).SetInt64(s.hi)
	return b.Add(b.Lsh(b, 64), new(big.Int).SetUint64(s.lo))
}

// AppendDecimal appends s ÷ 10^6 as a decimal number without needless zeros: sums
// are in millionths.
func (s Sum) AppendDecimal(b []byte) []byte {
	if s.hi < 0 {
		return Sum{}.Sub(s).AppendDecimal(append(b, '-'))
	}
	var rest uint64
	if s.hi == 0 { // as nearly always
		b = strconv.AppendUint(b, s.lo/million, 10)
		rest = s.lo % million
	} else {
		var hi, lo uint64
		hi, rest = bits.Div64(0, uint64(s.hi), million)
		lo, rest = bits.Div64(rest, s.lo, million)
		b = appendWhole(b, hi, lo)
	}
	if rest == 0 {
		return b
	}
	digits := [7]byte{'.'}
	for i := 6; i > 0; i-- {
		digits[i] = '0' + byte(rest%10)
		rest /= 10
	}
	n := len(digits)
	for digits[n-1] == '0' {
		n--
	}
	return append(b, digits[:n]...)
}

// appendWhole appends hi × 2^64 + lo.
func appendWhole(b []byte, hi, lo uint64) []byte {
	if hi == 0 {
		return strconv.AppendUint(b, lo, 10)
	}
	n := new(big.Int).SetUint64(hi)
	n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(lo))
	return n.Append(b, 10)
}

// Bytes returns s in 16 bytes, the greatest first, as two's complement.
func (s Sum) Bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], uint64(s.hi))
	binary.BigEndian.PutUint64(b[8:], s.lo)
	return b
}

// String returns s as a whole number.
func (s Sum) String() string { return s.Big().String() }
