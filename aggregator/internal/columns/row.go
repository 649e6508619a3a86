package columns

import (
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Row is what queries see of one record id, with the store's bookkeeping: the
// holding that is shown, or a tombstone in place of a row that is gone.
//
// A Row is a value that is not changed after it was handed over: those who hold
// one share its slices.
type Row struct {
	// Record is the body as the origin holds it. Its stop is the body's own;
	// see [Row.ShownStop]. Of a tombstone only the ID counts, the rest is kept
	// as it is given.
	Record record.Record

	Origin  record.Origin
	Rank    record.Rank
	Version record.Version

	// Stop is the pushed register of the stop, as in [record.Holding]: None
	// without one. StopObserved is when it was written.
	Stop         record.Time
	StopObserved int64

	Seq        uint64      // number of the change, ascending within a block
	Received   record.Time // when the id was first stored
	Changed    record.Time // when this row was made
	Supersedes uint64      // Seq of the row that this one replaces; 0 for none
	Tombstone  bool        // the id shows nothing any more
	Archived   bool        // the body has lost details to an archive
}

// ShownStop returns the stop that queries see: the register's when there is
// one, else the body's; None while the run goes on.
func (r *Row) ShownStop() record.Time {
	if r.Stop != record.None {
		return r.Stop
	}
	return r.Record.Stop
}

// Shown returns the record with the stop that queries see. It shares the slices
// of r.
func (r *Row) Shown() record.Record {
	s := r.Record
	s.Stop = r.ShownStop()
	return s
}

// Holding returns the row as the holding that it was made from. The record is a
// copy that shares the slices of r.
func (r *Row) Holding() record.Holding {
	body := r.Record
	return record.Holding{
		Origin: r.Origin, Rank: r.Rank, Version: r.Version,
		Record: &body, Stop: r.Stop, StopObserved: r.StopObserved, Archived: r.Archived,
	}
}

// AppendV1 appends the row as /v1 shows it, in JSON.
func (r *Row) AppendV1(b []byte) []byte {
	shown := r.Shown()
	return wire.AppendV1JSON(b, &shown, wire.V1Extra{Origin: r.Origin, Rank: r.Rank, Seq: r.Seq, Received: r.Received, Changed: r.Changed, Archived: r.Archived})
}
