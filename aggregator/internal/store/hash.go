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

func (h *Hash) addHash(o Hash) {
	lo, carry := bits.Add64(h.Lo, o.Lo, 0)
	hi, _ := bits.Add64(h.Hi, o.Hi, carry)
	h.Hi, h.Lo = hi, lo
}

func (h *Hash) subtractHash(o Hash) {
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
	e.putBytes(key)
	e.putRaw(value)
	return sum128(e.b)
}

// rowHasher hashes rows. The parts that many rows share are hashed once and
// given as numbers.
type rowHasher struct {
	e       encoder
	metas   encoder
	amounts []int64
}

func (h *rowHasher) hashRow(r *columns.Row) Hash {
	h.amounts = h.amounts[:0]
	for i := range r.Record.Components {
		h.amounts = append(h.amounts, r.Record.Components[i].Amount)
	}
	return h.hashRowWith(r, h.hashMeta(r.Record.Meta), h.hashTemplate(r.Record.Components), h.hashOrigin(r.Origin), h.amounts)
}

// hashMeta hashes the hashes of a meta's values, so that those of values that many metas
// have are made once.
func (h *rowHasher) hashMeta(m record.Meta) uint64 {
	h.beginMeta(m != nil)
	for i := range m {
		if len(m[i].Values) == 0 {
			h.addValue(h.hashValue(m[i].Key, "", false), false)
		}
		for k, v := range m[i].Values {
			h.addValue(h.hashValue(m[i].Key, v, true), k > 0)
		}
	}
	return h.endMeta()
}

// hashValue hashes one value of a key; has is false for a key without values.
func (h *rowHasher) hashValue(key, value string, has bool) uint64 {
	h.e.b = h.e.b[:0]
	h.e.putBool(has)
	h.e.putText(key)
	h.e.b = append(h.e.b, value...)
	return xxhash.Sum64(h.e.b)
}

func (h *rowHasher) beginMeta(present bool) {
	h.metas.b = h.metas.b[:0]
	h.metas.putBool(present)
}

// addValue adds the hash of a value, which goes on with the key of the one
// before or begins the next.
func (h *rowHasher) addValue(hash uint64, goesOn bool) {
	if goesOn {
		hash = ^hash
	}
	h.metas.putFixed64(hash)
}

func (h *rowHasher) endMeta() uint64 { return xxhash.Sum64(h.metas.b) }

// hashTemplate hashes components without their amounts.
func (h *rowHasher) hashTemplate(cs []record.Component) uint64 {
	h.e.b = h.e.b[:0]
	for i := range cs {
		c := cs[i]
		c.Amount = 0
		fields{e: &h.e}.visitComponent(&c)
	}
	return xxhash.Sum64(h.e.b)
}

func (h *rowHasher) hashOrigin(o record.Origin) uint64 {
	h.e.b = h.e.b[:0]
	h.e.putOrigin(o)
	return xxhash.Sum64(h.e.b)
}

// hashRowWith reads nothing from r that the other arguments say.
func (h *rowHasher) hashRowWith(r *columns.Row, meta, template, origin uint64, amounts []int64) Hash {
	e := &h.e
	e.b = append(e.b[:0], 0, 'R')
	e.putFixed64(r.Seq, meta, template, origin)
	e.putFixed64(uint64(r.Record.Start), uint64(r.Record.Stop), uint64(r.Record.Submit), uint64(r.Stop), uint64(r.StopObserved),
		uint64(r.Version.Observed), uint64(r.Received), uint64(r.Changed), r.Supersedes)
	e.putBool(r.Version.Ended)
	switch {
	case r.Archived:
		e.putByte(2)
	default:
		e.putBool(r.Tombstone)
	}
	e.putByte(byte(r.Rank))
	for _, amount := range amounts {
		e.putFixed64(uint64(amount))
	}
	e.putText(r.Record.ID)
	e.putText(r.Record.State)
	if r.Record.Exit.Known {
		e.putFixed64(uint64(r.Record.Exit.Code), uint64(r.Record.Exit.Signal))
	}
	return sum128(e.b)
}

func (e *encoder) putFixed64(vs ...uint64) {
	for _, v := range vs {
		e.b = binary.LittleEndian.AppendUint64(e.b, v)
	}
}
