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

// plain reports whether a row alone says all that an entry holds.
func plain(e *record.Entry, row *columns.Row) bool {
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
	e.byte(heldFormat)
	e.uint(uint64(len(entry.Holdings)))
	for i := range entry.Holdings {
		e.holding(&entry.Holdings[i], row)
	}
	return e.b
}

func (e *encoder) holding(h *record.Holding, row *columns.Row) {
	flags := bit(row != nil && h.Origin == row.Origin, heldRowOrigin) | bit(row != nil && h.Rank == row.Rank, heldRowRank) |
		bit(h.Stop != record.None, heldStop)
	if h.Record != nil {
		same := row != nil && record.Same(h.Record, &row.Record)
		flags |= bit(same, heldRowBody) | bit(!same, heldBody) | bit(h.Archived != (same && row.Archived), heldArchived)
	}
	e.byte(flags)
	if flags&heldRowOrigin == 0 {
		e.origin(h.Origin)
	}
	if flags&heldRowRank == 0 {
		e.byte(byte(h.Rank))
	}
	e.version(h.Version)
	if flags&heldBody != 0 {
		fields{e: e}.body(h.Record)
	}
	if flags&heldStop != 0 {
		e.int(int64(h.Stop))
		e.int(h.StopObserved)
	}
}

func decodeHeld(id string, b []byte, row *columns.Row) ([]record.Holding, error) {
	d := decoder{b: b}
	d.format(heldFormat)
	var hs []record.Holding
	list(fields{d: &d}, &hs, func(f fields, h *record.Holding) { *h = f.d.holding(id, row) })
	return hs, d.end("holdings of " + id)
}

func (d *decoder) holding(id string, row *columns.Row) record.Holding {
	h := record.Holding{Stop: record.None}
	flags := d.byte()
	if row == nil && flags&(heldRowOrigin|heldRowRank|heldRowBody) != 0 {
		d.fail()
		return h
	}
	if h.Origin, h.Rank = d.rowOrigin(flags, row); flags&heldRowRank == 0 {
		h.Rank = record.Rank(d.byte())
	}
	h.Version = d.version()
	switch {
	case flags&heldRowBody != 0:
		h.Record, h.Archived = &row.Record, row.Archived != (flags&heldArchived != 0)
	case flags&heldBody != 0:
		h.Record = &record.Record{ID: id}
		fields{d: d}.body(h.Record)
		h.Archived = flags&heldArchived != 0
	}
	if flags&heldStop != 0 {
		h.Stop, h.StopObserved = record.Time(d.int()), d.int()
	}
	return h
}

func (d *decoder) rowOrigin(flags byte, row *columns.Row) (o record.Origin, rank record.Rank) {
	if row != nil {
		rank = row.Rank
	}
	if flags&heldRowOrigin != 0 {
		return row.Origin, rank
	}
	return d.origin(), rank
}
