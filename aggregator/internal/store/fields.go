package store

import "github.com/bursar-accounting/bursar/proto/record"

// fields goes over the fields of a value in the order in which they are stored: it
// appends them to e or, where there is a d, reads them from it. So one list of fields
// is both how a value is written and how it is read.
type fields struct {
	e *encoder
	d *decoder
}

// stored is a value with one list of its fields.
type stored interface{ visitFields(f fields) }

// encodeValue returns a value behind the version of its format.
func encodeValue(format byte, v stored) []byte {
	e := encoder{b: []byte{format}}
	v.visitFields(fields{e: &e})
	return e.b
}

// decodeValue reads what [encodeValue] gave; what names it in errors.
func decodeValue(b []byte, format byte, what string, v stored) error {
	d := decoder{b: b}
	d.checkFormat(format)
	v.visitFields(fields{d: &d})
	return d.checkEnd(what)
}

// decodeNew is [decodeValue] of a new value.
func decodeNew[T any, P interface {
	*T
	stored
}](b []byte, format byte, what string) (v T, err error) {
	err = decodeValue(b, format, what, P(&v))
	return v, err
}

func visitField[T any](f fields, v *T, write func(*encoder, T), read func(*decoder) T) {
	if f.d != nil {
		*v = read(f.d)
		return
	}
	write(f.e, *v)
}

func (f fields) visitText(v *string)      { visitField(f, v, (*encoder).putText, (*decoder).readText) }
func (f fields) visitBytes(v *[]byte)     { visitField(f, v, (*encoder).putBytes, (*decoder).readBytes) }
func (f fields) visitView(v *[]byte)      { visitField(f, v, (*encoder).putBytes, (*decoder).readView) } // of the input
func (f fields) visitBool(v *bool)        { visitField(f, v, (*encoder).putBool, (*decoder).readBool) }
func (f fields) visitUint(v *uint64)      { visitField(f, v, (*encoder).putUint, (*decoder).readUint) }
func (f fields) visitInt(v *int64)        { visitField(f, v, (*encoder).putInt, (*decoder).readInt) }
func (f fields) visitTime(v *record.Time) { visitField(f, v, (*encoder).putTime, (*decoder).readTime) }
func (f fields) visitFloat(v *float64)    { visitField(f, v, (*encoder).putFloat, (*decoder).readFloat) }
func (f fields) visitBytes16(v *[16]byte) {
	visitField(f, v, (*encoder).putBytes16, (*decoder).readBytes16)
}
func (f fields) visitOrigin(v *record.Origin) {
	visitField(f, v, (*encoder).putOrigin, (*decoder).readOrigin)
}
func (f fields) visitVersion(v *record.Version) {
	visitField(f, v, (*encoder).putVersion, (*decoder).readVersion)
}

// visitHash goes over a hash, of 16 bytes whatever the numbers.
func (f fields) visitHash(v *Hash) {
	f.visitFixed64(&v.Hi)
	f.visitFixed64(&v.Lo)
}

func (f fields) visitFixed64(v *uint64) {
	visitField(f, v, func(e *encoder, v uint64) { e.putFixed64(v) }, (*decoder).readFixed64)
}

// visitReserved goes over a number that had a meaning once.
func (f fields) visitReserved() {
	var none uint64
	f.visitUint(&none)
}

// visitSmallUint goes over a number of fewer than 64 bits, written as one of 64.
func visitSmallUint[T ~uint32 | ~int](f fields, v *T) {
	n := uint64(*v)
	f.visitUint(&n)
	*v = T(n)
}

// visitByte goes over a number of one byte.
func visitByte[T ~uint8](f fields, v *T) {
	visitField(f, v, func(e *encoder, v T) { e.putByte(byte(v)) }, func(d *decoder) T { return T(d.readByte()) })
}

// visitList goes over the elements of a list, each of which takes a byte at least.
func visitList[T any](f fields, vs *[]T, one func(fields, *T)) {
	if f.d == nil {
		f.e.putUint(uint64(len(*vs)))
		for i := range *vs {
			one(f, &(*vs)[i])
		}
		return
	}
	n := f.d.readCount()
	*vs = nil
	if n == 0 {
		return
	}
	read := make([]T, 0, min(n, 4096))
	for i := range n {
		var none T
		read = append(read, none)
		if one(f, &read[i]); f.d.err != nil {
			return
		}
	}
	*vs = read
}

// visitBody goes over a record without its id.
func (f fields) visitBody(r *record.Record) {
	visitField(f, &r.Meta, (*encoder).putMeta, (*decoder).readMeta)
	visitList(f, &r.Components, fields.visitComponent)
	f.visitTime(&r.Start)
	f.visitTime(&r.Stop)
	f.visitTime(&r.Submit)
	f.visitText(&r.State)
	if f.visitBool(&r.Exit.Known); r.Exit.Known {
		for _, v := range []*int32{&r.Exit.Code, &r.Exit.Signal} {
			n := int64(*v)
			f.visitInt(&n)
			*v = int32(n)
		}
	}
}

func (f fields) visitComponent(c *record.Component) {
	f.visitText(&c.Name)
	f.visitInt(&c.Amount)
	visitByte(f, &c.Kind)
	visitList(f, &c.Scores, func(f fields, s *record.Score) {
		f.visitText(&s.Name)
		f.visitFloat(&s.Value)
	})
}

func (f fields) visitWrite(w *record.Write) {
	f.visitText(&w.ID)
	visitByte(f, &w.Op)
	f.visitOrigin(&w.Origin)
	visitByte(f, &w.Rank)
	f.visitVersion(&w.Version)
	has := w.Record != nil
	if f.visitBool(&has); has {
		if w.Record == nil {
			w.Record = &record.Record{ID: w.ID}
		}
		f.visitBody(w.Record)
	}
	f.visitTime(&w.Stop)
}
