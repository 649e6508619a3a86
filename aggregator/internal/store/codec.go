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

func (e *encoder) putByte(v byte)        { e.b = append(e.b, v) }
func (e *encoder) putUint(v uint64)      { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) putInt(v int64)        { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) putText(s string)      { e.b = append(binary.AppendUvarint(e.b, uint64(len(s))), s...) }
func (e *encoder) putBytes(v []byte)     { e.b = append(binary.AppendUvarint(e.b, uint64(len(v))), v...) }
func (e *encoder) putRaw(v []byte)       { e.b = append(e.b, v...) }
func (e *encoder) putBytes16(v [16]byte) { e.putRaw(v[:]) }
func (e *encoder) putFloat(v float64)    { e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(v)) }

func (e *encoder) putBool(v bool) {
	if v {
		e.putByte(1)
		return
	}
	e.putByte(0)
}

// putTime keeps None to one byte.
func (e *encoder) putTime(t record.Time) {
	if t == record.None {
		e.putByte(0)
		return
	}
	e.putByte(1)
	e.putInt(int64(t))
}

func (e *encoder) putOrigin(o record.Origin) {
	e.putText(o.Agent)
	e.putText(o.Type)
	e.putText(o.Label)
}

func (e *encoder) putVersion(v record.Version) {
	e.putBool(v.Ended)
	e.putInt(v.Observed)
}

func (e *encoder) putMeta(m record.Meta) {
	if m == nil {
		e.putUint(0)
		return
	}
	e.putUint(uint64(len(m)) + 1)
	for i := range m {
		e.putText(m[i].Key)
		e.putUint(uint64(len(m[i].Values)))
		for _, v := range m[i].Values {
			e.putText(v)
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

func (d *decoder) readByte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) readUint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) readInt() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// readView returns a length-prefixed part of the input itself.
func (d *decoder) readView() []byte {
	n := d.readUint()
	return d.readRaw(n)
}

func (d *decoder) readRaw(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) readText() string  { return string(d.readView()) }
func (d *decoder) readBytes() []byte { return append([]byte(nil), d.readView()...) }

func (d *decoder) readBool() bool {
	v := d.readByte()
	if v > 1 {
		d.fail()
	}
	return v == 1
}

func (d *decoder) readFloat() float64 {
	v := d.readRaw(8)
	if v == nil {
		return 0
	}
	return math.Float64frombits(binary.BigEndian.Uint64(v))
}

// readFixed64 reads what encoder.putFixed64 wrote of one number.
func (d *decoder) readFixed64() uint64 {
	v := d.readRaw(8)
	if v == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(v)
}

func (d *decoder) readBytes16() (v [16]byte) {
	copy(v[:], d.readRaw(16))
	return v
}

// readCount reads the length of a list whose elements take at least one byte.
func (d *decoder) readCount() int {
	n := d.readUint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) readTime() record.Time {
	if !d.readBool() {
		return record.None
	}
	return record.Time(d.readInt())
}

func (d *decoder) readOrigin() record.Origin {
	return record.Origin{Agent: d.readText(), Type: d.readText(), Label: d.readText()}
}

func (d *decoder) readVersion() record.Version {
	return record.Version{Ended: d.readBool(), Observed: d.readInt()}
}

func (d *decoder) readMeta() record.Meta {
	n := d.readUint()
	if n == 0 {
		return nil
	}
	if n-1 > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	m := make(record.Meta, n-1)
	for i := range m {
		m[i].Key = d.readText()
		m[i].Values = make([]string, d.readCount())
		for j := range m[i].Values {
			m[i].Values[j] = d.readText()
		}
	}
	return m
}

// checkEnd returns what went wrong, or that bytes are left over.
func (d *decoder) checkEnd(what string) error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errShort
	}
	if d.err != nil {
		return fmt.Errorf("%s: %w", what, d.err)
	}
	return nil
}
