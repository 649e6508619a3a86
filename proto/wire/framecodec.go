package wire

import (
	"bytes"
	"fmt"

	"github.com/bursar-accounting/bursar/proto/record"
)

// AppendFrame appends f as a bursarv1.Frame: the bytes that the generated code
// gives. A Kind that is none of the constants gives a frame without a body, which
// no reader accepts.
func AppendFrame(b []byte, f *Frame) []byte {
	b = appendString(b, 1, f.SourceType)
	b = appendString(b, 2, f.SourceLabel)
	b = appendUint(b, 3, uint64(f.Rank))
	b = appendSint(b, 4, f.Version.Observed)
	b = appendBool(b, 5, f.Version.Ended)
	b = appendString(b, 6, f.Settles)
	b = appendBool(b, 7, f.IDReused)
	if f.Kind < KindRecord || f.Kind > KindCount {
		return b
	}
	b, mark := beginMessage(b, uint64(f.Kind))
	if f.Kind == KindRecord {
		return endMessage(AppendRecord(b, &f.Record), mark)
	}
	rare := *f // a copy, so that frames with records stay on the stack
	if f.Kind == KindCapacity {
		b = appendFields(b, &rare.Capacity.From, componentField{nil, f.Capacity.Components})
	} else {
		b = appendFields(b, rare.bodyFields()...)
	}
	return endMessage(b, mark)
}

// DecodeFrame reads a bursarv1.Frame into f, whatever f was. Nothing of f is part of
// b. Unknown fields are passed over; a frame with no body that this program knows, or
// with two, is an error, as everything malformed. The error wraps [ErrProto]. Whoever
// decodes many uses a [Lender].
func DecodeFrame(b []byte, f *Frame) error {
	var d Lender
	return d.Frame(bytes.Clone(b), f)
}

// Frame is [DecodeFrame] with d's slices, and views into b.
func (d *Lender) Frame(b []byte, f *Frame) error {
	*f = Frame{}
	var body []byte
	in := reader{b: b}
	for in.hasMore() {
		switch tag := in.readTag(); tag {
		case 1<<3 | typeBytes:
			f.SourceType = in.readText()
		case 2<<3 | typeBytes:
			f.SourceLabel = in.readText()
		case 3<<3 | typeVarint:
			f.Rank = record.Rank(in.uint8())
		case 4<<3 | typeVarint:
			f.Version.Observed = in.readSvarint()
		case 5<<3 | typeVarint:
			f.Version.Ended = in.readUvarint() != 0
		case 6<<3 | typeBytes:
			f.Settles = in.readText()
		case 7<<3 | typeVarint:
			f.IDReused = in.readUvarint() != 0
		default:
			if kind := Kind(tag >> 3); tag>>3 >= uint64(KindRecord) && tag>>3 <= uint64(KindCount) {
				in.bad = tag&7 != typeBytes || f.Kind != 0
				f.Kind, body = kind, in.readBytes()
			} else {
				in.skipField(tag, 7)
			}
		}
	}
	if err := in.readError("frame"); err != nil {
		return err
	}
	if f.Kind == 0 {
		return fmt.Errorf("frame: %w: no body of a known kind", ErrProto)
	}
	if err := d.decodeBody(body, f); err != nil {
		return fmt.Errorf("%s frame: %w", f.Kind, err)
	}
	return nil
}

func (d *Lender) decodeBody(b []byte, f *Frame) error {
	if f.Kind == KindRecord {
		err := d.Record(b, &f.Record)
		f.ID = f.Record.ID
		return err
	}
	in, rare := reader{b: b}, *f // a copy, so that frames with records stay on the stack
	if f.Kind == KindCapacity {
		d.dropUnfinished()
		in.readFields(&rare.Capacity.From, componentField{d, nil})
		rare.Capacity.Components = d.components.builtElements()
	} else {
		in.readFields(rare.bodyFields()...)
	}
	*f = rare
	return in.readError("body")
}
