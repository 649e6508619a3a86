package store

import (
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// zone is what is known of a block without reading it. Zones are shared between
// the applier and all views and are never changed: a new one takes the place.
type zone struct {
	First, Last        uint64 // sequence numbers
	Rows               int
	Dead               int // superseded rows
	Tombstones         int
	MinStart, MaxStart record.Time // Min > Max when there is none
	MinStop, MaxStop   record.Time
	Bytes              int // of the encoded block
	// Sum is what the rows that are not superseded add up to. It has a value of its
	// own.
	Sum Hash
}

func newZone(h columns.Header, bytes int) *zone {
	return &zone{First: h.FirstSeq, Last: h.LastSeq, Rows: h.Rows, Tombstones: h.Tombstones,
		MinStart: h.MinStart, MaxStart: h.MaxStart, MinStop: h.MinStop, MaxStop: h.MaxStop, Bytes: bytes}
}

const zoneFormat = 1

func (z *zone) visitFields(f fields) {
	f.visitUint(&z.Last)
	for _, n := range []*int{&z.Rows, &z.Dead, &z.Tombstones, &z.Bytes} {
		visitSmallUint(f, n)
	}
	for _, t := range []*record.Time{&z.MinStart, &z.MaxStart, &z.MinStop, &z.MaxStop} {
		n := int64(*t)
		f.visitInt(&n)
		*t = record.Time(n)
	}
}

func decodeZone(first uint64, b []byte) (*zone, error) {
	z := &zone{First: first}
	return z, decodeValue(b, zoneFormat, "zone", z)
}

// findZone returns the position of the block whose range holds seq.
func findZone(zones []*zone, seq uint64) (int, bool) {
	i, exact := slices.BinarySearchFunc(zones, seq, func(z *zone, seq uint64) int {
		if z.First > seq {
			return 1
		}
		if z.Last < seq {
			return -1
		}
		return 0
	})
	return i, exact
}
