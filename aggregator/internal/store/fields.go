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
type stored interface{ fields(f fields) }

// encode returns a value behind the version of its format.
func encode(format byte, v stored) []byte {
	e := encoder{b: []byte{format}}
	v.fields(fields{e: &e})
	return e.b
}

// decode reads what [encode] gave; what names it in errors.
func decode(b []byte, format byte, what string, v stored) error {
	d := decoder{b: b}
	d.format(format)
	v.fields(fields{d: &d})
	return d.end(what)
}

// read is [decode] of a new value.
func read[T any, P interface {
	*T
	stored
}](b []byte, format byte, what string) (v T, err error) {
	err = decode(b, format, what, P(&v))
	return v, err
}

func field[T any](f fields, v *T, write func(*encoder, T), read func(*decoder) T) {
	if f.d != nil {
		*v = read(f.d)
		return
	}
	write(f.e, *v)
}

func (f fields) text(v *string)            { field(f, v, (*encoder).text, (*decoder).text) }
func (f fields) bytes(v *[]byte)           { field(f, v, (*encoder).bytes, (*decoder).bytes) }
func (f fields) view(v *[]byte)            { field(f, v, (*encoder).bytes, (*decoder).view) } // of the input
func (f fields) bool(v *bool)              { field(f, v, (*encoder).bool, (*decoder).bool) }
func (f fields) uint(v *uint64)            { field(f, v, (*encoder).uint, (*decoder).uint) }
func (f fields) int(v *int64)              { field(f, v, (*encoder).int, (*decoder).int) }
func (f fields) time(v *record.Time)       { field(f, v, (*encoder).time, (*decoder).time) }
func (f fields) float(v *float64)          { field(f, v, (*encoder).float, (*decoder).float) }
func (f fields) sixteen(v *[16]byte)       { field(f, v, (*encoder).sixteen, (*decoder).sixteen) }
func (f fields) origin(v *record.Origin)   { field(f, v, (*encoder).origin, (*decoder).origin) }
func (f fields) version(v *record.Version) { field(f, v, (*encoder).version, (*decoder).version) }

// hash is of 16 bytes, whatever the numbers.
func (f fields) hash(v *Hash) {
	f.fixed(&v.Hi)
	f.fixed(&v.Lo)
}

func (f fields) fixed(v *uint64) {
	field(f, v, func(e *encoder, v uint64) { e.fixed(v) }, (*decoder).fixed)
}

// reserved is a number that had a meaning once.
func (f fields) reserved() {
	var none uint64
	f.uint(&none)
}

// small is a number of fewer than 64 bits, written as one of 64.
func small[T ~uint32 | ~int](f fields, v *T) {
	n := uint64(*v)
	f.uint(&n)
	*v = T(n)
}

// code is a number of one byte.
func code[T ~uint8](f fields, v *T) {
	field(f, v, func(e *encoder, v T) { e.byte(byte(v)) }, func(d *decoder) T { return T(d.byte()) })
}

// list goes over the elements of a list, each of which takes a byte at least.
func list[T any](f fields, vs *[]T, one func(fields, *T)) {
	if f.d == nil {
		f.e.uint(uint64(len(*vs)))
		for i := range *vs {
			one(f, &(*vs)[i])
		}
		return
	}
	n := f.d.count()
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

// body is a record without its id.
func (f fields) body(r *record.Record) {
	field(f, &r.Meta, (*encoder).meta, (*decoder).meta)
	list(f, &r.Components, fields.component)
	f.time(&r.Start)
	f.time(&r.Stop)
	f.time(&r.Submit)
	f.text(&r.State)
	if f.bool(&r.Exit.Known); r.Exit.Known {
		for _, v := range []*int32{&r.Exit.Code, &r.Exit.Signal} {
			n := int64(*v)
			f.int(&n)
			*v = int32(n)
		}
	}
}

func (f fields) component(c *record.Component) {
	f.text(&c.Name)
	f.int(&c.Amount)
	code(f, &c.Kind)
	list(f, &c.Scores, func(f fields, s *record.Score) {
		f.text(&s.Name)
		f.float(&s.Value)
	})
}

func (f fields) write(w *record.Write) {
	f.text(&w.ID)
	code(f, &w.Op)
	f.origin(&w.Origin)
	code(f, &w.Rank)
	f.version(&w.Version)
	has := w.Record != nil
	if f.bool(&has); has {
		if w.Record == nil {
			w.Record = &record.Record{ID: w.ID}
		}
		f.body(w.Record)
	}
	f.time(&w.Stop)
}
