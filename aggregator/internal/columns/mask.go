package columns

import (
	"iter"
	"math/bits"
)

// Mask is a set of rows of a block: bit i of word i/64 stands for row i. Masks
// that are combined must have the same length.
type Mask []uint64

// NewMask returns an empty mask for n rows.
func NewMask(n int) Mask { return make(Mask, (n+63)/64) }

// Set adds a row.
func (m Mask) Set(i int) { m[i/64] |= 1 << (i % 64) }

// Clear takes a row out.
func (m Mask) Clear(i int) { m[i/64] &^= 1 << (i % 64) }

// Has reports whether a row is in m.
func (m Mask) Has(i int) bool { return m[i/64]>>(i%64)&1 != 0 }

// Count returns the number of rows in m.
func (m Mask) Count() int {
	n := 0
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty reports whether no row is in m.
func (m Mask) Empty() bool {
	for _, w := range m {
		if w != 0 {
			return false
		}
	}
	return true
}

// And keeps the rows that are in o too.
func (m Mask) And(o Mask) {
	for k := range m {
		m[k] &= o[k]
	}
}

// Or adds the rows of o.
func (m Mask) Or(o Mask) {
	for k := range m {
		m[k] |= o[k]
	}
}

// AndNot takes the rows of o out.
func (m Mask) AndNot(o Mask) {
	for k := range m {
		m[k] &^= o[k]
	}
}

// Rows yields the rows in m, ascending.
func (m Mask) Rows() iter.Seq[int] {
	return func(yield func(int) bool) {
		for k, w := range m {
			for ; w != 0; w &= w - 1 {
				if !yield(k*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// filterRows keeps the rows of m for which match says so; it asks for those only.
func (m Mask) filterRows(match func(i int) bool) {
	for k, w := range m {
		for rest := w; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			if !match(k*64 + i) {
				w &^= 1 << i
			}
		}
		m[k] = w
	}
}

// filterWithin keeps the rows of m whose number lies in [from, to].
func filterWithin[T ~int64](m Mask, v []T, from, to T) {
	if from > to {
		clear(m)
		return
	}
	span := uint64(to) - uint64(from)
	for k, w := range m {
		if w == 0 {
			continue
		}
		part := v[k*64 : min(len(v), k*64+64)]
		in := uint64(0)
		for i, x := range part {
			if uint64(x)-uint64(from) <= span {
				in |= 1 << i
			}
		}
		m[k] = w & in
	}
}
