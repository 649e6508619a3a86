package sums

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

// Sum is a whole number of 128 bits with a sign. Its zero value is 0. Sums of
// usage are exact: the greatest record adds less than 2^123.
type Sum struct {
	hi int64
	lo uint64
}

// SumOf returns v as a Sum.
func SumOf(v int64) Sum { return Sum{hi: v >> 63, lo: uint64(v)} }

// Product returns a × b.
func Product(a, b int64) Sum {
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
	if s.hi == 0 { // as nearly always
		return appendMillionths(b, s.lo/million, uint32(s.lo%million))
	}
	hi, rest := bits.Div64(0, uint64(s.hi), million)
	lo, rest := bits.Div64(rest, s.lo, million)
	if hi == 0 {
		return appendMillionths(b, lo, uint32(rest))
	}
	n := new(big.Int).SetUint64(hi)
	b = n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(lo)).Append(b, 10)
	if rest == 0 {
		return b
	}
	return appendRest(append(b, '.'), uint32(rest))
}

// appendMillionths appends whole + rest ÷ 10^6. It is most of the work of an answer
// with many cells, so it writes two digits at a time.
func appendMillionths(b []byte, whole uint64, rest uint32) []byte {
	var text [20]byte
	at := len(text)
	for whole >= 100 {
		at -= 2
		pair := whole % 100 * 2
		whole /= 100
		text[at], text[at+1] = pairs[pair], pairs[pair+1]
	}
	if whole >= 10 {
		at--
		text[at] = byte('0' + whole%10)
		whole /= 10
	}
	at--
	text[at] = byte('0' + whole)
	b = append(b, text[at:]...)
	if rest == 0 {
		return b
	}
	return appendRest(append(b, '.'), rest)
}

// pairs are the numbers below 100.
const pairs = "0001020304050607080910111213141516171819" +
	"2021222324252627282930313233343536373839" +
	"4041424344454647484950515253545556575859" +
	"6061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"

// appendRest appends six digits without zeros at the end; rest is not 0.
func appendRest(b []byte, rest uint32) []byte {
	digits := [6]byte{}
	for i := 4; i >= 0; i -= 2 {
		pair := rest % 100 * 2
		rest /= 100
		digits[i], digits[i+1] = pairs[pair], pairs[pair+1]
	}
	n := len(digits)
	for digits[n-1] == '0' {
		n--
	}
	return append(b, digits[:n]...)
}

// Bytes returns s in 16 bytes, the greatest first, as two's complement.
func (s Sum) Bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], uint64(s.hi))
	binary.BigEndian.PutUint64(b[8:], s.lo)
	return b
}

// String returns s as a whole number.
func (s Sum) String() string { return s.Big().String() }
