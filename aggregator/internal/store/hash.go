package store

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cespare/xxhash/v2"
)

// Hash is a sum modulo 2^128 over what a store holds, so that it does not depend
// on the order in which things came and left.
type Hash struct{ Hi, Lo uint64 }

// String returns the hash as 32 hexadecimal digits.
func (h Hash) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], h.Hi)
	binary.BigEndian.PutUint64(b[8:], h.Lo)
	return hex.EncodeToString(b[:])
}

func (h *Hash) add(o Hash) {
	lo, carry := bits.Add64(h.Lo, o.Lo, 0)
	hi, _ := bits.Add64(h.Hi, o.Hi, carry)
	h.Hi, h.Lo = hi, lo
}

func (h *Hash) sub(o Hash) {
	lo, borrow := bits.Sub64(h.Lo, o.Lo, 0)
	hi, _ := bits.Sub64(h.Hi, o.Hi, borrow)
	h.Hi, h.Lo = hi, lo
}

// sum128 hashes b, whose first byte it may change.
func sum128(b []byte) Hash {
	b[0] = 1
	hi := xxhash.Sum64(b)
	b[0] = 2
	return Hash{Hi: hi, Lo: xxhash.Sum64(b)}
}

// pairHash is the hash of a key and its value.
func pairHash(key, value []byte) Hash {
	e := encoder{b: make([]byte, 1, len(key)+len(value)+8)}
	e.bytes(key)
	e.raw(value)
	return sum128(e.b)
}

// rowHasher hashes rows. The parts that many rows share are hashed once and
// given as numbers.
type rowHasher struct {
	e       encoder
	metas   encoder
	amounts []int64
}

func (h *rowHasher) row(r *columns.Row) Hash {
	h.amounts = h.amounts[:0]
	for i := range r.Record.Components {
		h.amounts = append(h.amounts, r.Record.Components[i].Amount)
	}
	return h.rowWith(r, h.meta(r.Record.Meta), h.template(r.Record.Components), h.origin(r.Origin), h.amounts)
}

// meta hashes the hashes of its values, so that those of values that many metas
// have are made once.
func (h *rowHasher) meta(m record.Meta) uint64 {
	h.beginMeta(m != nil)
	for i := range m {
		if len(m[i].Values) == 0 {
			h.addValue(h.value(m[i].Key, "", false), false)
		}
		for k, v := range m[i].Values {
			h.addValue(h.value(m[i].Key, v, true), k > 0)
		}
	}
	return h.endMeta()
}

// value hashes one value of a key; has is false for a key without values.
func (h *rowHasher) value(key, value string, has bool) uint64 {
	h.e.b = h.e.b[:0]
	h.e.bool(has)
	h.e.text(key)
	h.e.b = append(h.e.b, value...)
	return xxhash.Sum64(h.e.b)
}

func (h *rowHasher) beginMeta(present bool) {
	h.metas.b = h.metas.b[:0]
	h.metas.bool(present)
}

// addValue adds the hash of a value, which goes on with the key of the one
// before or begins the next.
func (h *rowHasher) addValue(hash uint64, goesOn bool) {
	if goesOn {
		hash = ^hash
	}
	h.metas.fixed(hash)
}

func (h *rowHasher) endMeta() uint64 { return xxhash.Sum64(h.metas.b) }

// template hashes components without their amounts.
func (h *rowHasher) template(cs []record.Component) uint64 {
	h.e.b = h.e.b[:0]
	for i := range cs {
		c := cs[i]
		c.Amount = 0
		fields{e: &h.e}.component(&c)
	}
	return xxhash.Sum64(h.e.b)
}

func (h *rowHasher) origin(o record.Origin) uint64 {
	h.e.b = h.e.b[:0]
	h.e.origin(o)
	return xxhash.Sum64(h.e.b)
}

// rowWith takes nothing that the other arguments say out of r.
func (h *rowHasher) rowWith(r *columns.Row, meta, template, origin uint64, amounts []int64) Hash {
	e := &h.e
	e.b = append(e.b[:0], 0, 'R')
	e.fixed(r.Seq, meta, template, origin)
	e.fixed(uint64(r.Record.Start), uint64(r.Record.Stop), uint64(r.Record.Submit), uint64(r.Stop), uint64(r.StopObserved),
		uint64(r.Version.Observed), uint64(r.Received), uint64(r.Changed), r.Supersedes)
	e.bool(r.Version.Ended)
	switch {
	case r.Archived:
		e.byte(2)
	default:
		e.bool(r.Tombstone)
	}
	e.byte(byte(r.Rank))
	for _, amount := range amounts {
		e.fixed(uint64(amount))
	}
	e.text(r.Record.ID)
	e.text(r.Record.State)
	if r.Record.Exit.Known {
		e.fixed(uint64(r.Record.Exit.Code), uint64(r.Record.Exit.Signal))
	}
	return sum128(e.b)
}

func (e *encoder) fixed(vs ...uint64) {
	for _, v := range vs {
		e.b = binary.LittleEndian.AppendUint64(e.b, v)
	}
}
