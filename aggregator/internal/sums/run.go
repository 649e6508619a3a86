package sums

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/bursar-accounting/bursar/proto/record"
)

// part is a component of a layout.
type part struct {
	name   string
	kind   record.Kind
	scores []record.Score
}

// layout is a list of components without their amounts. Layouts that are equal are
// the same layout.
type layout struct {
	id    uint32
	key   string // equal for equal layouts
	parts []part
}

// run is what counts of a record.
type run struct {
	seq     uint64
	id      string // of those that are kept one by one
	tuple   uint32 // number of the values of the dimensions
	layout  *layout
	amounts []int64 // one for each part

	start, stop record.Time // stop is None while it goes on
	submit      record.Time
	origin      record.Origin // of those that go on
	class       *EnergyClass  // where energy is asked for
}

// isNegative reports whether the run stopped before it started: it used nothing and
// touches no time.
func (r *run) isNegative() bool { return r.stop != record.None && r.stop < r.start }

// usedBetween is what part k of the run used from from to to, which lie within start and
// stop. The pieces of a run add up to the whole, whatever the cuts.
func (r *run) usedBetween(k int, stop, from, to record.Time) Sum {
	amount := r.amounts[k]
	if r.layout.parts[k].kind != record.Total {
		return Product(amount, int64(to-from))
	}
	if from == r.start && to == stop {
		return Product(amount, million)
	}
	s := spread{whole: Product(amount, million), over: uint64(stop - r.start)}
	return s.givenUntil(uint64(to - r.start)).Sub(s.givenUntil(uint64(from - r.start)))
}

const million = 1_000_000

// spread gives an amount out evenly over a time; what does not divide goes to the
// last piece.
type spread struct {
	whole Sum // not negative
	over  uint64
}

// givenUntil is what was given out at a time not after the end.
func (s spread) givenUntil(at uint64) Sum {
	if at == s.over {
		return s.whole
	}
	hi, rest := bits.Div64(0, uint64(s.whole.hi), s.over)
	lo, rest := bits.Div64(rest, s.whole.lo, s.over) // whole = (hi, lo) × over + rest
	top, low := bits.Mul64(lo, at)
	out := Sum{hi: int64(hi*at + top), lo: low}
	top, low = bits.Mul64(rest, at)
	part, _ := bits.Div64(top, low, s.over)
	return out.Add(Sum{lo: part})
}

// waitTime is how long the run waited; false when that is not known.
func (r *run) waitTime() (int64, bool) {
	if r.submit == record.None || r.submit > r.start {
		return 0, false
	}
	return int64(r.start - r.submit), true
}

// layoutKey writes components so that equal ones have equal keys.
func layoutKey(b []byte, cs []record.Component) []byte {
	b = binary.AppendUvarint(b, uint64(len(cs)))
	for i := range cs {
		b = appendText(b, cs[i].Name)
		b = append(b, byte(cs[i].Kind))
		b = binary.AppendUvarint(b, uint64(len(cs[i].Scores)))
		for _, s := range cs[i].Scores {
			b = binary.BigEndian.AppendUint64(appendText(b, s.Name), math.Float64bits(s.Value))
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func newLayout(id uint32, key string, cs []record.Component) *layout {
	s := &layout{id: id, key: key, parts: make([]part, len(cs))}
	for i := range cs {
		s.parts[i] = part{name: cs[i].Name, kind: cs[i].Kind, scores: cs[i].Scores}
	}
	return s
}
