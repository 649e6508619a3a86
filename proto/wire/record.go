package wire

import (
	"bytes"

	"github.com/bursar-accounting/bursar/proto/poison"
	"github.com/bursar-accounting/bursar/proto/record"
)

// AppendRecord appends r as a bursarv1.Record: the bytes that the generated code
// gives.
func AppendRecord(b []byte, r *record.Record) []byte {
	b = appendString(b, 1, r.ID)
	for i := range r.Meta {
		b = appendMetaEntry(b, &r.Meta[i])
	}
	b = appendBool(b, 3, r.Meta == nil)
	b = appendComponents(b, 4, r.Components)
	b = appendSint(b, 5, int64(r.Start))
	if r.Stop != record.None {
		b = appendOptional(b, 6, int64(r.Stop))
	}
	if r.Submit != record.None {
		b = appendOptional(b, 7, int64(r.Submit))
	}
	b = appendString(b, 8, r.State)
	return appendExit(b, r.Exit)
}

func appendMetaEntry(b []byte, e *record.MetaEntry) []byte {
	b, mark := beginMessage(b, 2)
	b = appendString(b, 1, e.Key)
	for _, v := range e.Values {
		b = appendElement(b, 2, v)
	}
	return endMessage(b, mark)
}

func appendComponents(b []byte, number uint64, components []record.Component) []byte {
	for i := range components {
		c := &components[i]
		var mark int
		b, mark = beginMessage(b, number)
		b = appendString(b, 1, c.Name)
		b = appendUint(b, 2, uint64(c.Amount))
		b = appendUint(b, 3, uint64(c.Kind))
		for _, s := range c.Scores {
			b = appendScore(b, s)
		}
		b = endMessage(b, mark)
	}
	return b
}

func appendScore(b []byte, s record.Score) []byte {
	b, mark := beginMessage(b, 4)
	b = appendString(b, 1, s.Name)
	b = appendDouble(b, 2, s.Value)
	return endMessage(b, mark)
}

func appendExit(b []byte, e record.Exit) []byte {
	if !e.Known {
		return b
	}
	b, mark := beginMessage(b, 9)
	b = appendSint(b, 1, int64(e.Code))
	b = appendSint(b, 2, int64(e.Signal))
	return endMessage(b, mark)
}

// DecodeRecord reads a bursarv1.Record into r, whatever r was. Nothing of r is part
// of b. Unknown fields are passed over. On an error, which wraps [ErrProto], r is not
// to be used. Whoever decodes many uses a [Lender].
func DecodeRecord(b []byte, r *record.Record) error {
	var d Lender
	return d.Record(bytes.Clone(b), r)
}

// Lender decodes many records with few allocations. What its methods decode is lent:
// strings and byte slices are parts of the input, so they are valid only as long as the
// input does not change, and lists only until [Lender.Reset]. Whoever keeps a decoded
// value keeps the input as it is and never calls Reset, or copies the value. Lists lie
// in slices that up to some hundred neighbours share, and stay in memory as long as one
// of them. The zero Lender is ready. It is not safe for concurrent use.
type Lender struct {
	metas      slab[record.MetaEntry]
	values     slab[string]
	components slab[record.Component]
	scores     slab[record.Score]
}

// Reset takes back all slices that d handed out: what was decoded with d must not
// be used any more, and its memory is used again. Whoever keeps decoded values
// never calls it; whoever copies out of them calls it after each batch, and
// decodes without allocating.
func (d *Lender) Reset() {
	d.metas.resetSlab(record.MetaEntry{Key: poison.Text})
	d.values.resetSlab(poison.Text)
	d.components.resetSlab(record.Component{Name: poison.Text})
	d.scores.resetSlab(record.Score{Name: poison.Text})
}

// dropUnfinished forgets what a decoding that failed was building.
func (d *Lender) dropUnfinished() {
	d.metas.dropBuilt()
	d.values.dropBuilt()
	d.components.dropBuilt()
	d.scores.dropBuilt()
}

// Record is [DecodeRecord] with d's slices, and views into b.
func (d *Lender) Record(b []byte, r *record.Record) error {
	*r = record.Record{Stop: record.None, Submit: record.None}
	d.dropUnfinished()
	absent := false
	in := reader{b: b}
	for in.hasMore() {
		switch tag := in.readTag(); tag {
		case 1<<3 | typeBytes:
			r.ID = in.readText()
		case 2<<3 | typeBytes:
			in.bad = !d.metaEntry(in.readBytes()) || in.bad
		case 3<<3 | typeVarint:
			absent = in.readUvarint() != 0
		case 4<<3 | typeBytes:
			in.bad = !d.addComponent(in.readBytes()) || in.bad
		case 5<<3 | typeVarint:
			r.Start = record.Time(in.readSvarint())
		case 6<<3 | typeVarint:
			r.Stop = record.Time(in.readSvarint())
		case 7<<3 | typeVarint:
			r.Submit = record.Time(in.readSvarint())
		case 8<<3 | typeBytes:
			r.State = in.readText()
		case 9<<3 | typeBytes:
			in.bad = !decodeExit(in.readBytes(), &r.Exit) || in.bad
		default:
			in.skipField(tag, 9)
		}
	}
	r.Meta = d.metas.builtElements()
	if r.Meta == nil && !absent {
		r.Meta = record.Meta{}
	}
	r.Components = d.components.builtElements()
	return in.readError("record")
}

func (d *Lender) metaEntry(b []byte) bool {
	e := d.metas.nextElement()
	in := reader{b: b}
	for in.hasMore() {
		switch tag := in.readTag(); tag {
		case 1<<3 | typeBytes:
			e.Key = in.readText()
		case 2<<3 | typeBytes:
			*d.values.nextElement() = in.readText()
		default:
			in.skipField(tag, 2)
		}
	}
	e.Values = d.values.builtElements()
	return !in.bad
}

func (d *Lender) addComponent(b []byte) bool {
	c := d.components.nextElement()
	in := reader{b: b}
	for in.hasMore() {
		switch tag := in.readTag(); tag {
		case 1<<3 | typeBytes:
			c.Name = in.readText()
		case 2<<3 | typeVarint:
			c.Amount = int64(in.readUvarint())
		case 3<<3 | typeVarint:
			c.Kind = record.Kind(in.uint8())
		case 4<<3 | typeBytes:
			in.bad = !d.addScore(in.readBytes()) || in.bad
		default:
			in.skipField(tag, 4)
		}
	}
	c.Scores = d.scores.builtElements()
	return !in.bad
}

func (d *Lender) addScore(b []byte) bool {
	s := d.scores.nextElement()
	in := reader{b: b}
	for in.hasMore() {
		switch tag := in.readTag(); tag {
		case 1<<3 | typeBytes:
			s.Name = in.readText()
		case 2<<3 | typeFixed8:
			s.Value = in.readFloat()
		default:
			in.skipField(tag, 2)
		}
	}
	return !in.bad
}

func decodeExit(b []byte, e *record.Exit) bool {
	e.Known = true
	in := reader{b: b}
	for in.hasMore() {
		switch tag := in.readTag(); tag {
		case 1<<3 | typeVarint:
			e.Code = in.svarint32()
		case 2<<3 | typeVarint:
			e.Signal = in.svarint32()
		default:
			in.skipField(tag, 2)
		}
	}
	return !in.bad
}
