package store

import (
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// A value under tableHeld is an entry whose holdings are not just the one of the
// shown row. What equals the row is not repeated.
const heldFormat = 1

// The flags of a holding.
const (
	heldRowOrigin byte = 1  // the origin is the row's
	heldRowRank   byte = 2  // the rank is the row's
	heldRowBody   byte = 4  // the body is the row's
	heldBody      byte = 8  // a body follows
	heldStop      byte = 16 // a stop follows
	heldArchived  byte = 32 // the body lost details; with heldRowBody: it did where the row's did not, or the other way round
)

// rowSaysAll reports whether a row alone says all that an entry holds.
func rowSaysAll(e *record.Entry, row *columns.Row) bool {
	if row == nil || len(e.Holdings) != 1 {
		return false
	}
	h, r := &e.Holdings[0], row.Holding()
	return h.Origin == r.Origin && h.Rank == r.Rank && h.Version == r.Version && h.Stop == r.Stop &&
		h.StopObserved == r.StopObserved && h.Archived == r.Archived && h.Record != nil && record.Same(h.Record, r.Record)
}

// encodeHeld writes the holdings against the shown row, nil when there is none.
func encodeHeld(entry *record.Entry, row *columns.Row) []byte {
	e := encoder{}
	e.putByte(heldFormat)
	e.putUint(uint64(len(entry.Holdings)))
	for i := range entry.Holdings {
		e.putHolding(&entry.Holdings[i], row)
	}
	return e.b
}

func (e *encoder) putHolding(h *record.Holding, row *columns.Row) {
	flags := flagIf(row != nil && h.Origin == row.Origin, heldRowOrigin) | flagIf(row != nil && h.Rank == row.Rank, heldRowRank) |
		flagIf(h.Stop != record.None, heldStop)
	if h.Record != nil {
		same := row != nil && record.Same(h.Record, &row.Record)
		flags |= flagIf(same, heldRowBody) | flagIf(!same, heldBody) | flagIf(h.Archived != (same && row.Archived), heldArchived)
	}
	e.putByte(flags)
	if flags&heldRowOrigin == 0 {
		e.putOrigin(h.Origin)
	}
	if flags&heldRowRank == 0 {
		e.putByte(byte(h.Rank))
	}
	e.putVersion(h.Version)
	if flags&heldBody != 0 {
		fields{e: e}.visitBody(h.Record)
	}
	if flags&heldStop != 0 {
		e.putInt(int64(h.Stop))
		e.putInt(h.StopObserved)
	}
}

func decodeHeld(id string, b []byte, row *columns.Row) ([]record.Holding, error) {
	d := decoder{b: b}
	d.checkFormat(heldFormat)
	var hs []record.Holding
	visitList(fields{d: &d}, &hs, func(f fields, h *record.Holding) { *h = f.d.readHolding(id, row) })
	return hs, d.checkEnd("holdings of " + id)
}

func (d *decoder) readHolding(id string, row *columns.Row) record.Holding {
	h := record.Holding{Stop: record.None}
	flags := d.readByte()
	if row == nil && flags&(heldRowOrigin|heldRowRank|heldRowBody) != 0 {
		d.fail()
		return h
	}
	if h.Origin, h.Rank = d.readRowOrigin(flags, row); flags&heldRowRank == 0 {
		h.Rank = record.Rank(d.readByte())
	}
	h.Version = d.readVersion()
	switch {
	case flags&heldRowBody != 0:
		h.Record, h.Archived = &row.Record, row.Archived != (flags&heldArchived != 0)
	case flags&heldBody != 0:
		h.Record = &record.Record{ID: id}
		fields{d: d}.visitBody(h.Record)
		h.Archived = flags&heldArchived != 0
	}
	if flags&heldStop != 0 {
		h.Stop, h.StopObserved = record.Time(d.readInt()), d.readInt()
	}
	return h
}

func (d *decoder) readRowOrigin(flags byte, row *columns.Row) (o record.Origin, rank record.Rank) {
	if row != nil {
		rank = row.Rank
	}
	if flags&heldRowOrigin != 0 {
		return row.Origin, rank
	}
	return d.readOrigin(), rank
}
