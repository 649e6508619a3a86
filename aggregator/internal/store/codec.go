package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/bursar-accounting/bursar/proto/record"
)

// errShort is what a decoder says of bytes that end early or do not add up.
var errShort = errors.New("damaged encoding")

// encoder appends the primitives of all stored values and commands. Numbers are
// varints, text and lists carry their length.
type encoder struct{ b []byte }

func (e *encoder) byte(v byte)        { e.b = append(e.b, v) }
func (e *encoder) uint(v uint64)      { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)        { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) text(s string)      { e.b = append(binary.AppendUvarint(e.b, uint64(len(s))), s...) }
func (e *encoder) bytes(v []byte)     { e.b = append(binary.AppendUvarint(e.b, uint64(len(v))), v...) }
func (e *encoder) raw(v []byte)       { e.b = append(e.b, v...) }
func (e *encoder) sixteen(v [16]byte) { e.raw(v[:]) }
func (e *encoder) float(v float64)    { e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(v)) }

func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
		return
	}
	e.byte(0)
}

// time keeps None to one byte.
func (e *encoder) time(t record.Time) {
	if t == record.None {
		e.byte(0)
		return
	}
	e.byte(1)
	e.int(int64(t))
}

func (e *encoder) origin(o record.Origin) {
	e.text(o.Agent)
	e.text(o.Type)
	e.text(o.Label)
}

func (e *encoder) version(v record.Version) {
	e.bool(v.Ended)
	e.int(v.Observed)
}

func (e *encoder) meta(m record.Meta) {
	if m == nil {
		e.uint(0)
		return
	}
	e.uint(uint64(len(m)) + 1)
	for i := range m {
		e.text(m[i].Key)
		e.uint(uint64(len(m[i].Values)))
		for _, v := range m[i].Values {
			e.text(v)
		}
	}
}

// decoder reads what encoder wrote. After the first fault everything reads as
// zero and err says so; it never panics and never allocates more than the input
// can justify.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errShort
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// view returns a length-prefixed part of the input itself.
func (d *decoder) view() []byte {
	n := d.uint()
	return d.take(n)
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) text() string  { return string(d.view()) }
func (d *decoder) bytes() []byte { return append([]byte(nil), d.view()...) }

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail()
	}
	return v == 1
}

func (d *decoder) float() float64 {
	v := d.take(8)
	if v == nil {
		return 0
	}
	return math.Float64frombits(binary.BigEndian.Uint64(v))
}

// fixed reads what encoder.fixed wrote of one number.
func (d *decoder) fixed() uint64 {
	v := d.take(8)
	if v == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(v)
}

func (d *decoder) sixteen() (v [16]byte) {
	copy(v[:], d.take(16))
	return v
}

// count reads the length of a list whose elements take at least one byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) time() record.Time {
	if !d.bool() {
		return record.None
	}
	return record.Time(d.int())
}

func (d *decoder) origin() record.Origin {
	return record.Origin{Agent: d.text(), Type: d.text(), Label: d.text()}
}

func (d *decoder) version() record.Version {
	return record.Version{Ended: d.bool(), Observed: d.int()}
}

func (d *decoder) meta() record.Meta {
	n := d.uint()
	if n == 0 {
		return nil
	}
	if n-1 > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	m := make(record.Meta, n-1)
	for i := range m {
		m[i].Key = d.text()
		m[i].Values = make([]string, d.count())
		for j := range m[i].Values {
			m[i].Values[j] = d.text()
		}
	}
	return m
}

// end returns what went wrong, or that bytes are left over.
func (d *decoder) end(what string) error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errShort
	}
	if d.err != nil {
		return fmt.Errorf("%s: %w", what, d.err)
	}
	return nil
}
