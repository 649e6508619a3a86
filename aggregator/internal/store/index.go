package store

import (
	"encoding/binary"

	"github.com/bursar-accounting/bursar/proto/record"
)

// index is what is kept under an id: where its row is and what else there is.
type index struct {
	// Seq is the shown row, or the tombstone that took its place, 0 for none.
	Seq     uint64
	Open    bool // the row is under tableOpen
	Hidden  bool // nothing is shown
	Held    bool // there is an entry under tableHeld
	Deleted bool
	// By and At say who deleted the id, and when.
	By string
	At record.Time
	// Tombstone is that behind an open row, 0 for none: the closed row that comes
	// after both takes its place.
	Tombstone uint64
}

// The flags of an index value. A plain row has none and no byte for them: the
// value is then its sequence number alone.
const (
	flagOpen      byte = 1
	flagHidden    byte = 2
	flagHeld      byte = 4
	flagDeleted   byte = 8
	flagTombstone byte = 16
)

func appendPlainIndex(b []byte, seq uint64) []byte { return binary.AppendUvarint(b, seq<<1) }

func (x *index) encodeIndex() []byte {
	flags := flagIf(x.Open, flagOpen) | flagIf(x.Hidden, flagHidden) | flagIf(x.Held, flagHeld) | flagIf(x.Deleted, flagDeleted) | flagIf(x.Tombstone != 0, flagTombstone)
	if flags == 0 {
		return appendPlainIndex(nil, x.Seq)
	}
	e := encoder{}
	e.putUint(x.Seq<<1 | 1)
	e.putByte(flags)
	if x.Deleted {
		e.putText(x.By)
		e.putTime(x.At)
	}
	if x.Tombstone != 0 {
		e.putUint(x.Tombstone)
	}
	return e.b
}

func flagIf(on bool, f byte) byte {
	if on {
		return f
	}
	return 0
}

func decodeIndex(b []byte) (x index, err error) {
	d := decoder{b: b}
	v := d.readUint()
	x.Seq, x.At = v>>1, record.None
	if v&1 == 0 {
		return x, d.checkEnd("index")
	}
	flags := d.readByte()
	x.Open, x.Hidden, x.Held, x.Deleted = flags&flagOpen != 0, flags&flagHidden != 0, flags&flagHeld != 0, flags&flagDeleted != 0
	if x.Deleted {
		x.By, x.At = d.readText(), d.readTime()
	}
	if flags&flagTombstone != 0 {
		x.Tombstone = d.readUint()
	}
	return x, d.checkEnd("index")
}
