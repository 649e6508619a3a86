package columns

import (
	"encoding/binary"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Bits of a loose row.
const (
	rowTombstone = 1
	rowArchived  = 2
)

// AppendRow appends the stand-alone encoding of a row: format version, kind,
// CRC32C, fields. It needs no dictionary.
func AppendRow(b []byte, r *Row) []byte {
	at := len(b)
	b = append(b, format, kindRow, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, r.Seq)
	b = binary.AppendUvarint(b, r.Supersedes)
	flags := byte(0)
	if r.Tombstone {
		flags |= rowTombstone
	}
	if r.Archived {
		flags |= rowArchived
	}
	b = append(b, flags)
	for _, t := range []record.Time{r.Received, r.Changed, r.Stop, record.Time(r.StopObserved)} {
		b = binary.AppendUvarint(b, zigzagOf(uint64(t)))
	}
	b = appendBool(b, r.Version.Ended)
	b = binary.AppendVarint(b, r.Version.Observed)
	b = appendField(b, appendOrigin(nil, r.Origin, r.Rank))
	b = appendBody(b, &r.Record)
	binary.LittleEndian.PutUint32(b[at+2:], checksumOf(b[at:at+2], b[at+6:]))
	return b
}

func appendBody(b []byte, r *record.Record) []byte {
	b = appendField(b, r.ID)
	b = appendCount(b, len(r.Meta), r.Meta == nil)
	for i := range r.Meta {
		b = appendField(b, r.Meta[i].Key)
		b = binary.AppendUvarint(b, uint64(len(r.Meta[i].Values)))
		for _, v := range r.Meta[i].Values {
			b = appendField(b, v)
		}
	}
	b = appendBool(b, r.Components != nil)
	b = appendTemplate(b, r.Components)
	for i := range r.Components {
		b = binary.AppendUvarint(b, uint64(r.Components[i].Amount))
	}
	for _, t := range []record.Time{r.Start, r.Stop, r.Submit} {
		b = binary.AppendUvarint(b, zigzagOf(uint64(t)))
	}
	return appendEnd(b, r.State, r.Exit)
}

// DecodeRow reads what [AppendRow] wrote, which takes all of data. The row
// shares nothing with data. The error wraps [ErrCorrupt] or [ErrFormat].
func DecodeRow(data []byte) (Row, error) {
	if err := checkFormat(data, kindRow); err != nil {
		return Row{}, err
	}
	if len(data) < 6 || binary.LittleEndian.Uint32(data[2:]) != checksumOf(data[:2], data[6:]) {
		return Row{}, corruptError("checksum of a row")
	}
	r := reader{b: append([]byte(nil), data[6:]...), own: true}
	row := r.readRow()
	if !r.isDone() {
		return Row{}, corruptError("row is cut off or too long")
	}
	return row, nil
}

func (r *reader) readTime() record.Time { return record.Time(r.readVarint()) }
func (r *reader) readBool() bool        { return r.readByte() != 0 }

func (r *reader) readRow() Row {
	row := Row{Seq: r.readUvarint(), Supersedes: r.readUvarint()}
	flags := r.readByte()
	row.Tombstone, row.Archived = flags&rowTombstone != 0, flags&rowArchived != 0
	row.Received, row.Changed, row.Stop, row.StopObserved = r.readTime(), r.readTime(), r.readTime(), r.readVarint()
	row.Version = record.Version{Ended: r.readBool(), Observed: r.readVarint()}
	origin, rank, ok := parseOrigin(string(r.readField()))
	if !ok {
		r.failReading()
	}
	row.Origin, row.Rank = origin, rank
	r.readBody(&row.Record)
	return row
}

func (r *reader) readBody(b *record.Record) {
	b.ID = r.readText()
	b.Meta = r.readMeta()
	present := r.readBool()
	if b.Components = r.readComponents(); !present {
		b.Components = nil
	}
	for i := range b.Components {
		b.Components[i].Amount = int64(r.readUvarint())
	}
	b.Start, b.Stop, b.Submit = r.readTime(), r.readTime(), r.readTime()
	b.State = r.readText()
	b.Exit = record.Exit{Known: r.readBool(), Code: int32(r.readVarint()), Signal: int32(r.readVarint())}
}

func (r *reader) readMeta() record.Meta {
	n, absent := r.readCount()
	if absent || r.bad {
		return nil
	}
	m := make(record.Meta, 0, min(n, 64))
	values := make([]string, 0, min(n, 64)) // of all keys: most have one
	for range n {
		e, first := record.MetaEntry{Key: r.readText()}, len(values)
		for range min(r.readUvarint(), uint64(r.bytesLeft())+1) {
			values = append(values, r.readText())
			if r.bad {
				return nil
			}
		}
		if len(values) > first {
			e.Values = values[first:len(values):len(values)]
		}
		m = append(m, e)
		if r.bad {
			return nil
		}
	}
	return m
}
