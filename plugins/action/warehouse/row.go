package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// row is what the ledger has of a closed record.
type row struct {
	site        string
	id          string
	seq         uint64
	start, stop int64 // microseconds
	state       string
	dimensions  []string
	used        []sum  // by component; 0 where it is not known
	known       []bool // by component: the record has it
}

// rowOf makes the row of a closed record.
func (l *layout) rowOf(r *record.Record, seq uint64) row {
	out := row{
		site: firstValue(r.Meta, "site_id"), id: r.ID, seq: seq, start: int64(r.Start), stop: int64(r.Stop), state: r.State,
		dimensions: make([]string, len(l.dimensions)), used: make([]sum, len(l.components)), known: make([]bool, len(l.components)),
	}
	for i, key := range l.dimensions {
		out.dimensions[i] = firstValue(r.Meta, key)
	}
	for i, name := range l.components {
		for k := range r.Components {
			c := &r.Components[k]
			switch {
			case c.Name != name:
				continue
			case out.isNegative():
			case c.Kind == record.Total:
				out.used[i] = out.used[i].add(multiply(c.Amount, million))
			default:
				out.used[i] = out.used[i].add(multiply(c.Amount, out.stop-out.start))
			}
			out.known[i] = true
		}
	}
	return out
}

const million = 1_000_000

func firstValue(meta record.Meta, key string) string {
	for i := range meta {
		if meta[i].Key == key && len(meta[i].Values) > 0 {
			return meta[i].Values[0]
		}
	}
	return ""
}

// isNegative reports whether the run stopped before it started: it used nothing and is in no
// day.
func (r *row) isNegative() bool { return r.stop < r.start }

// stopMonth is the month of the stop in UTC, such as 202603: the partition of the row.
func (r *row) stopMonth() uint32 { return monthOf(time.UnixMicro(r.stop).UTC()) }

func monthOf(t time.Time) uint32 { return uint32(t.Year()*100 + int(t.Month())) }

// appendLedgerRow appends a row of the table ledger in RowBinary.
func (r *row) appendLedgerRow(b []byte, cluster string, sign int8, batch uint64) []byte {
	little := binary.LittleEndian
	b = appendText(b, cluster)
	b = appendText(b, r.site)
	b = little.AppendUint32(b, r.stopMonth())
	b = little.AppendUint64(b, uint64(r.stop))
	b = appendText(b, r.id)
	b = little.AppendUint64(b, r.seq)
	b = append(b, byte(sign))
	b = little.AppendUint64(b, batch)
	b = little.AppendUint64(b, uint64(r.start))
	b = little.AppendUint32(b, uint32(max(0, min(r.stop/million, math.MaxUint32)))) // what a DateTime can be
	b = appendText(b, r.state)
	return r.appendValues(b)
}

// appendValues appends the dimensions and components.
func (r *row) appendValues(b []byte) []byte {
	for _, v := range r.dimensions {
		b = appendText(b, v)
	}
	for i, v := range r.used {
		if !r.known[i] {
			b = append(b, isNull)
			continue
		}
		b = v.appendTo(append(b, isThere))
	}
	return b
}

// What stands before a value that may be missing.
const (
	isThere = 0
	isNull  = 1
)

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// rowReader reads rows of the columns [layout.storedColumns] in RowBinary.
type rowReader struct {
	*bytes.Reader

	layout *layout
	err    error
}

// storedColumns are the columns from which [rowReader] makes a row again.
func (l *layout) storedColumns() []string {
	return append(append([]string{"site", "record_id", "seq", "start_us", "stop_us", "state"}, l.dimensions...), l.components...)
}

// readRow returns the next row; false at the end and after an error.
func (r *rowReader) readRow() (out row, ok bool) {
	if r.Len() == 0 {
		return out, false
	}
	out.site, out.id, out.seq = r.readText(), r.readText(), r.readNumber()
	out.start, out.stop, out.state = int64(r.readNumber()), int64(r.readNumber()), r.readText()
	for range r.layout.dimensions {
		out.dimensions = append(out.dimensions, r.readText())
	}
	for range r.layout.components {
		null, err := r.ReadByte()
		r.err = errors.Join(r.err, err)
		var used sum
		if null == isThere {
			lo := r.readNumber()
			used = sum{int64(r.readNumber()), lo}
		}
		out.used, out.known = append(out.used, used), append(out.known, null == isThere)
	}
	return out, r.err == nil
}

func (r *rowReader) readText() string {
	n, err := binary.ReadUvarint(r)
	if err == nil && n > uint64(r.Len()) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		r.err = errors.Join(r.err, err)
		return ""
	}
	text := make([]byte, n)
	_, err = io.ReadFull(r, text)
	r.err = errors.Join(r.err, err)
	return string(text)
}

func (r *rowReader) readNumber() uint64 {
	var b [8]byte
	_, err := io.ReadFull(r, b[:])
	r.err = errors.Join(r.err, err)
	return binary.LittleEndian.Uint64(b[:])
}
